//! Converts the counters of a light recording (`iodock record --light`) to profiles, which contain the
//! operations of each process on each file.

use super::bins::{BINS, SIZES};
use crate::parts::{Counted, Part};
use crate::pipeline::Imported;
use crate::ImportError;
use iodock_event::ranks::RankSet;
use iodock_event::{FileEntry, FileKind, FileTable, LossKind, Tables, TaskRow};
use iodock_preload::calls::Counts;
use iodock_preload::light::{words, Row, RowKind, Table};
use iodock_preload::light::{ALIGNMENTS, FIRST_TIME, GAP_BINS, SIZE_BINS, TIME_BINS};
use iodock_store::{AccessRow, BinRow, Manifest, ProfileRow, ProfileTables, StoreWriter};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Key in the manifest for the ranks that have counters instead of calls.
pub const COUNTED_RANKS: &str = "counted_ranks";
const INTERFACE: &str = "posix";
/// Alignment in bytes. Offsets that are not multiples of it count as unaligned.
const ALIGNMENT: i64 = 4096;

/// Counters that have no column in profiles: the name (Darshan's name if Darshan has the counter), and the
/// index of the word with the value.
const COUNTERS: [(&str, usize); 12] = [
    ("POSIX_CONSEC_READS", words::CONSECUTIVE),
    ("POSIX_CONSEC_WRITES", words::CONSECUTIVE + 1),
    ("POSIX_SEQ_READS", words::SEQUENTIAL),
    ("POSIX_SEQ_WRITES", words::SEQUENTIAL + 1),
    ("POSIX_RW_SWITCHES", words::SWITCHES),
    ("POSIX_FILE_NOT_ALIGNED", words::UNALIGNED),
    ("POSIX_MMAPS", words::MAPS),
    ("OTHER_METADATA_CALLS", words::OTHERS),
    ("FAILED_CALLS", words::FAILED),
    ("UNTIMED_ACCESSES", words::UNTIMED),
    ("ACCESSES_WITHOUT_OFFSET", words::UNPLACED),
    ("POSIX_MAX_BYTE_READ", words::MOST_END),
];
const MORE_COUNTERS: [&str; 2] = ["POSIX_MAX_BYTE_WRITTEN", "POSIX_FILE_ALIGNMENT"];
/// Counters that are unknown if an offset is unknown.
const OF_OFFSETS: [usize; 6] = [
    words::CONSECUTIVE,
    words::CONSECUTIVE + 1,
    words::SEQUENTIAL,
    words::SEQUENTIAL + 1,
    words::UNALIGNED,
    words::MOST_END,
];

/// Index of the part, process, and file of a profile.
type Key = (usize, Option<u32>, u32);

/// Collects the rows of all processes; rows with the same key become one profile.
#[derive(Default)]
struct Profiles {
    files: FileTable,
    numbers: FxHashMap<Vec<u8>, u32>,
    rows: BTreeMap<Key, Summed>,
}

/// The sum of the rows of one file and process. A process can have several: from its threads, and from
/// programs that it executed one after the other.
struct Summed {
    kind: RowKind,
    words: [u64; words::ALL],
}

/// Writes the profiles of all parts, and returns their number. Leaves out files that are known only from the
/// calls that were recorded to track processes.
///
/// # Errors
/// The store cannot be written.
pub fn write(
    parts: &mut [Part],
    counted: &Counted,
    imported: &mut Imported,
    writer: &mut StoreWriter,
) -> Result<u64, ImportError> {
    let mut profiles = Profiles::default();
    if *counted != Counted::All {
        profiles.beside(std::mem::take(&mut imported.tracked.tables.files));
    }
    let mut accesses = Vec::new();
    let mut begun = Vec::new();
    for (number, part) in parts.iter_mut().enumerate() {
        let Some(counts) = &mut part.light else { continue };
        for table in std::mem::take(&mut counts.tables) {
            let moment = counts.moment(table.begun);
            let upid = process_of(&imported.tracked.tables, &table, moment);
            begun.extend(upid.map(|upid| (upid, moment)));
            lose(imported, &table);
            let files = profiles.add(number, upid, &table);
            accesses.push((number, upid, files, table.accesses));
        }
    }
    // The recorder already detected some of these programs when they were executed.
    let known = imported.losses.count(LossKind::UnreachedPrograms);
    let missing = uncounted(&imported.tracked.tables, begun, counted).saturating_sub(known);
    imported.losses.add(LossKind::UnreachedPrograms, missing);
    let tables = &mut imported.tracked.tables;
    tables.files = std::mem::take(&mut profiles.files);
    iodock_tracker::fill_patterns(&mut tables.files);
    let into = writer.profiles()?;
    for name in COUNTERS.iter().map(|(name, _)| *name).chain(MORE_COUNTERS) {
        into.field(INTERFACE, name)?;
    }
    for (&(number, upid, file), summed) in &profiles.rows {
        let part = &mut parts[number];
        let task = upid.and_then(|upid| tables.tasks.iter().find(|task| task.upid == upid));
        let told = Told { part, task, upid, file, name: tables.files.names.get(file) };
        told.write(summed, into)?;
    }
    for (number, upid, files, kept) in accesses {
        let part = &mut parts[number];
        let (rank, host) = (rank_of(part, &tables.tasks, upid), part.host.clone());
        let Some(counts) = &mut part.light else { continue };
        for access in kept {
            let Some(&file) = files.get(access.row) else { continue };
            into.access(&AccessRow {
                file,
                interface: INTERFACE,
                rank,
                host: Some(host.as_str()).filter(|host| !host.is_empty()),
                thread: Some(i64::from(access.tid)),
                is_write: access.is_write,
                offset: access.offset.map(signed),
                bytes: Some(signed(access.bytes)),
                ts: Some(counts.moment(access.start)),
                dur: Some(counts.nanoseconds(access.duration) as i64),
            })?;
        }
    }
    Ok(profiles.rows.len() as u64)
}

