//! Computes how many calls the kernel counted for a process (syscr and syscw) but the library did not record,
//! because the program made them without libc.
//!
//! The kernel counts one for each call that reads or writes a file, socket or pipe, two for sendfile and
//! copy_file_range, and none for other calls (send, splice, io_submit). It counts only some of the calls that
//! fail. This module assumes that all failed calls were counted, so the result may be too low, but not too
//! high.

use crate::entries::{CallRecord, CountedRecord};
use iodock_event::{Action, CallSpec};
use std::collections::{HashMap, HashSet};

/// Differences up to this number are not reported, because the kernel makes some calls on behalf of a
/// process, for example for a mount on demand.
const FEW: u64 = 16;
/// Number of reads that a failed exec may add to the count: both the kernel and the library read the
/// beginnings of files.
const READS_OF_EXEC: u64 = 64;
/// The kernel restarts a call that a signal interrupts, and counts it again. A call of at least SHORT units
/// of the session's clock (1 to 4 µs) is assumed to have been restarted once, and once more for each
/// INTERRUPTED_NS of its duration. For a process the sum is at most INTERRUPTED_A_WAIT times the number of
/// its threads' waits.
const SHORT: u64 = 256;
const INTERRUPTED_NS: u64 = 10_000;
const INTERRUPTED_A_WAIT: u64 = 2;

#[derive(Default)]
pub struct Counted {
    processes: HashMap<u32, Process>,
    left_out: HashSet<u32>,
    unseen: u64,
}

/// Counts of a process since its program began, or since a fork created it.
#[derive(Default)]
struct Process {
    first_thread: Tally,
    all_threads: Tally,
    waits: Tally,
    /// Number of additional calls that the kernel may have counted: for restarted calls, and (`by_execs`) for
    /// failed execs.
    begun_anew: u64,
    by_execs: u64,
    /// The kernel includes children that were waited for in the process's own count.
    has_children: bool,
    /// The process uses io_uring: the kernel counts its operations, which are not recorded as read or write
    /// calls.
    uses_ring: bool,
}

#[derive(Default)]
struct Tally {
    from: From,
    recorded: u64,
    /// Number of reads by which the library itself queried the count.
    asked: u64,
    /// The last reported count, minus the reads of earlier queries.
    told: Option<u64>,
}

/// The value of the kernel's count when the process's program began.
#[derive(Clone, Copy, Default)]
enum From {
    /// The count of a forked child begins at 0.
    #[default]
    Zero,
    /// A program has begun, and has not reported its first count yet.
    Unknown,
    Number(u64),
}

impl Tally {
    fn told(&mut self, count: u64, questions: u64) {
        match self.from {
            From::Unknown => self.from = From::Number(count),
            From::Zero | From::Number(_) => self.told = Some(count.saturating_sub(self.asked)),
        }
        self.asked += questions;
    }

    /// Returns by how much the kernel's count exceeds the number of recorded calls.
    fn excess(&self) -> Option<u64> {
        let from = match self.from {
            From::Zero => 0,
            From::Number(number) => number,
            From::Unknown => return None,
        };
        Some(self.told?.saturating_sub(from).saturating_sub(self.recorded))
    }
}

impl Process {
    fn unseen(&self) -> u64 {
        let all = self.all_threads.excess().filter(|_| !self.has_children);
        let count = all.or(self.first_thread.excess()).filter(|_| !self.uses_ring).unwrap_or(0);
        let waits = self.waits.excess().unwrap_or(u64::MAX);
        let begun_anew = self.begun_anew.min(waits.saturating_mul(INTERRUPTED_A_WAIT));
        if count > begun_anew + self.by_execs + FEW {
            count
        } else {
            0
        }
    }
}

impl Counted {
    /// Excludes processes that counted their calls (--light) while they ran some program. Few calls of these
    /// processes are recorded, so a comparison with the kernel's count makes no sense.
    pub fn leave_out(&mut self, pids: impl IntoIterator<Item = u32>) {
        self.left_out.extend(pids);
    }

    /// Called when a process begins a program.
    pub fn begins(&mut self, pid: u32) {
        let had_children = self.processes.get(&pid).is_some_and(|process| process.has_children);
        self.ends(pid);
        let tally = || Tally { from: From::Unknown, ..Tally::default() };
        let process = Process {
            first_thread: tally(),
            all_threads: tally(),
            waits: tally(),
            has_children: had_children,
            ..Process::default()
        };
        self.processes.insert(pid, process);
    }

    pub fn ends(&mut self, pid: u32) {
        let process = self.processes.remove(&pid).filter(|_| !self.left_out.contains(&pid));
        let unseen = process.map_or(0, |process| process.unseen());
        self.unseen = self.unseen.saturating_add(unseen);
    }

    pub fn told(&mut self, counted: &CountedRecord) {
        let process = self.processes.entry(counted.pid).or_default();
        let is_first = counted.tid == counted.pid;
        if is_first {
            process.first_thread.told(counted.by_thread, 2);
        }
        // The process's count already includes the read of this report's first query, the one of the thread's
        // count.
        process.all_threads.told(counted.by_process.saturating_sub(1), 2);
        process.waits.told(counted.waits, 0);
    }

    /// Adds a recorded call. `duration` returns its duration in ns.
    pub fn call(&mut self, call: &CallRecord, duration: impl FnOnce() -> i64) {
        let spec = call.call.spec();
        let count = times_counted(spec);
        let is_ring = matches!(spec.action, Action::RingEnter | Action::NewIoUring);
        let is_fork = spec.family == "fork";
        if count == 0 && !is_ring && !is_fork {
            return;
        }
        let process = self.processes.entry(call.pid).or_default();
        process.uses_ring |= is_ring;
        process.has_children |= is_fork && call.flags & iodock_event::constants::CLONE_THREAD == 0;
        process.all_threads.recorded += count;
        if call.tid == call.pid {
            process.first_thread.recorded += count;
        }
        if count > 0 && call.end.saturating_sub(call.start) >= SHORT {
            process.begun_anew += 1 + duration().max(0) as u64 / INTERRUPTED_NS;
        }
    }

