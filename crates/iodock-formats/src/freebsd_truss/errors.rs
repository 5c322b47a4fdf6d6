//! FreeBSD's numbers of errors (sys/errno.h). The first 34 are Linux's, but for 11.

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

/// The error of that number; `None` when the table of names is full.
pub fn error(number: i64) -> Option<ErrnoId> {
    match number {
        // Inside the kernel: the call begins again.
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
    fn numbers_are_freebsds() {
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