/// Adds facts about a light recording to the manifest.
pub fn tell(manifest: &mut Manifest, parts: &[Part], counted: &Counted, imported: &Imported) {
    let tasks = imported.tracked.tables.tasks.iter();
    let ranks: RankSet = tasks.filter_map(|task| task.rank.filter(|_| counted.holds(task.rank))).collect();
    if !ranks.is_empty() {
        manifest.source.others.insert(COUNTED_RANKS.into(), ranks.to_string().into());
    }
    let memory = parts.iter().find_map(|part| part.reader().meta().extra.get("light").cloned());
    if let Some(memory) = memory {
        manifest.source.others.insert("light".into(), memory.into());
    }
    if *counted != Counted::All && imported.rows > 0 {
        return;
    }
    // These calls were recorded only to track processes, so they are not the calls of the program.
    manifest.source.calls = 0;
    manifest.io = None;
    let times: Vec<i64> = parts.iter().filter_map(|part| part.reader().meta().start).collect();
    manifest.first_ts = times.iter().copied().min();
    manifest.last_ts = manifest.first_ts.zip(manifest.captured.wall_ns).map(|(first, wall)| first + wall);
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn lose(imported: &mut Imported, table: &Table) {
    let losses = &mut imported.losses;
    losses.add(LossKind::FoldedFiles, corrected(table));
    losses.add(LossKind::UncountedRequests, table.asynchronous);
}

/// Returns the number of programs that were executed but have no table: static programs, and those that
/// removed LD_PRELOAD. Other programs create a table when they are loaded, even if they never count anything.
/// `begun` contains the process and the time of each table.
fn uncounted(tables: &Tables, mut begun: Vec<(u32, i64)>, counted: &Counted) -> u64 {
    begun.sort_unstable();
    let mut executed: Vec<(u32, i64)> = Vec::new();
    for command in (0..tables.commands.len()).map(|at| tables.commands.row(at)) {
        let task = tables.tasks.get(command.utid as usize).filter(|task| counted.holds(task.rank));
        executed.extend(task.map(|task| (task.upid, command.ts)));
    }
    executed.sort_unstable();
    let is_counted = |at: usize| {
        let (upid, from) = executed[at];
        let until = executed.get(at + 1).filter(|next| next.0 == upid).map_or(i64::MAX, |next| next.1);
        let first = begun.partition_point(|&one| one < (upid, from));
        begun.get(first).is_some_and(|&(of, moment)| of == upid && moment <= until)
    };
    (0..executed.len()).filter(|&at| !is_counted(at)).count() as u64
}

/// Returns the estimated number of files that were counted together. Each file sets one bit, and the more
/// bits are set, the more files share a bit.
fn corrected(table: &Table) -> u64 {
    let (bits, met) = (f64::from(table.seen_bits), table.folded as f64);
    if met == 0.0 || met >= bits {
        return table.folded;
    }
    (-bits * (1.0 - met / bits).ln()).round() as u64
}

/// Returns the process of a table. The kernel reuses process ids, so it is the last process with that id that
/// had begun at the table's time.
fn process_of(tables: &Tables, table: &Table, begun: i64) -> Option<u32> {
    let pid = table.pid as i32;
    let all = || tables.tasks.iter().filter(|task| task.pid == pid && task.tid == pid);
    let before = all().filter(|task| task.start <= begun).max_by_key(|task| task.start);
    before.or_else(|| all().min_by_key(|task| task.start)).map(|task| task.upid)
}

fn rank_of(part: &Part, tasks: &[TaskRow], upid: Option<u32>) -> Option<i32> {
    let task = upid.and_then(|upid| tasks.iter().find(|task| task.upid == upid));
    task.and_then(|task| task.rank).or(part.rank)
}

impl Profiles {
    /// Adds the files of recorded calls. A file with the same name is the same file.
    fn beside(&mut self, files: FileTable) {
        for id in (0..files.len() as u32).rev() {
            self.numbers.insert(files.names.get(id).to_vec(), id);
        }
        self.files = files;
    }

    /// Adds a process's rows, and their files. Returns the files.
    fn add(&mut self, part: usize, upid: Option<u32>, table: &Table) -> Vec<u32> {
        let share = corrected(table) as f64 / (table.folded.max(1) as f64);
        let mut files = Vec::new();
        for row in &table.rows {
            let file = self.file(row);
            files.push(file);
            let mut words = row.words;
            words[words::FILES] = (words[words::FILES] as f64 * share).round() as u64;
            if (words::CALLS..words::ALL).all(|word| !words::is_sum(word) || words[word] == 0) {
                continue;
            }
            let new = || Summed { kind: row.kind, words: [0; words::ALL] };
            self.rows.entry((part, upid, file)).or_insert_with(new).add(&words);
        }
        files
    }

    fn file(&mut self, row: &Row) -> u32 {
        let mut name = Vec::new();
        let has_path = row.name.first() == Some(&b'/');
        match has_path {
            true => iodock_tracker::resolve(&mut name, None, None, &row.name),
            false => name.extend_from_slice(known_as(&row.name)),
        }
        let files = &mut self.files;
        let (numbers, is_one) = (&mut self.numbers, row.kind == RowKind::File);
        *numbers.entry(name).or_insert_with_key(|name| {
            let kind = if has_path && is_one { FileKind::File } else { kind_of(name, is_one) };
            files.push(name, FileEntry::new(kind))
        })
    }
}

/// Names that the kernel gives to objects without a file name, and the names and kinds that recordings of
/// calls use for them.
const UNNAMED: [(&[u8], &[u8], FileKind); 6] = [
    (b"anon_inode:[eventfd]", b"eventfd", FileKind::Eventfd),
    (b"anon_inode:[eventpoll]", b"epoll", FileKind::Epoll),
    (b"anon_inode:[timerfd]", b"timerfd", FileKind::Timerfd),
    (b"anon_inode:[signalfd]", b"signalfd", FileKind::Signalfd),
    (b"anon_inode:inotify", b"inotify", FileKind::Inotify),
    (b"anon_inode:[pidfd]", b"pidfd", FileKind::Pidfd),
];

fn known_as(name: &[u8]) -> &[u8] {
    UNNAMED.iter().find(|one| one.0 == name).map_or(name, |one| one.1)
}

fn kind_of(name: &[u8], is_one: bool) -> FileKind {
    match name {
        b"pipe" => FileKind::Pipe,
        b"socket" => FileKind::Socket,
        _ if is_one => UNNAMED.iter().find(|one| one.1 == name).map_or(FileKind::Unknown, |one| one.2),
        _ => FileKind::Other,
    }
}

impl Summed {
    fn add(&mut self, more: &[u64; words::ALL]) {
        for word in (0..words::ALL).filter(|&word| words::is_sum(word)) {
            self.words[word] = self.words[word].saturating_add(more[word]);
        }
        let (first, had) = (more[words::FIRST], self.words[words::FIRST]);
        self.words[words::FIRST] = if first == 0 || (had != 0 && had < first) { had } else { first };
        for word in [words::LAST, words::MOST_END, words::MOST_END + 1] {
            self.words[word] = self.words[word].max(more[word]);
        }
        self.words[words::ALIGNMENTS] |= more[words::ALIGNMENTS];
    }
}

/// A row of a profile, and the data that belong to it.
struct Told<'a> {
    part: &'a mut Part,
    task: Option<&'a TaskRow>,
    upid: Option<u32>,
    file: u32,
    name: &'a [u8],
}

