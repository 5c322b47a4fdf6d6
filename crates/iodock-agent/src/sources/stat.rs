//! /proc/PID/stat (proc_pid_stat(5)): command, session, and start time.

use iodock_counters::numbers::{whole, words};

/// The command, which may contain blanks and parentheses, and the text after it.
fn parts(stat: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = stat.iter().position(|&byte| byte == b'(')?;
    let end = stat.iter().rposition(|&byte| byte == b')').filter(|end| *end > begin)?;
    Some((&stat[begin + 1..end], &stat[end + 1..]))
}

pub fn command(stat: &[u8]) -> &[u8] {
    parts(stat).map_or(&[], |(command, _)| command)
}

/// Clock ticks since boot. Together with its number, it distinguishes a process from a later one.
pub fn start_time(stat: &[u8]) -> Option<u64> {
    // Field 22; the state, number 3, is the first after the command.
    words(parts(stat)?.1).nth(19).and_then(whole)
}

/// Clock ticks that the process's own threads used processors, in programs and in the kernel.
pub fn ticks(stat: &[u8]) -> Option<u64> {
    // Fields 14 and 15.
    let mut times = words(parts(stat)?.1).skip(11).map(whole);
    times.next()??.checked_add(times.next()??)
}

/// One program of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// See [`start_time`].
    pub start: Option<u64>,
    pub command: Vec<u8>,
    /// The address of its code, which changes when it executes another program. 1 if it may not be read, 0 if
    /// the process has ended and was not waited for.
    code: Option<u64>,
    /// Parent of the process when it was first read. A process whose parent ends gets another one.
    pub parent: Option<u64>,
}

impl Life {
    pub fn of(stat: &[u8]) -> Life {
        let after = parts(stat).map_or(&[][..], |(_, after)| after);
        let mut numbers = words(after).skip(19).map(whole);
        let start = numbers.next().flatten();
        // Fields 4, 22 and 26.
        let parent = words(after).nth(1).and_then(whole);
        Life { start, command: command(stat).to_vec(), code: numbers.nth(3).flatten(), parent }
    }

    /// Is it the same program, or what remains of it?
    pub fn follows(&self, before: &Life) -> bool {
        let is_same_code = self.code == before.code || self.code == Some(0);
        self.start.is_some() && self.start == before.start && self.command == before.command && is_same_code
    }
}

/// The login session (from audit, which `sudo` and `su` keep), else `sid-` and the session leader's process
/// id.
pub fn session(audit: &[u8], stat: &[u8]) -> Vec<u8> {
    const UNSET: &[u8] = b"4294967295";
    let audit = audit.trim_ascii();
    if whole(audit).is_some() && audit != UNSET {
        return audit.to_vec();
    }
    // State, parent, group and session.
    let leader =
        parts(stat).and_then(|(_, after)| words(after).nth(3)).filter(|leader| whole(leader).is_some());
    leader.map_or_else(Vec::new, |leader| [b"sid-", leader].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_of_a_process_is_found() {
        assert_eq!(session(b"12\n", b""), b"12");
        assert_eq!(session(b"4294967295", b"5 (a) b) S 1 5 77 0 -1"), b"sid-77");
        assert_eq!(session(b"", b""), b"");
        assert_eq!(command(b"5 ((a) b) S 1 5 77"), b"(a) b");
    }

    #[test]
    fn the_start_time_of_a_process_is_read() {
        let stat = b"5 (a) b) S 1 5 77 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 1 0 456133 1 1";
        assert_eq!(start_time(stat), Some(456133));
        assert_eq!(ticks(stat), Some(5 + 4));
        assert_eq!(ticks(b"5 (a) S 1"), None);
        assert_eq!(start_time(b"5 (a) S 1"), None);
        let life = |code: u64| Life::of(format!("5 (a) S {}7 1 2 3 {code} 9", "0 ".repeat(18)).as_bytes());
        assert_eq!((life(4).start, life(4).code), (Some(7), Some(4)));
        assert!(life(4).follows(&life(4)) && life(0).follows(&life(4)));
        assert!(!life(5).follows(&life(4)) && !life(4).follows(&life(0)));
        assert!(!Life::default().follows(&Life::default()));
    }
}
