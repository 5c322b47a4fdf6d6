//! Keeps the running tasks. A process ends when its last thread ends.

use std::collections::HashMap;

#[derive(Default)]
struct Process {
    threads: u32,
    /// Exit status of the leader, if it ended before other threads of its process.
    leader_status: Option<i32>,
}

#[derive(Default)]
pub struct Lives {
    tasks: HashMap<u32, u32>,
    processes: HashMap<u32, Process>,
}

impl Lives {
    pub fn begins(&mut self, tid: u32, tgid: u32) {
        match self.tasks.get(&tid) {
            Some(&before) if before == tgid => return,
            // The end of the earlier task with this id was not recorded.
            Some(_) => drop(self.ends(tid, 0)),
            None => {}
        }
        self.tasks.insert(tid, tgid);
        self.processes.entry(tgid).or_default().threads += 1;
    }

    /// Handles an exec by thread `old`: it continues with the id of `leader`, and all other threads have
    /// ended.
    pub fn taken_over(&mut self, old: u32, leader: u32) {
        if let Some(tgid) = self.tasks.remove(&old) {
            if let Some(process) = self.processes.get_mut(&tgid) {
                process.threads = process.threads.saturating_sub(1);
            }
        }
        self.begins(leader, leader);
        if let Some(process) = self.processes.get_mut(&leader) {
            process.leader_status = None;
        }
    }

    /// Handles the end of a thread. Returns the threads that end with it for an observer, with their
    /// statuses: the leader of a process appears to exist until the last thread has ended.
    pub fn ends(&mut self, tid: u32, status: i32) -> Vec<(u32, i32)> {
        let Some(tgid) = self.tasks.remove(&tid) else { return Vec::new() };
        let Some(process) = self.processes.get_mut(&tgid) else { return Vec::new() };
        process.threads = process.threads.saturating_sub(1);
        let is_leader = tid == tgid;
        if is_leader {
            process.leader_status = Some(status);
        }
        let mut ended = if is_leader { Vec::new() } else { vec![(tid, status)] };
        if process.threads == 0 {
            ended.extend(process.leader_status.map(|status| (tgid, status)));
            self.processes.remove(&tgid);
        }
        ended
    }

    pub fn process_of(&self, tid: u32) -> Option<u32> {
        self.tasks.get(&tid).copied()
    }

    /// Returns the process of a thread, if the process has several threads.
    #[inline]
    pub fn shared_process(&self, tid: u32) -> Option<u32> {
        let tgid = *self.tasks.get(&tid)?;
        self.processes.get(&tgid).filter(|process| process.threads > 1).map(|_| tgid)
    }

    /// Returns the threads of all processes that have several, each with its process.
    pub fn shared(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let several = |tgid: &u32| self.processes.get(tgid).is_some_and(|process| process.threads > 1);
        self.tasks.iter().filter(move |(_, tgid)| several(tgid)).map(|(&tid, &tgid)| (tid, tgid))
    }

    pub fn has(&self, tid: u32) -> bool {
        self.tasks.contains_key(&tid)
    }

    /// Returns every thread with its process.
    pub fn all(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.tasks.iter().map(|(&tid, &tgid)| (tid, tgid))
    }

    pub fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Lives;

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut lives = Lives::default();
        lives.begins(10, 10);
        lives.begins(11, 10);
        assert_eq!(lives.ends(10, 256), []);
        assert!(!lives.is_empty());
        assert_eq!(lives.ends(11, 0), [(11, 0), (10, 256)]);
        assert!(lives.is_empty());
    }

    #[test]
    fn after_exec_a_thread_continues_as_the_leader() {
        let mut lives = Lives::default();
        lives.begins(10, 10);
        lives.begins(11, 10);
        assert_eq!(lives.ends(10, 0), []);
        lives.taken_over(11, 10);
        assert_eq!(lives.processes().collect::<Vec<_>>(), [10]);
        assert_eq!(lives.ends(10, 9), [(10, 9)]);
        assert!(lives.is_empty());
    }

    #[test]
    fn an_id_can_be_reused_without_a_seen_end() {
        let mut lives = Lives::default();
        lives.begins(10, 10);
        lives.begins(11, 10);
        lives.begins(11, 11);
        assert_eq!(lives.ends(10, 0), [(10, 0)]);
        assert_eq!(lives.ends(11, 7), [(11, 7)]);
        assert!(lives.is_empty());
    }

    #[test]
    fn damaged_records_give_no_negative_counts() {
        let mut lives = Lives::default();
        lives.begins(11, 10);
        lives.begins(20, 20);
        lives.taken_over(11, 20);
        assert_eq!(lives.ends(20, 1), [(20, 1)]);
        assert_eq!(lives.ends(20, 1), []);
        lives.begins(10, 10);
        assert_eq!(lives.ends(10, 2), [(10, 2)]);
        assert!(lives.is_empty());
    }
}
