//! Contains the sources, one file each. A source gets a [`Reading`], finds its files below the root and
//! reports the entries of each target. To add a source, add its file here and its line to [`ALL`].

pub mod cgroup_io;
pub mod cpu;
pub mod diskstats;
pub mod environment;
pub mod infiniband;
pub mod job_names;
pub mod job_stats;
pub mod jobs;
pub mod journal;
pub mod kernel_log;
mod link;
pub mod load;
pub mod lustre;
pub mod lustre_stats;
pub mod md;
pub mod mmpmon;
pub mod moosefs;
mod moosefs_master;
pub mod moosefs_sessions;
pub mod mountstats;
pub mod multipath;
pub mod network;
pub mod pressure;
pub mod probe;
pub mod process_io;
pub mod reading;
pub mod rpc_stats;
pub mod slurm_step;
pub(crate) mod small_file;
mod stat;
pub mod system_log;
pub mod tool;
mod users;

pub use reading::{News, Opening, Reading, Terms};

use crate::lines::Faults;
use crate::ranking::Table;
use crate::sample::{Entry, Names, Sample, Trend};
use std::io::{self, Read};
use std::path::PathBuf;

/// A source's name and the function that reads it.
pub type Source = (&'static str, fn(&Reading));

pub const ALL: &[Source] = &[
    ("lustre-job-stats", job_stats::read),
    ("lustre-stats", lustre_stats::read),
    ("lustre-rpc-stats", rpc_stats::read),
    ("gpfs-mmpmon", mmpmon::read),
    ("nfs-mountstats", mountstats::read),
    ("moosefs-mounts", moosefs::read),
    ("moosefs-master", moosefs_master::read),
    ("pressure", pressure::read),
    ("load", load::read),
    ("cpu", cpu::read),
    ("cgroup-io", cgroup_io::read),
    ("diskstats", diskstats::read),
    ("process-io", process_io::read),
    ("slurm-step", slurm_step::read),
    ("md", md::read),
    ("multipath", multipath::read),
    ("network", network::read),
    ("infiniband", infiniband::read),
    ("kernel-log", kernel_log::read),
    ("system-log", system_log::read),
    ("journal", journal::read),
    ("probe", probe::read),
];

/// Destination of the results of a parser.
pub struct Parsed<'a> {
    pub names: &'a mut Names,
    pub faults: &'a mut Faults,
    /// Function that receives each complete entry and the names known so far.
    pub entry: &'a mut dyn FnMut(&Entry, &Names),
}

/// Function that parses a whole file. It fails if the file cannot be read.
pub type Parse = fn(&mut dyn Read, &mut Parsed) -> io::Result<()>;

/// A file of counters and the target that it describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub path: PathBuf,
    /// File system, as in [`crate::sample::Sample`].
    pub file_system: String,
    pub name: String,
}

/// All entries of one target.
#[derive(Clone, Debug)]
pub struct Report {
    pub source: &'static str,
    pub file_system: String,
    pub target: String,
    pub names: Names,
    pub table: Table,
    pub trend: Trend,
    /// Numbers of unreadable lines. If a file has several targets, they are in a separate report without a
    /// target, even if no target could be read.
    pub faults: Option<Faults>,
    /// Time of the reading, ns since the epoch.
    pub time: i64,
}

impl Report {
    /// Returns a report without entries.
    pub fn new(source: &'static str, time: i64) -> Self {
        let (file_system, target, names) = (String::new(), String::new(), Names::default());
        let (table, trend) = (Table::default(), Trend::Grows);
        Report { source, file_system, target, names, table, trend, faults: None, time }
    }

    /// Returns all counters of the listed entries.
    pub fn samples<'a>(&'a self, host: &'a str) -> impl Iterator<Item = Sample<'a>> {
        self.table.listed.iter().flat_map(move |entry| {
            entry.values.iter().map(move |&(metric, value)| Sample {
                source: self.source,
                host,
                file_system: &self.file_system,
                target: &self.target,
                owner: &entry.owner,
                operation: self.names.text(metric.operation),
                quantity: metric.quantity,
                bucket: metric.bucket,
                value,
                start_time: entry.start_time,
                updated: entry.updated,
                time: self.time,
            })
        })
    }
}

/// Returns whether the error means that the file does not exist, or not any more. Processes and mounts may
/// end at any time.
pub fn is_gone(error: &io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}