impl Told<'_> {
    fn write(self, summed: &Summed, into: &mut ProfileTables) -> Result<(), ImportError> {
        let part = self.part;
        let job = part.reader().meta().extra.get("job.id").cloned();
        let (host, part_rank) = (part.host.clone(), part.rank);
        let Some(counts) = &mut part.light else { return Ok(()) };
        let word = |at: usize| Some(signed(summed.words[at]));
        let mut time = |at: usize| Some(counts.nanoseconds(summed.words[at]).round() as i64);
        let counted = iodock_store::Counts {
            opens: word(words::OPENS),
            reads: word(words::CALLS),
            writes: word(words::CALLS + 1),
            seeks: word(words::SEEKS),
            stats: word(words::STATS),
            syncs: word(words::SYNCS),
            read_bytes: word(words::BYTES),
            written_bytes: word(words::BYTES + 1),
            read_time_ns: time(words::TIME),
            write_time_ns: time(words::TIME + 1),
            meta_time_ns: time(words::META_TIME),
        };
        let pattern = String::from_utf8_lossy(self.name);
        let is_one = summed.kind == RowKind::File;
        let [first_ts, last_ts] =
            [words::FIRST, words::LAST].map(|at| Some(summed.words[at]).filter(|&ticks| ticks > 0));
        let profile = into.profile(&ProfileRow {
            job: job.as_deref(),
            host: Some(host.as_str()).filter(|host| !host.is_empty()),
            rank: self.task.and_then(|task| task.rank).or(part_rank),
            ranks: Some(1),
            upid: self.upid,
            file: self.file,
            pattern: (!is_one).then_some(&*pattern),
            files: if is_one { Some(1) } else { word(words::FILES) },
            interface: INTERFACE,
            counts: counted,
            first_ts: first_ts.map(|ticks| counts.moment(ticks)),
            last_ts: last_ts.map(|ticks| counts.moment(ticks)),
            estimated: &estimated(summed),
            ..ProfileRow::default()
        })?;
        counters(summed, profile, into)?;
        bins(summed, counts).iter().try_for_each(|bin| into.bin(profile, bin))?;
        Ok(())
    }
}

