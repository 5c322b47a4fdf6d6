//! Parses /proc/PID/io (proc_pid_io(5)): counters of a process, its threads, and the children that it has
//! waited for.

use crate::numbers::whole;

/// The kernel's name of each field and iodock's name, which contains the unit and what is counted.
pub const FIELDS: [(&str, &str); 7] = [
    ("rchar", "read_call_bytes"),
    ("wchar", "written_call_bytes"),
    ("syscr", "read_calls"),
    ("syscw", "write_calls"),
    ("read_bytes", "read_device_bytes"),
    ("write_bytes", "written_device_bytes"),
    ("cancelled_write_bytes", "cancelled_write_bytes"),
];

/// Parses one line, and returns the field's index in [`FIELDS`] and its value.
pub fn line(text: &[u8]) -> Option<(usize, u64)> {
    let colon = text.iter().position(|&byte| byte == b':')?;
    let field = FIELDS.iter().position(|(name, _)| name.as_bytes() == &text[..colon])?;
    Some((field, whole(text[colon + 1..].trim_ascii())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_fields_are_read() {
        assert_eq!(line(b"rchar: 323934931"), Some((0, 323934931)));
        assert_eq!(line(b"cancelled_write_bytes: 0"), Some((6, 0)));
        assert_eq!((line(b"rchar: x"), line(b"new: 5"), line(b"rchar 5")), (None, None, None));
    }
}
