//! Data types of readings, which every source returns: counters of an owner (a job, a session, the machine)
//! on a target.

use serde::{Deserialize, Serialize};

/// Index of a name within one [`Names`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Name(u16);

impl Name {
    /// Returns the name at this index of [`Names::texts`].
    pub fn numbered(at: usize) -> Self {
        Name(u16::try_from(at).unwrap_or(u16::MAX))
    }

    pub fn number(self) -> usize {
        usize::from(self.0)
    }
}

/// Names of operations without duplicates. Their number is limited, because a damaged file may contain any
/// number of names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: Vec<Box<str>>,
    /// Index of the name that the next call of [`Names::intern`] tries first. Entries list their operations
    /// in the same order.
    next: usize,
}

impl Names {
    pub const LIMIT: usize = 512;
    const LONGEST: usize = 64;

    /// Returns the name with this text. `None` if the text is not a valid name (see [`is_name`]) or there are
    /// too many names.
    pub fn intern(&mut self, text: &[u8]) -> Option<Name> {
        let is_it = |at: &usize| self.texts.get(*at).is_some_and(|known| known.as_bytes() == text);
        let found = Some(self.next).filter(is_it).or_else(|| (0..self.texts.len()).find(is_it));
        let at = match found {
            Some(at) => at,
            None => self.add(text)?,
        };
        self.next = at + 1;
        Some(Name(at as u16))
    }

    fn add(&mut self, text: &[u8]) -> Option<usize> {
        if self.texts.len() >= Self::LIMIT || !is_name(text) {
            return None;
        }
        self.texts.push(std::str::from_utf8(text).ok()?.into());
        Some(self.texts.len() - 1)
    }

    pub fn text(&self, name: Name) -> &str {
        &self.texts[usize::from(name.0)]
    }

    /// Returns the texts in the order of their indexes.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}

/// Returns whether the text consists of characters that names of operations, units and columns may have.
fn is_name(text: &[u8]) -> bool {
    (1..=Names::LONGEST).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(byte))
}

/// Quantity that a counter counts. All quantities except [`Quantity::Level`] only grow where they are
/// counted; [`Trend`] says whether sums of them also only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Quantity {
    /// Number of operations.
    Count,
    Bytes,
    /// Time spent, in microseconds.
    Time,
    /// Sum over all samples in another unit, such as requests, buffers or pages.
    Amount,
    /// Number of operations whose size is at most `bucket` bytes and more than half of `bucket`.
    BySize,
    /// Number of operations whose size in pages is at most `bucket` and more than half of `bucket`.
    ByPages,
    /// Number of operations that started while `bucket` requests were in flight.
    ByInFlight,
    /// Number of operations whose offset in pages is at most `bucket` and more than half of `bucket`.
    ByOffset,
    /// Number of operations with a latency of `bucket` microseconds.
    ByLatency,
    /// A level at the time of the reading, such as a number of connections.
    Level,
}

/// Whether sums over existing objects may become smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trend {
    #[default]
    Grows,
    /// Objects that end leave the sum, so a smaller value does not mean that a counter was reset.
    Falls,
}

impl Quantity {
    pub const ALL: [Quantity; 10] = [
        Quantity::Count,
        Quantity::Bytes,
        Quantity::Time,
        Quantity::Amount,
        Quantity::BySize,
        Quantity::ByPages,
        Quantity::ByInFlight,
        Quantity::ByOffset,
        Quantity::ByLatency,
        Quantity::Level,
    ];

    /// Returns the quantity with this name, for readings that arrive as text. Only quantities without a
    /// bucket have names: `count`, `bytes`, `time`, `level`.
    pub fn named(name: &str) -> Option<Quantity> {
        match name {
            "count" => Some(Quantity::Count),
            "bytes" => Some(Quantity::Bytes),
            "time" => Some(Quantity::Time),
            "level" => Some(Quantity::Level),
            _ => None,
        }
    }

    pub fn has_buckets(self) -> bool {
        (Quantity::BySize..=Quantity::ByLatency).contains(&self)
    }

