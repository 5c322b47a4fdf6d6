//! Collects the resource usage of tasks that they report when they end.

use crate::reader::{CpuTime, ProcessUsage, UsageRecord};
use iodock_event::{Sample, SampleKind, TaskUsage};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

const BLOCK_BYTES: f64 = 512.0;

/// The collected values. They grow while calls are read; clones share the same values.
#[derive(Clone, Default)]
pub struct Usages(Arc<Mutex<Found>>);

#[derive(Default)]
struct Found {
    usages: Vec<TaskUsage>,
    samples: Vec<Sample>,
    processes: HashMap<u32, Process>,
}

#[derive(Default)]
struct Process {
    /// Sum of the CPU times of all threads that have reported theirs, except the first thread.
    others: CpuTime,
    /// Total usage of the process when it ended, and the time of its end.
    end: Option<(i64, ProcessUsage)>,
}

impl Usages {
    fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn take(&self) -> (Vec<TaskUsage>, Vec<Sample>) {
        let mut found = self.lock();
        (std::mem::take(&mut found.usages), std::mem::take(&mut found.samples))
    }

    /// Adds the usage that a task has reported at `time`, in ns since the epoch.
    pub(super) fn add(&self, usage: &UsageRecord, time: i64) {
        let mut found = self.lock();
        let process = found.processes.entry(usage.pid).or_default();
        if let Some(whole) = usage.process {
            process.end = Some((time, whole));
        }
        if usage.tid != usage.pid {
            process.others.user += usage.thread.user;
            process.others.system += usage.thread.system;
            found.usages.push(task_usage(usage.tid, time, usage.thread));
        }
    }

    /// Computes the usage of processes that ended before `until`, whose threads have all reported by now.
    /// Threads that ended together with their process report nothing; their time is added to the first
    /// thread.
    pub(super) fn settle(&self, until: i64) {
        let found = &mut *self.lock();
        let over = |process: &Process| process.end.is_some_and(|(time, _)| time < until);
        let mut over: Vec<_> = found.processes.extract_if(|_, process| over(process)).collect();
        // The order must not depend on the order of the hash map.
        over.sort_unstable_by_key(|&(pid, _)| pid);
        over.into_iter().for_each(|(pid, process)| found.tell(pid, &process));
    }

    /// Computes the usage of a process whose id was reused: later reports belong to another process.
    pub(super) fn settle_process(&self, pid: u32) {
        let found = &mut *self.lock();
        if let Some(process) = found.processes.remove(&pid) {
            found.tell(pid, &process);
        }
    }
}

impl Found {
    /// Adds the usage of a process's first thread, and the process's samples, if the process has reported its
    /// end.
    fn tell(&mut self, pid: u32, process: &Process) {
        let Some((time, whole)) = process.end else { return };
        let cpu = CpuTime {
            user: whole.cpu.user.saturating_sub(process.others.user),
            system: whole.cpu.system.saturating_sub(process.others.system),
        };
        self.usages.push(task_usage(pid, time, cpu));
        let blocks =
            [("read_device_bytes", whole.read_blocks), ("written_device_bytes", whole.written_blocks)];
        for (metric, count) in blocks.into_iter().filter(|&(_, count)| count > 0) {
            self.samples.push(Sample {
                ts: time,
                source: "process_io".into(),
                target: pid.to_string(),
                metric: metric.into(),
                value: count as f64 * BLOCK_BYTES,
                kind: SampleKind::Counter,
            });
        }
    }
}

fn ns(microseconds: u64) -> i64 {
    i64::try_from(microseconds.saturating_mul(1000)).unwrap_or(i64::MAX)
}

fn task_usage(tid: u32, time: i64, cpu: CpuTime) -> TaskUsage {
    TaskUsage { cpu_user_ns: ns(cpu.user), cpu_system_ns: ns(cpu.system), ..TaskUsage::new(tid, time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(tid: u32, user: u64, whole: Option<u64>) -> UsageRecord {
        let cpu = |user| CpuTime { user, system: 0 };
        let process = whole.map(|user| ProcessUsage { cpu: cpu(user), read_blocks: 0, written_blocks: 2 });
        UsageRecord { tid, pid: 7, time: 0, thread: cpu(user), process }
    }

    #[test]
    fn cpu_time_of_ending_threads_counts_for_the_first_thread() {
        let usages = Usages::default();
        let told = || usages.take().0.iter().map(|one| (one.tid, one.cpu_user_ns)).collect::<Vec<_>>();
        usages.add(&usage(8, 5, None), 0);
        usages.add(&usage(7, 1, Some(10)), 0);
        // This report of a thread arrives after the end of its process.
        usages.add(&usage(9, 2, None), 0);
        usages.settle(0);
        assert_eq!(told(), [(8, 5000), (9, 2000)]);
        usages.settle(1);
        let samples = usages.lock().samples.clone();
        assert_eq!((samples[0].metric.as_str(), samples[0].value), ("written_device_bytes", 1024.0));
        assert_eq!(told(), [(7, 3000)]);
        usages.add(&usage(10, 2, Some(6)), 0);
        usages.settle(1);
        assert_eq!(told(), [(10, 2000), (7, 4000)]);
    }

    #[test]
    fn a_process_with_a_reused_id_has_its_own_cpu_time() {
        let usages = Usages::default();
        let told =
            || usages.take().0.iter().map(|one| (one.tid, one.time, one.cpu_user_ns)).collect::<Vec<_>>();
        usages.add(&usage(8, 5, None), 1);
        usages.add(&usage(7, 1, Some(10)), 2);
        usages.settle_process(7);
        usages.add(&usage(7, 3, Some(3)), 4);
        usages.settle(i64::MAX);
        assert_eq!(told(), [(8, 1, 5000), (7, 2, 5000), (7, 4, 3000)]);
    }
}
