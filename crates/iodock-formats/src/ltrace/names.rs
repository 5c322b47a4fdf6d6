//! Maps ltrace's names of system calls to ids.

use crate::strace::{known_call, number};
use iodock_event::numbers_x86_64::NUMBERS;
use iodock_event::CallId;

/// First of the call numbers that are the same on all machines (include/uapi/asm-generic/unistd.h of Linux
/// 5.1).
const OF_ALL: i64 = 424;

/// Returns the id of a call from the text after `SYS_` or before `@SYS`; `None` when the table of names is
/// full. `x86_64`: numbers that replace names are those of x86-64.
pub fn call(name: &[u8], x86_64: bool) -> Option<CallId> {
    // Version 0.7.91 prints such numbers as SYS_435@SYS.
    let digits = name.strip_prefix(b"SYS_").unwrap_or(name);
    if digits.first().is_some_and(u8::is_ascii_digit) {
        return numbered(digits, x86_64);
    }
    let name = kernels(name);
    known_call(name).or_else(|| CallId::intern(name))
}

/// Replaces the two names in ltrace's tables that Linux does not have.
fn kernels(name: &[u8]) -> &[u8] {
    match name {
        b"pread" => b"pread64",
        b"pwrite" => b"pwrite64",
        other => other,
    }
}

/// Returns the id of a call that ltrace cannot name, because its tables end in 2012.
fn numbered(digits: &[u8], x86_64: bool) -> Option<CallId> {
    let Some(number) = number(digits) else { return CallId::intern(digits) };
    let is_told = x86_64 || number >= OF_ALL;
    let known = NUMBERS.iter().find(|(known, _)| is_told && i64::from(*known) == number);
    match known {
        Some((_, name)) => CallId::intern(name.as_bytes()),
        None => CallId::intern(format!("syscall_{number:#x}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_number_or_name() {
        for (name, of_any, of_x86_64) in [
            ("read", "read", "read"),
            ("pread", "pread64", "pread64"),
            ("334", "syscall_0x14e", "rseq"),
            ("SYS_435", "clone3", "clone3"),
            ("332", "syscall_0x14c", "statx"),
            ("9999", "syscall_0x270f", "syscall_0x270f"),
            ("of_next_year", "of_next_year", "of_next_year"),
        ] {
            assert_eq!(call(name.as_bytes(), false).unwrap().name(), of_any, "{name}");
            assert_eq!(call(name.as_bytes(), true).unwrap().name(), of_x86_64, "{name}");
        }
    }
}
