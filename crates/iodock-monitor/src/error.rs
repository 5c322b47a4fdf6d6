//! Errors of a monitor store. Each message says what to do and, where there is one, names the path.

use iodock_samples::frame::Damage;
use iodock_store::StoreError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum MonitorError {
    /// The pushed data are not a batch. The collector stored nothing of it.
    Refused(Damage),
    /// The time in a batch is wrong: it is on this day.
    Clock { host: String, day: String },
    /// The sender's clock is this many ns ahead of the collector's, or behind it if negative.
    ClockApart { host: String, ahead: i64 },
    /// A batch names a machine for which this sender may not push.
    Name { host: String },
    /// Another collector uses the store.
    InUse { path: PathBuf },
    /// The folder contains other files, or the store is damaged.
    NotAStore { path: PathBuf, why: String },
    /// The disk or its file system failed.
    Io { path: PathBuf, source: io::Error },
    /// The collector could not write files of rows.
    Table(StoreError),
}

impl MonitorError {
    pub fn hint(&self) -> &'static str {
        match self {
            MonitorError::Refused(_) => "only iodock-agent of this version pushes here",
            MonitorError::Clock { .. } | MonitorError::ClockApart { .. } => "set its clock, e.g. with chrony",
            MonitorError::Name { .. } => "give one token or address for each machine, or name the machine",
            MonitorError::InUse { .. } => "stop the other collector, or give another --store",
            MonitorError::NotAStore { .. } => {
                "give another --store; the Parquet files of a damaged store can still be read"
            }
            MonitorError::Io { .. } | MonitorError::Table(_) => {
                "free space, or check the folder's file system"
            }
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> MonitorError + '_ {
        move |source| MonitorError::Io { path: path.into(), source }
    }
}

impl fmt::Display for MonitorError {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            MonitorError::Refused(damage) => write!(out, "not a push of samples: {damage}"),
            MonitorError::Clock { host, day } => write!(out, "{host:?}: its clock is wrong: it shows {day}"),
            MonitorError::ClockApart { host, ahead } => {
                let side = if *ahead < 0 { "behind" } else { "ahead of" };
                write!(out, "{host:?}: its clock is wrong, {} {side} the collector's", roughly(*ahead))
            }
            MonitorError::Name { host } => write!(out, "{host:?}: this sender may not use this name"),
            MonitorError::InUse { path } => write!(out, "{}: in use by another collector", path.display()),
            MonitorError::NotAStore { path, why } => write!(out, "{}: {why}", path.display()),
            MonitorError::Io { path, source } => write!(out, "{}: {source}", path.display()),
            MonitorError::Table(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for MonitorError {}

/// Returns a clock difference in hours or days. Its text is the same for each push, so that the collector
/// reports it once.
fn roughly(apart: i64) -> String {
    const HOUR: u64 = 3600 * 1_000_000_000;
    let hours = (apart.unsigned_abs() + HOUR / 2) / HOUR;
    match (hours, (hours + 12) / 24) {
        (..2, _) => "more than an hour".into(),
        (..48, _) => format!("about {hours} hours"),
        (_, days) => format!("about {days} days"),
    }
}

impl From<StoreError> for MonitorError {
    fn from(error: StoreError) -> Self {
        MonitorError::Table(error)
    }
}
