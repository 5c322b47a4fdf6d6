//! What a live recording knows apart from calls: the state of the machine, once a second, and the mounts.

use crate::UNKNOWN;

/// How a sampled value behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SampleKind {
    /// Only grows, so use differences.
    Counter = 0,
    /// A level at one moment.
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

/// One value at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// ns since the epoch.
    pub ts: i64,
    /// `diskstats mountstats llite pressure loadavg process_io`.
    pub source: String,
    /// Device, mount point, pid ...; empty for the whole machine.
    pub target: String,
    /// Name with its unit, e.g. `read_bytes`.
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

/// The resources that a task had used when it ended (wait4's rusage).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskUsage {
    pub tid: u32,
    /// Time of its end, ns since the epoch.
    pub time: i64,
    /// [`UNKNOWN`] if not known, as for the following fields.
    pub cpu_user_ns: i64,
    pub cpu_system_ns: i64,
    /// Largest resident size, bytes.
    pub peak_memory_bytes: i64,
}

impl TaskUsage {
    pub fn new(tid: u32, time: i64) -> Self {
        let unknown = UNKNOWN;
        TaskUsage { tid, time, cpu_user_ns: unknown, cpu_system_ns: unknown, peak_memory_bytes: unknown }
    }
}
