//! Data of a live recording that are not calls: the state of the machine, sampled once a second, and the
//! mounts.

use crate::UNKNOWN;

/// The behaviour of a sampled value over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SampleKind {
    /// The value only grows, so readers must compute differences.
    Counter = 0,
    /// The value is a level at one time.
    Gauge = 1,
}

impl SampleKind {
    pub fn name(self) -> &'static str {
        match self {
            SampleKind::Counter => "counter",
            SampleKind::Gauge => "gauge",
        }
    }
}

/// One sampled value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Time of the sample, ns since the epoch.
    pub ts: i64,
    /// Origin of the value: `diskstats`, `mountstats`, `llite`, `pressure`, `loadavg` or `process_io`.
    pub source: String,
    /// Object that the value describes, such as a device, mount point or pid; empty for the whole machine.
    pub target: String,
    /// Name of the value including its unit, such as `read_bytes`.
    pub metric: String,
    pub value: f64,
    pub kind: SampleKind,
}

/// One line of the mount table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    pub mount_point: String,
    pub fs_type: String,
    /// The mounted object: a device or `server:/export`.
    pub source: String,
    pub options: String,
}

/// Resources that a task had used when it ended, from the rusage of wait4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskUsage {
    pub tid: u32,
    /// Time at which the task ended, ns since the epoch.
    pub time: i64,
    /// User CPU time, ns. This and the following fields are [`UNKNOWN`] if not known.
    pub cpu_user_ns: i64,
    pub cpu_system_ns: i64,
    /// Largest resident set size of the task, bytes.
    pub peak_memory_bytes: i64,
}

impl TaskUsage {
    pub fn new(tid: u32, time: i64) -> Self {
        let unknown = UNKNOWN;
        TaskUsage { tid, time, cpu_user_ns: unknown, cpu_system_ns: unknown, peak_memory_bytes: unknown }
    }
}