    pub fn failed_exec(&mut self, pid: u32) {
        self.processes.entry(pid).or_default().by_execs += READS_OF_EXEC;
    }

    /// Returns the number of unrecorded calls of all processes. Processes that did not report an end count as
    /// killed.
    pub fn unseen(&mut self) -> u64 {
        let left: Vec<u32> = self.processes.keys().copied().collect();
        left.into_iter().for_each(|pid| self.ends(pid));
        self.unseen
    }
}

/// Returns the largest number by which the kernel's count grows for one such call.
fn times_counted(spec: &CallSpec) -> u64 {
    match (spec.action, spec.family) {
        (Action::Read | Action::PositionedRead | Action::Write | Action::PositionedWrite, _) => 1,
        (Action::Transfer, "sendfile" | "copy_file_range") => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iodock_event::CallId;

    const PID: u32 = 7;
    const THREAD: u32 = 8;

    fn told(tid: u32, by_thread: u64, by_process: u64) -> CountedRecord {
        CountedRecord { tid, pid: PID, time: 0, by_thread, by_process, waits: 4 }
    }

    fn calls(counted: &mut Counted, name: &str, tid: u32, count: u32) {
        let call = CallId::intern(name.as_bytes()).expect("a call");
        for _ in 0..count {
            counted.call(&CallRecord { result: 9, ..CallRecord::new(call, (tid, PID), (0, 0)) }, || 0);
        }
    }

    /// Returns the counts of a program that began with 25 calls of its first thread and 30 of the process,
    /// and has made 40 calls since, 30 of them in the first thread.
    fn program() -> Counted {
        let mut counted = Counted::default();
        counted.begins(PID);
        counted.told(&told(PID, 25, 31));
        calls(&mut counted, "read", PID, 20);
        calls(&mut counted, "sendfile", PID, 5);
        calls(&mut counted, "splice", PID, 5);
        calls(&mut counted, "pwritev", THREAD, 10);
        counted
    }

    #[test]
    fn recorded_calls_do_not_count_as_unseen() {
        let mut counted = program();
        counted.told(&told(PID, 25 + 2 + 30, 31 + 2 + 40));
        assert_eq!(counted.unseen(), 0);
    }

    #[test]
    fn a_process_that_counted_its_calls_is_left_out() {
        let mut counted = program();
        counted.told(&told(PID, 177, 183));
        counted.leave_out([PID]);
        assert_eq!(counted.unseen(), 0);
    }

    #[test]
    fn all_calls_beyond_the_recorded_ones_count_as_unseen() {
        let mut counted = program();
        counted.told(&told(PID, 25 + 2 + 30 + 60, 31 + 2 + 40 + 100));
        assert_eq!(counted.unseen(), 100);
    }

    #[test]
    fn only_the_first_thread_of_a_process_with_children_is_compared() {
        for fork in ["fork", "clone3", "vfork"] {
            let mut counted = program();
            calls(&mut counted, fork, THREAD, 1);
            counted.told(&told(PID, 25 + 2 + 30 + 60, 31 + 2 + 40 + 1000));
            assert_eq!(counted.unseen(), 60);
            let mut counted = program();
            calls(&mut counted, fork, THREAD, 1);
            counted.told(&told(THREAD, 1000, 31 + 2 + 40 + 1000));
            assert_eq!(counted.unseen(), 0);
        }
    }

    #[test]
    fn processes_with_unknown_numbers_are_not_reported() {
        let mut killed = program();
        assert_eq!(killed.unseen(), 0);
        let mut late = Counted::default();
        late.begins(PID);
        late.told(&told(PID, 1000, 1000));
        assert_eq!(late.unseen(), 0);
        let mut with_ring = program();
        calls(&mut with_ring, "io_uring_enter", PID, 1);
        with_ring.told(&told(PID, 1000, 1000));
        assert_eq!(with_ring.unseen(), 0);
    }

    #[test]
    fn counters_start_at_zero_in_a_child_and_continue_over_exec() {
        let mut counted = Counted::default();
        calls(&mut counted, "write", PID, 3);
        counted.told(&told(PID, 3 + 50, 4 + 50));
        counted.begins(PID);
        counted.told(&told(PID, 500, 501));
        counted.told(&told(PID, 502 + 40, 503 + 40));
        // From here on another process has this id, and is killed.
        counted.ends(PID);
        calls(&mut counted, "write", PID, 3);
        assert_eq!(counted.unseen(), 90);
    }

    #[test]
    fn possibly_interrupted_calls_count_as_doubtful() {
        let call = CallId::intern(b"read").expect("a call");
        let waited = CallRecord::new(call, (PID, PID), (0, SHORT));
        let told_of = |count: u64, nanoseconds: i64| {
            let mut counted = Counted::default();
            counted.call(&waited, || nanoseconds);
            counted.told(&told(PID, 1 + count, 2 + count));
            counted.unseen()
        };
        assert_eq!((told_of(6 + FEW, 50_000), told_of(7 + FEW, 50_000)), (0, 7 + FEW));
        // With four waits, at most eight restarts are assumed.
        assert_eq!((told_of(8 + FEW, 1_000_000_000), told_of(9 + FEW, 1_000_000_000)), (0, 9 + FEW));
    }
}
