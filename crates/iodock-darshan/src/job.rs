//! The information of a log about its job.

use crate::ByteOrder;

/// A time: seconds since 1970, and nanoseconds if the format has them (since 3.41).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    pub s: i64,
    pub ns: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub path: String,
    pub file_system: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub uid: i64,
    pub start: Time,
    pub end: Time,
    pub processes: i64,
    pub id: i64,
    /// Keys and values in the order of the log: `lib_ver`, `h` (hints of MPI-IO) and additions of a site.
    pub metadata: Vec<(String, String)>,
    /// The program and its arguments, as far as Darshan keeps them.
    pub command: Option<String>,
    /// File systems and their mount points, in the order of the log.
    pub mounts: Vec<Mount>,
    /// Duration of the job as stated by the text of darshan-parser, which has no nanoseconds of the start and
    /// the end.
    pub said_run_time_s: Option<f64>,
}

const METADATA_BYTES: usize = 1024;

impl Job {
    /// Returns the duration of the job as Darshan computes it. If there are no nanoseconds, the duration
    /// includes the last second.
    pub fn run_time_s(&self) -> f64 {
        if let Some(said) = self.said_run_time_s {
            return said;
        }
        let seconds = self.end.s.saturating_sub(self.start.s) as f64;
        match (self.start.ns, self.end.ns) {
            (Some(start), Some(end)) => seconds + (end as f64 - start as f64) / 1e9,
            _ => seconds + 1.0,
        }
    }

    /// Parses the bytes of the job's region. Returns `None` if there are too few.
    pub(crate) fn read(bytes: &[u8], order: ByteOrder, has_nanoseconds: bool) -> Option<Job> {
        let mut at = 0;
        let mut next = || {
            at += 8;
            order.i64(bytes, at - 8)
        };
        let uid = next()?;
        let start = Time { s: next()?, ns: if has_nanoseconds { Some(next()?) } else { None } };
        let end = Time { s: next()?, ns: if has_nanoseconds { Some(next()?) } else { None } };
        let (processes, id) = (next()?, next()?);
        let metadata = metadata(until_nul(bytes.get(at..at + METADATA_BYTES)?));
        let (command, mounts) = command_and_mounts(until_nul(bytes.get(at + METADATA_BYTES..)?));
        Some(Job { uid, start, end, processes, id, metadata, command, mounts, said_run_time_s: None })
    }
}

fn until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Parses lines of `key=value`.
fn metadata(text: String) -> Vec<(String, String)> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.into(), value.into())).collect()
}

/// Parses the command in the first line, and a file system with its mount point in each further line.
fn command_and_mounts(text: String) -> (Option<String>, Vec<Mount>) {
    let mut lines = text.split('\n');
    let command = lines.next().filter(|command| !command.is_empty()).map(String::from);
    let mounts = lines.filter_map(|line| line.split_once('\t'));
    (command, mounts.map(|(kind, path)| Mount { path: path.into(), file_system: kind.into() }).collect())
}
