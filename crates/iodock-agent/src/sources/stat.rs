//! Parses /proc/PID/stat (proc_pid_stat(5)): command, session, and start time.

use iodock_counters::numbers::{whole, words};

/// Returns the command, which may contain blanks and parentheses, and the text after it.
fn parts(stat: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = stat.iter().position(|&byte| byte == b'(')?;
    let end = stat.iter().rposition(|&byte| byte == b')').filter(|end| *end > begin)?;
    Some((&stat[begin + 1..end], &stat[end + 1..]))
}

pub fn command(stat: &[u8]) -> &[u8] {
    parts(stat).map_or(&[], |(command, _)| command)
}

/// Returns the start time in clock ticks since boot. Process id and start time together identify a process.
pub fn start_time(stat: &[u8]) -> Option<u64> {
    // The start time is field 22. The first field after the command is number 3, the state.
    words(parts(stat)?.1).nth(19).and_then(whole)
}

/// Returns the clock ticks that the process's own threads used processors, in programs and in the kernel.
pub fn ticks(stat: &[u8]) -> Option<u64> {
    // These are fields 14 and 15.
    let mut times = words(parts(stat)?.1).skip(11).map(whole);
    times.next()??.checked_add(times.next()??)
}

/// Identifies one program that runs in one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Start time of the process (see [`start_time`]).
    pub start: Option<u64>,
    pub command: Vec<u8>,
    /// Address of the program's code, which changes when the process executes another program. It is 1 if it
    /// may not be read, and 0 if the process has ended and was not waited for.
    code: Option<u64>,
    /// Parent of the process when it was first read. If the parent ends, the process gets another one.
    pub parent: Option<u64>,
}

impl Life {
    pub fn of(stat: &[u8]) -> Life {
        let after = parts(stat).map_or(&[][..], |(_, after)| after);
        let mut numbers = words(after).skip(19).map(whole);
        let start = numbers.next().flatten();
        // These are the fields 4, 22 and 26.
        let parent = words(after).nth(1).and_then(whole);
        Life { start, command: command(stat).to_vec(), code: numbers.nth(3).flatten(), parent }
    }

    /// Returns whether this is the same program as `before`, or the process after that program has ended.
    pub fn follows(&self, before: &Life) -> bool {
        let is_same_code = self.code == before.code || self.code == Some(0);
        self.start.is_some() && self.start == before.start && self.command == before.command && is_same_code
    }
}

/// Returns the login session, which audit assigns and `sudo` and `su` keep. Without one, returns `sid-` and
/// the process id of the session leader.
pub fn session(audit: &[u8], stat: &[u8]) -> Vec<u8> {
    const UNSET: &[u8] = b"4294967295";
    let audit = audit.trim_ascii();
    if whole(audit).is_some() && audit != UNSET {
        return audit.to_vec();
    }
    // The fields after the command are state, parent, group and session.
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