    /// Returns the name of one counter of an operation. The operation's own name means its main counter: the
    /// bytes for `read_bytes` and the like, else the number of operations.
    pub fn metric_name(self, operation: &str) -> String {
        let counts_bytes = operation.ends_with("_bytes");
        let suffix = match self {
            Quantity::Count if counts_bytes => "_count",
            Quantity::Bytes if !counts_bytes => "_bytes",
            Quantity::Count | Quantity::Bytes | Quantity::Level => "",
            Quantity::Time => "_time",
            Quantity::Amount => "_sum",
            Quantity::BySize => "_by_size",
            Quantity::ByPages => "_by_pages",
            Quantity::ByInFlight => "_by_in_flight",
            Quantity::ByOffset => "_by_offset",
            Quantity::ByLatency => "_by_latency",
        };
        format!("{operation}{suffix}")
    }

    /// Returns the unit. It is `None` for levels, whose operation names contain the unit.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Quantity::Bytes => Some("bytes"),
            Quantity::Time => Some("us"),
            Quantity::Level => None,
            _ => Some("1"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Metric {
    pub operation: Name,
    pub quantity: Quantity,
    /// Bucket of a histogram in the quantity's unit. 0 for other quantities.
    pub bucket: u64,
}

impl Metric {
    pub fn new(operation: Name, quantity: Quantity) -> Self {
        Metric { operation, quantity, bucket: 0 }
    }
}

/// Evidence from which the owner is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Evidence {
    /// There is no owner: the counters are those of the whole machine, mount or target.
    #[default]
    Nobody,
    /// The file system's server reports the job's id. Clients choose this id, so users can change it.
    Server,
    /// The scheduler put the processes into the job's cgroup.
    Cgroup,
    /// The processes' environment contains the job's id. Users can change it.
    Environment,
    /// The processes belong to no job. The owner is a user, a login session and a command.
    Session,
    /// The scheduler's daemon reports the job's id.
    Scheduler,
}

impl Evidence {
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Nobody => "",
            Evidence::Server => "server",
            Evidence::Cgroup => "cgroup",
            Evidence::Environment => "environment",
            Evidence::Session => "session",
            Evidence::Scheduler => "scheduler",
        }
    }
}

/// The owner of I/O. Ids are bytes, because job ids come from users and may contain any byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    pub evidence: Evidence,
    pub job: Vec<u8>,
    pub user: Vec<u8>,
    /// The login session outside of jobs. In a job, the step, if known.
    pub session: Vec<u8>,
    pub command: Vec<u8>,
}

impl Owner {
    /// Returns whether the owner is a job. This includes a job whose id is unknown.
    pub fn has_job(&self) -> bool {
        !matches!(self.evidence, Evidence::Nobody | Evidence::Session)
    }

    /// Empties the fields, and keeps their memory for reuse.
    pub fn clear(&mut self) {
        self.evidence = Evidence::Nobody;
        for id in [&mut self.job, &mut self.user, &mut self.session, &mut self.command] {
            id.clear();
        }
    }

    pub fn copy_from(&mut self, other: &Owner) {
        self.evidence = other.evidence;
        self.job.clone_from(&other.job);
        self.user.clone_from(&other.user);
        self.session.clone_from(&other.session);
        self.command.clone_from(&other.command);
    }
}

/// All counters of one owner on one target. Readers reuse one entry for all lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub owner: Owner,
    /// Counters and their values. In an entry of a job, counters that are zero are left out.
    pub values: Vec<(Metric, u64)>,
    /// Time at which the counters started at zero, ns since the epoch by the server's clock, if known.
    pub start_time: Option<i64>,
    /// Time at which the counters last changed, ns since the epoch by the server's clock, if known.
    pub updated: Option<i64>,
}

impl Entry {
    pub fn clear(&mut self) {
        self.owner.clear();
        self.values.clear();
        (self.start_time, self.updated) = (None, None);
    }

    /// Largest number of values: 64 operations with 64 values each, more than any real file has. A damaged
    /// file may contain any number.
    pub const LIMIT: usize = 4096;

    /// Adds a counter. Returns `None`, without a change, if the counter exists already or there are too many.
    pub fn push(&mut self, operation: Name, quantity: Quantity, value: u64) -> Option<()> {
        self.push_metric(Metric::new(operation, quantity), value)
    }

    /// Adds a counter, with the same result as [`Entry::push`].
    pub fn push_metric(&mut self, metric: Metric, value: u64) -> Option<()> {
        (self.values.len() < Self::LIMIT && !self.has(metric)).then(|| self.values.push((metric, value)))
    }

    /// Returns whether each metric occurs once and there are not too many. [`Entry::push`] ensures this, but
    /// decoded bytes may violate it.
    pub fn is_sound(&self) -> bool {
        let mut metrics: Vec<Metric> = self.values.iter().map(|(metric, _)| *metric).collect();
        metrics.sort_unstable();
        metrics.len() <= Self::LIMIT && metrics.windows(2).all(|pair| pair[0] != pair[1])
    }