fn estimated(summed: &Summed) -> Vec<&'static str> {
    let mut names = Vec::new();
    if summed.kind != RowKind::File {
        names.push("files");
    }
    if summed.words[words::UNTIMED] > 0 {
        names.extend(["read_time_ns", "write_time_ns"]);
    }
    names
}

fn counters(summed: &Summed, profile: u32, into: &mut ProfileTables) -> Result<(), ImportError> {
    let all = &summed.words;
    let has_offsets = all[words::UNPLACED] == 0;
    let most = words::MOST_END + 1;
    for (name, at) in COUNTERS.into_iter().chain([(MORE_COUNTERS[0], most)]) {
        let is_end = at == words::MOST_END || at == most;
        let value = signed(all[at]) - i64::from(is_end && all[at] > 0);
        if !has_offsets && (OF_OFFSETS.contains(&at) || is_end) {
            into.counter(profile, name, None, None)?;
        } else if value != 0 {
            into.counter(profile, name, Some(value), None)?;
        }
    }
    Ok(into.counter(profile, MORE_COUNTERS[1], Some(ALIGNMENT), None)?)
}

fn bins(summed: &Summed, counts: &mut Counts) -> Vec<BinRow> {
    let all = &summed.words;
    let mut found = Vec::new();
    let mut add = |quantity, low, high, at: usize| {
        if all[at] > 0 {
            found.push(BinRow { quantity, low, high, count: Some(signed(all[at])), bytes: None });
        }
    };
    for (direction, (quantity, _)) in SIZES.into_iter().enumerate() {
        for (bin, (low, high)) in size_bins().into_iter().enumerate() {
            add(quantity, low, high, words::SIZES + direction * SIZE_BINS + bin);
        }
    }
    add("gap", i64::MIN, Some(-1), words::GAPS);
    add("gap", 0, Some(0), words::GAPS + 1);
    for (bin, (low, high)) in size_bins().into_iter().take(GAP_BINS - 2).enumerate() {
        let is_last = bin + 3 == GAP_BINS;
        add("gap", low.max(1), high.filter(|_| !is_last), words::GAPS + 2 + bin);
    }
    for bin in 0..TIME_BINS {
        let mut edge = |bin: usize| counts.nanoseconds(1 << (FIRST_TIME + 2 * bin as u32)).round() as i64;
        let low = if bin == 0 { 0 } else { edge(bin - 1) };
        let high = (bin + 1 < TIME_BINS).then(|| edge(bin) - 1);
        add("read-or-write-time", low, high, words::TIMES + bin);
    }
    // The recording contains which alignments occurred, but not how often.
    let met = ALIGNMENTS.into_iter().enumerate().filter(|(bit, _)| all[words::ALIGNMENTS] >> bit & 1 == 1);
    found.extend(met.map(|(_, low)| BinRow {
        quantity: "offset-alignment",
        low,
        high: Some(low),
        count: None,
        bytes: None,
    }));
    found
}

fn size_bins() -> [(i64, Option<i64>); SIZE_BINS] {
    let mut low = 0;
    BINS.map(|(_, high)| {
        let bin = (low, high);
        low = high.map_or(low, |high| high + 1);
        bin
    })
}
