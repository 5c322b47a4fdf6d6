//! A batch of records from a source, with the bytes that the records refer to and the source's own counts.

use crate::record::{AsyncItem, RawCall, Record, Text};
use crate::{CallId, LossKind, Losses};
use std::collections::BTreeMap;

/// A successful fork, vfork or clone in this batch. The tracker learns of it before it tracks the records, so
/// that it finds the parent of a child whose first call precedes the parent's return.
#[derive(Clone, Copy, Debug)]
pub struct Fork {
    pub parent_tid: u32,
    pub child_tid: u32,
    pub flags: u64,
    pub call: CallId,
}

/// Totals of one call over the whole log, for a source that shows no single calls. A field is `None` if the
/// source does not show it. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTotal {
    pub call: CallId,
    pub calls: Option<i64>,
    pub errors: Option<i64>,
    /// Sum of the time between the beginning and the end of each call.
    pub time: Option<i64>,
    pub shortest: Option<i64>,
    pub longest: Option<i64>,
    /// Sum of the CPU time that the kernel used for the calls.
    pub sys_cpu: Option<i64>,
    pub least_sys_cpu: Option<i64>,
    pub most_sys_cpu: Option<i64>,
}

impl CallTotal {
    /// Returns totals for `call` in which every field is unknown.
    pub fn new(call: CallId) -> CallTotal {
        CallTotal {
            call,
            calls: None,
            errors: None,
            time: None,
            shortest: None,
            longest: None,
            sys_cpu: None,
            least_sys_cpu: None,
            most_sys_cpu: None,
        }
    }

    /// Returns the sum of both totals. A field is known only if both have it.
    pub fn with(&self, other: &CallTotal) -> CallTotal {
        let both = |join: fn(i64, i64) -> i64, one: Option<i64>, other: Option<i64>| Some(join(one?, other?));
        CallTotal {
            call: self.call,
            calls: both(i64::saturating_add, self.calls, other.calls),
            errors: both(i64::saturating_add, self.errors, other.errors),
            time: both(i64::saturating_add, self.time, other.time),
            shortest: both(i64::min, self.shortest, other.shortest),
            longest: both(i64::max, self.longest, other.longest),
            sys_cpu: both(i64::saturating_add, self.sys_cpu, other.sys_cpu),
            least_sys_cpu: both(i64::min, self.least_sys_cpu, other.least_sys_cpu),
            most_sys_cpu: both(i64::max, self.most_sys_cpu, other.most_sys_cpu),
        }
    }
}

/// Counts that a source keeps in addition to its records.
#[derive(Clone, Debug, Default)]
pub struct SourceCounts {
    pub lines: u64,
    pub unfinished: u64,
    pub resumed: u64,
    pub orphans: u64,
    pub signals: BTreeMap<String, u64>,
    /// Number of calls with and without a duration. Readers use it to detect whether strace ran with `-T`.
    pub timed: u64,
    pub untimed: u64,
}

impl SourceCounts {
    pub fn add(&mut self, other: &SourceCounts) {
        self.lines += other.lines;
        self.unfinished += other.unfinished;
        self.resumed += other.resumed;
        self.orphans += other.orphans;
        self.timed += other.timed;
        self.untimed += other.untimed;
        for (name, count) in &other.signals {
            *self.signals.entry(name.clone()).or_default() += count;
        }
    }
}

/// Records, and the bytes that they refer to. Callers should clear and reuse a batch, because that keeps its
/// allocated memory.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub records: Vec<Record>,
    pub bytes: Vec<u8>,
    pub items: Vec<AsyncItem>,
    pub forks: Vec<Fork>,
    /// Totals of each call. Only sources that show no single calls fill this.
    pub totals: Vec<CallTotal>,
    pub counts: SourceCounts,
    pub losses: Losses,
}

impl Batch {
    /// Stores `bytes` in the batch, and returns their position.
    pub fn push_text(&mut self, bytes: &[u8]) -> Text {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        Text { start, length: bytes.len() as u32 }
    }

    /// Returns the bytes of `text`, which are empty for [`Text::NONE`].
    pub fn text(&self, text: Text) -> &[u8] {
        if !text.is_some() {
            return &[];
        }
        &self.bytes[text.start as usize..(text.start + text.length) as usize]
    }

    /// Adds `record`, which belongs to the batch `other`, and copies its texts and items.
    pub fn push_copy(&mut self, mut record: Record, other: &Batch) {
        if let Record::Call(RawCall { items, .. }) = &mut record {
            let start = self.items.len() as u32;
            self.items.extend(other.items.iter().skip(items.start as usize).take(items.count as usize));
            items.start = start;
        }
        let texts: &mut [&mut Text] = match &mut record {
            Record::Call(raw) => &mut [
                &mut raw.path,
                &mut raw.path2,
                &mut raw.argv,
                &mut raw.fd_text,
                &mut raw.fd2_text,
                &mut raw.result_text,
                &mut raw.stack,
            ],
            Record::End(end) => &mut [&mut end.signal],
            Record::Start(start) => &mut [&mut start.working_directory, &mut start.command],
            Record::Descriptor(descriptor) => &mut [&mut descriptor.target],
            Record::Interface(interface) => &mut [&mut interface.name],
            Record::Identity(_) => &mut [],
        };
        for text in texts.iter_mut().filter(|text| text.is_some()) {
            **text = self.push_text(other.text(**text));
        }
        self.records.push(record);
    }

    pub fn lose(&mut self, kind: LossKind) {
        self.losses.add(kind, 1);
    }

    pub fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
        self.items.clear();
        self.forks.clear();
        self.totals.clear();
        self.counts = SourceCounts::default();
        self.losses = Losses::default();
    }
}
