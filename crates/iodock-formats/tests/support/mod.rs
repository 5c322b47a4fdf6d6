//! Sums over the records of a log that need no tracking, for comparison with known truths.
#![allow(dead_code)]

pub mod strace_logs;

use iodock_event::{
    Action, Batch, Losses, Outcome, Phase, RawCall, Record, SourceCounts, SourceError, UNKNOWN,
};
use iodock_formats::{open_log, Input, LogFormat, LogSource, ReadOptions};
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTally {
    pub count: u64,
    pub success: u64,
    pub errors: u64,
    pub noresult: u64,
    pub errno: BTreeMap<String, u64>,
    pub timed: u64,
    pub total_ns: i64,
    pub min_ns: Option<i64>,
    pub max_ns: Option<i64>,
    pub bytes_read: i64,
    pub bytes_written: i64,
}

impl CallTally {
    fn add(&mut self, raw: &RawCall) {
        self.count += 1;
        match raw.outcome {
            Outcome::Succeeded => self.success += 1,
            Outcome::Failed => {
                self.errors += 1;
                *self.errno.entry(raw.errno.name()).or_default() += 1;
            }
            Outcome::NoResult => self.noresult += 1,
        }
        if raw.duration != UNKNOWN {
            self.timed += 1;
            self.total_ns += raw.duration;
            self.min_ns = Some(self.min_ns.map_or(raw.duration, |min| min.min(raw.duration)));
            self.max_ns = Some(self.max_ns.map_or(raw.duration, |max| max.max(raw.duration)));
        }
        if raw.outcome == Outcome::Succeeded && raw.result > 0 {
            let (read, written) = transferred(raw);
            self.bytes_read += read;
            self.bytes_written += written;
        }
    }
}

fn transferred(raw: &RawCall) -> (i64, i64) {
    match raw.call.spec().action {
        Action::Read | Action::PositionedRead | Action::Receive => (raw.result, 0),
        Action::Write | Action::PositionedWrite | Action::Send => (0, raw.result),
        Action::Transfer => (raw.result, raw.result),
        _ => (0, 0),
    }
}

/// The sums over all records of a log.
#[derive(Debug, Default)]
pub struct Tally {
    pub calls: BTreeMap<String, CallTally>,
    pub counts: SourceCounts,
    pub losses: Losses,
    pub records: u64,
    pub enters: u64,
    pub ends: u64,
    pub first: Option<i64>,
    pub last: Option<i64>,
    pub forks: Vec<(u32, u32)>,
    /// Every record as text, to compare two readings of a log.
    pub shown: Vec<String>,
}

impl Tally {
    pub fn of(source: &mut dyn LogSource) -> Result<Tally, SourceError> {
        let mut tally = Tally::default();
        while let Some(batch) = source.next_batch()? {
            tally.add(&batch);
            source.recycle(batch);
        }
        Ok(tally)
    }

    fn add(&mut self, batch: &Batch) {
        self.counts.add(&batch.counts);
        self.losses.merge(&batch.losses);
        self.forks.extend(batch.forks.iter().map(|fork| (fork.parent_tid, fork.child_tid)));
        for record in &batch.records {
            self.records += 1;
            self.shown.push(shown(record, batch));
            match record {
                Record::Call(raw) if raw.phase == Phase::Enter => {
                    self.enters += 1;
                    self.see(raw.start);
                }
                Record::Call(raw) => {
                    self.see(raw.start);
                    self.see(raw.end);
                    self.calls.entry(raw.call.name()).or_default().add(raw);
                }
                Record::End(end) => {
                    self.ends += 1;
                    self.see(end.time);
                }
                _ => {}
            }
        }
    }

    fn see(&mut self, time: i64) {
        if time != UNKNOWN {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
        }
    }

    pub fn total(&self) -> u64 {
        self.calls.values().map(|call| call.count).sum()
    }
}

/// Returns a record as text, without its positions in the batch, which depend on how the log was divided into
/// chunks.
pub fn shown(record: &Record, batch: &Batch) -> String {
    let Record::Call(raw) = record else { return format!("{:?}", without_texts(record, batch)) };
    let text = |text| String::from_utf8_lossy(batch.text(text)).into_owned();
    let items = &batch.items[raw.items.start as usize..(raw.items.start + raw.items.count) as usize];
    format!(
        "{} {} {:?} {:?} {} {} start {} end {} took {} asked {} at {} {} arg {} flags {:#x} fd {} {} stat {} {} \
         [{}] [{}] [{}] [{}] [{}] [{}] [{}] cut {} items {:?}",
        raw.tid, raw.call.name(), raw.phase, raw.outcome, raw.result, raw.errno.name(), raw.start, raw.end, raw.duration,
        raw.requested, raw.offset, raw.offset2, raw.argument, raw.flags, raw.fd, raw.fd2, raw.stat_type, raw.stat_size,
        text(raw.path), text(raw.path2), text(raw.argv), text(raw.fd_text), text(raw.fd2_text), text(raw.result_text),
        text(raw.stack), raw.path_cut, items,
    )
}

fn without_texts(record: &Record, batch: &Batch) -> String {
    match record {
        Record::End(end) => format!(
            "{} ended {} {:?} {} {} {:?}",
            end.tid,
            end.time,
            end.exit_code,
            String::from_utf8_lossy(batch.text(end.signal)),
            end.core_dumped,
            end.superseded_by
        ),
        other => format!("{other:?}"),
    }
}

/// Returns the folder `fixtures/cases` of the workspace.
pub fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases")
}

/// Returns the bytes of a fixture, which may be compressed with xz.
pub fn bytes_of(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|ending| ending != "xz") {
        return packed;
    }
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(Cursor::new(packed)).read_to_end(&mut bytes).unwrap();
    bytes
}

pub fn json_of(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&bytes_of(path)).unwrap()
}

pub fn read_file(path: &Path, options: &ReadOptions) -> Result<Tally, SourceError> {
    Tally::of(open_log(path.to_str().unwrap(), None, options)?.as_mut())
}

/// Reads `log` as a log of strace, without detecting the format.
pub fn read_strace(log: &[u8], options: &ReadOptions) -> Result<Tally, SourceError> {
    let input = Input::from_reader(Box::new(Cursor::new(log.to_vec())), "test.log", None)?;
    Tally::of(iodock_formats::strace::Strace.open(input, options)?.as_mut())
}

pub fn small_chunks(chunk_size: usize) -> ReadOptions {
    ReadOptions { chunk_size, ..ReadOptions::default() }
}

/// A generator of reproducible numbers (xorshift64*), so that every run produces the same damage.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}
