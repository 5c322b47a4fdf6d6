//! Which of the processes recorded still run.

use std::collections::HashMap;
use std::fs;

/// Processes, and when each was started, in ticks since the machine's start, once that was looked up.
pub struct Living {
    /// When the first one was started: nothing older is of ours, whatever number a process in a name space
    /// of its own says it has.
    since: u64,
    started: HashMap<u32, u64>,
}

impl Living {
    pub fn new(root: u32) -> Self {
        let since = stat(root).map_or(0, |(_, started)| started);
        Living { since, started: HashMap::from([(root, since)]) }
    }

    /// `pid` is one of ours. Was that not known?
    pub fn add(&mut self, pid: u32) -> bool {
        let new = !self.started.contains_key(&pid);
        if new {
            self.started.insert(pid, 0);
        }
        new
    }

    /// Does the process run, and is it still the one that was added?
    pub fn is_alive(&mut self, pid: u32) -> bool {
        let Some(known) = self.started.get_mut(&pid) else { return false };
        let alive = stat(pid).is_some_and(|(runs, started)| {
            let first = std::mem::replace(known, started);
            runs && started >= self.since && (first == 0 || first == started)
        });
        if !alive {
            self.started.remove(&pid);
        }
        alive
    }

    /// Forgets those that have ended.
    pub fn all(&mut self) -> Vec<u32> {
        let pids: Vec<u32> = self.started.keys().copied().collect();
        pids.into_iter().filter(|&pid| self.is_alive(pid)).collect()
    }
}

/// Does it run, and when was it started? A process whose first thread is a zombie runs on in its others.
fn stat(pid: u32) -> Option<(bool, u64)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let at = stat.iter().rposition(|&byte| byte == b')')?;
    // Fields are counted behind the name, which may hold anything: state is the first, then from 3.
    let fields: Vec<&str> = std::str::from_utf8(stat.get(at + 2..)?).ok()?.split(' ').collect();
    let (state, threads, started) = (fields.first()?, fields.get(17)?, fields.get(19)?);
    let ended = *state == "X" || (*state == "Z" && *threads == "1");
    Some((!ended, started.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_older_is_none_of_ours() {
        let me = std::process::id();
        let mut living = Living::new(me);
        assert!(living.is_alive(me) && living.add(1) && !living.add(1));
        assert!(!living.is_alive(1) || stat(1) == Some((true, living.since)));
        assert_eq!(living.all(), [me]);
    }

    #[test]
    fn a_process_that_has_ended_and_was_not_waited_for_does_not_run() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let pid = child.id();
        let mut living = Living::new(pid);
        while living.is_alive(pid) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(stat(pid).is_some_and(|(runs, _)| !runs));
        child.wait().expect("ended");
        assert!(stat(pid).is_none());
    }
}
