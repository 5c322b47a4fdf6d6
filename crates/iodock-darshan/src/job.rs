//! A log's information about its job.

use crate::ByteOrder;

/// A moment: seconds since 1970, and nanoseconds if the format has them (since 3.41).
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
    /// In the order of the log: `lib_ver`, `h` (hints of MPI-IO) and additions of a site.
    pub metadata: Vec<(String, String)>,
    /// The program and its arguments, as far as Darshan keeps them.
    pub command: Option<String>,
    /// As in the log, in its order.
    pub mounts: Vec<Mount>,
    /// Duration of the job, if a text contains it: it has no nanoseconds.
    pub said_run_time_s: Option<f64>,
}

const METADATA_BYTES: usize = 1024;

impl Job {
    /// Duration of the job as Darshan computes it: without nanoseconds the last second is included.
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

    /// Reads the bytes of the job's region. None: there are too few.
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

/// Lines of `key=value`.
fn metadata(text: String) -> Vec<(String, String)> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.into(), value.into())).collect()
}

/// The command in the first line, and in each further line a file system and its mount point.
fn command_and_mounts(text: String) -> (Option<String>, Vec<Mount>) {
    let mut lines = text.split('\n');
    let command = lines.next().filter(|command| !command.is_empty()).map(String::from);
    let mounts = lines.filter_map(|line| line.split_once('\t'));
    (command, mounts.map(|(kind, path)| Mount { path: path.into(), file_system: kind.into() }).collect())
}
