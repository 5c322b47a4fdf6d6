//! Keeps the recorded processes that still run.

use crate::process::{all_stopped, stat};
use std::collections::HashMap;

/// Recorded processes, each with its start time in ticks since boot once that was read.
pub struct Living {
    /// Start time of the first process. An older process is not part of the recording: a process in its own
    /// pid namespace reports an id that may be another process's here.
    since: u64,
    started: HashMap<u32, u64>,
}

impl Living {
    pub fn new(root: u32) -> Self {
        let since = stat(root).map_or(0, |stat| stat.started);
        Living { since, started: HashMap::from([(root, since)]) }
    }

    /// Adds a recorded process. Returns whether it is new.
    pub fn add(&mut self, pid: u32) -> bool {
        let new = !self.started.contains_key(&pid);
        if new {
            self.started.insert(pid, 0);
        }
        new
    }

    /// Returns whether the process runs and is still the one that was added.
    pub fn is_alive(&mut self, pid: u32) -> bool {
        let Some(known) = self.started.get_mut(&pid) else { return false };
        let alive = stat(pid).is_some_and(|stat| {
            let first = std::mem::replace(known, stat.started);
            stat.runs && stat.started >= self.since && (first == 0 || first == stat.started)
        });
        if !alive {
            self.started.remove(&pid);
        }
        alive
    }

    /// Returns whether all running processes are stopped. False if none runs.
    pub fn all_stopped(&self) -> bool {
        all_stopped(self.started.keys().copied())
    }

    /// Returns the processes that still run, and forgets the others.
    pub fn all(&mut self) -> Vec<u32> {
        let pids: Vec<u32> = self.started.keys().copied().collect();
        pids.into_iter().filter(|&pid| self.is_alive(pid)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_older_than_the_session_is_not_part_of_it() {
        let me = std::process::id();
        let mut living = Living::new(me);
        assert!(living.is_alive(me) && living.add(1) && !living.add(1));
        assert!(!living.is_alive(1) || stat(1).is_some_and(|stat| stat.started == living.since));
        assert_eq!(living.all(), [me]);
    }

    #[test]
    fn a_zombie_does_not_count_as_running() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let pid = child.id();
        let mut living = Living::new(pid);
        while living.is_alive(pid) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(stat(pid).is_some_and(|stat| !stat.runs) && !living.all_stopped());
        child.wait().expect("ended");
        assert!(stat(pid).is_none());
    }
}