    pub fn has(&self, metric: Metric) -> bool {
        self.values.iter().any(|(known, _)| *known == metric)
    }
}

/// Returns a name of a file or device, or a message, as one line of text. Control characters and invalid
/// UTF-8 become `\xNN`.
pub fn printable(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter.is_control() {
                true => letter.to_string().bytes().for_each(|byte| text.push_str(&format!("\\x{byte:02x}"))),
                false => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// Returns an id as text. Different ids have different texts: each backslash is doubled, and the rest is as
/// in [`printable`].
pub fn unique_text(id: &[u8]) -> String {
    id.split(|byte| *byte == b'\\').map(printable).collect::<Vec<_>>().join("\\\\")
}

/// One counter at one moment, as displayed and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Kind of file that the counter comes from, e.g. `mdt_job_stats`.
    pub source: &'static str,
    pub host: &'a str,
    /// The file system, if the source has one: `lfs` for `lfs-OST0001`, `server:/export` for NFS.
    pub file_system: &'a str,
    /// Target, mount point, device or resource that the counter belongs to.
    pub target: &'a str,
    pub owner: &'a Owner,
    pub operation: &'a str,
    pub quantity: Quantity,
    pub bucket: u64,
    pub value: u64,
    /// Time at which the counters started (see [`Entry::start_time`]).
    pub start_time: Option<i64>,
    /// Time at which the counters last changed (see [`Entry::updated`]).
    pub updated: Option<i64>,
    /// Time of the reading, ns since the epoch by the agent's clock. Rates are computed from it.
    pub time: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_printable_and_stay_different() {
        assert_eq!(printable(b"lfs-OST\xff"), "lfs-OST\\xff");
        assert_ne!(printable(b"\xff"), printable(b"\xfe"));
        assert_eq!(printable(b"a\n\x1b[2J"), "a\\x0a\\x1b[2J");
    }

    #[test]
    fn different_ids_have_different_texts() {
        assert_eq!(unique_text(b"190:20:30"), "190:20:30");
        assert_eq!(unique_text(b"\\\n"), "\\\\\\x0a");
        let ids: [&[u8]; 4] = [b"\n", b"\\x0a", b"\\\n", b"\\\\x0a"];
        let texts: std::collections::BTreeSet<String> = ids.iter().map(|id| unique_text(id)).collect();
        assert_eq!(texts.len(), 4);
    }

    #[test]
    fn a_counter_is_named_after_its_operation() {
        assert_eq!(Quantity::Bytes.metric_name("write_bytes"), "write_bytes");
        assert_eq!(Quantity::Count.metric_name("write_bytes"), "write_bytes_count");
        assert_eq!(Quantity::Count.metric_name("open"), "open");
        assert_eq!(Quantity::Time.metric_name("open"), "open_time");
        assert_eq!(Quantity::Bytes.metric_name("read"), "read_bytes");
    }

    #[test]
    fn each_metric_occurs_once_and_entries_are_bounded() {
        let mut names = Names::default();
        let read = names.intern(b"read").expect("a name");
        let mut entry = Entry::default();
        assert!(
            entry.push(read, Quantity::Bytes, 1).is_some() && entry.push(read, Quantity::Count, 2).is_some()
        );
        assert_eq!(entry.push(read, Quantity::Bytes, 3), None);
        for bucket in 0..2 * Entry::LIMIT as u64 {
            entry.push_metric(Metric { operation: read, quantity: Quantity::BySize, bucket }, 1);
        }
        assert_eq!((entry.values[0].1, entry.values.len()), (1, Entry::LIMIT));
    }

    #[test]
    fn names_are_stored_once_and_bounded() {
        let mut names = Names::default();
        let (open, close) = (names.intern(b"open"), names.intern(b"close"));
        assert_eq!((names.intern(b"open"), names.intern(b"close")), (open, close));
        assert_eq!(open.map(|name| names.text(name)), Some("open"));
        assert_eq!((names.intern(b""), names.intern(b"a b"), names.intern(b"\xff")), (None, None, None));
        for number in 0..2 * Names::LIMIT {
            names.intern(format!("made_up_{number}").as_bytes());
        }
        assert_eq!(names.intern(b"one_more"), None);
        assert_eq!(names.intern(b"open"), open);
    }
}
