//! FreeBSD's error numbers (sys/errno.h). The first 34 are the same as in Linux, except 11.

use iodock_event::ErrnoId;

const LAST_SHARED: i64 = 34;
const FIRST: i64 = 35;
const FROM_35: &[&str] = &[
    "EAGAIN",
    "EINPROGRESS",
    "EALREADY",
    "ENOTSOCK",
    "EDESTADDRREQ",
    "EMSGSIZE",
    "EPROTOTYPE",
    "ENOPROTOOPT",
    "EPROTONOSUPPORT",
    "ESOCKTNOSUPPORT",
    "EOPNOTSUPP",
    "EPFNOSUPPORT",
    "EAFNOSUPPORT",
    "EADDRINUSE",
    "EADDRNOTAVAIL",
    "ENETDOWN",
    "ENETUNREACH",
    "ENETRESET",
    "ECONNABORTED",
    "ECONNRESET",
    "ENOBUFS",
    "EISCONN",
    "ENOTCONN",
    "ESHUTDOWN",
    "ETOOMANYREFS",
    "ETIMEDOUT",
    "ECONNREFUSED",
    "ELOOP",
    "ENAMETOOLONG",
    "EHOSTDOWN",
    "EHOSTUNREACH",
    "ENOTEMPTY",
    "EPROCLIM",
    "EUSERS",
    "EDQUOT",
    "ESTALE",
    "EREMOTE",
    "EBADRPC",
    "ERPCMISMATCH",
    "EPROGUNAVAIL",
    "EPROGMISMATCH",
    "EPROCUNAVAIL",
    "ENOLCK",
    "ENOSYS",
    "EFTYPE",
    "EAUTH",
    "ENEEDAUTH",
    "EIDRM",
    "ENOMSG",
    "EOVERFLOW",
    "ECANCELED",
    "EILSEQ",
    "ENOATTR",
    "EDOOFUS",
    "EBADMSG",
    "EMULTIHOP",
    "ENOLINK",
    "EPROTO",
    "ENOTCAPABLE",
    "ECAPMODE",
    "ENOTRECOVERABLE",
    "EOWNERDEAD",
    "EINTEGRITY",
];

/// The messages of the first errors, from lib/libc/gen/errlst.c.
const TEXTS: &[&str] = &[
    "Operation not permitted",
    "No such file or directory",
    "No such process",
    "Interrupted system call",
    "Input/output error",
    "Device not configured",
    "Argument list too long",
    "Exec format error",
    "Bad file descriptor",
    "No child processes",
    "Resource deadlock avoided",
    "Cannot allocate memory",
    "Permission denied",
    "Bad address",
    "Block device required",
    "Device busy",
    "File exists",
    "Cross-device link",
    "Operation not supported by device",
    "Not a directory",
    "Is a directory",
    "Invalid argument",
    "Too many open files in system",
    "Too many open files",
    "Inappropriate ioctl for device",
    "Text file busy",
    "File too large",
    "No space left on device",
    "Illegal seek",
    "Read-only file system",
    "Too many links",
    "Broken pipe",
    "Numerical argument out of domain",
    "Result too large",
    "Resource temporarily unavailable",
    "Operation now in progress",
    "Operation already in progress",
    "Socket operation on non-socket",
    "Destination address required",
    "Message too long",
    "Protocol wrong type for socket",
    "Protocol not available",
    "Protocol not supported",
    "Socket type not supported",
    "Operation not supported",
    "Protocol family not supported",
    "Address family not supported by protocol family",
    "Address already in use",
    "Can't assign requested address",
    "Network is down",
    "Network is unreachable",
    "Network dropped connection on reset",
    "Software caused connection abort",
    "Connection reset by peer",
    "No buffer space available",
    "Socket is already connected",
    "Socket is not connected",
    "Can't send after socket shutdown",
    "Too many references: can't splice",
    "Operation timed out",
    "Connection refused",
    "Too many levels of symbolic links",
    "File name too long",
    "Host is down",
    "No route to host",
    "Directory not empty",
    "Too many processes",
    "Too many users",
    "Disc quota exceeded",
    "Stale NFS file handle",
];

/// Returns whether the message belongs to another error. Versions differ in the wording of a few messages, so
/// an unknown message does not count.
pub fn is_of_other(number: i64, text: &[u8]) -> bool {
    let place = TEXTS.iter().position(|known| known.as_bytes() == text);
    place.is_some_and(|place| i64::try_from(place + 1) != Ok(number))
}

/// Returns the error with that number; `None` when the table of names is full.
pub fn error(number: i64) -> Option<ErrnoId> {
    match number {
        // This error is used only inside the kernel, which restarts the call.
        -1 => ErrnoId::intern(b"ERESTART"),
        11 => ErrnoId::intern(b"EDEADLK"),
        1..=LAST_SHARED => Some(ErrnoId::from_linux(number as i32)),
        _ => match usize::try_from(number - FIRST).ok().and_then(|index| FROM_35.get(index)) {
            Some(name) => ErrnoId::intern(name.as_bytes()),
            None => ErrnoId::intern(format!("ERRNO_{number}").as_bytes()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_those_of_freebsd() {
        let name = |number| error(number).map(ErrnoId::name).unwrap_or_default();
        assert_eq!(
            (name(2), name(11), name(34), name(35)),
            ("ENOENT".into(), "EDEADLK".into(), "ERANGE".into(), "EAGAIN".into())
        );
        assert_eq!(
            (name(66), name(78), name(97), name(98)),
            ("ENOTEMPTY".into(), "ENOSYS".into(), "EINTEGRITY".into(), "ERRNO_98".into())
        );
    }
}
