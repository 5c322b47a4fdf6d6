//! Tracks processes, descriptors, offsets and paths. Its input is records, its output is events, for every
//! source.
//!
//! [`Tracker`] models the kernel's state: tasks, descriptor tables, open file descriptions, working
//! directories. It reads records in the order in which calls begin and end. It resolves a call's descriptor
//! when the call begins and applies the call's effect when it ends. [`Coverage`] then adds to each access how
//! many of its bytes were read or written before, and [`IoTimes`] sums up how long calls lasted.

mod access;
mod asynchronous;
mod births;
mod calls;
mod coverage;
mod descriptors;
mod effects;
mod files;
mod identities;
mod interfaces;
mod io_time;
mod maps;
mod messages;
mod names;
mod paths;
mod patterns;
mod rings;
mod slab;
mod stacks;
mod streams;
mod tasks;
mod transfers;
mod two_ended;

pub use coverage::{Coverage, DEFAULT_COVERAGE_BYTES};
pub use identities::Identities;
pub use io_time::IoTimes;
pub use paths::resolve;
pub use patterns::fill as fill_patterns;
pub use tasks::SpaceOptions;

use calls::Meta;
use descriptors::Descriptions;
use iodock_event::event::EventRow;
use iodock_event::tables::NO_INDEX;
use iodock_event::{
    Action, Batch, CallId, EventColumns, FileEntry, FileKind, Fork, LossKind, Losses, Outcome, Phase,
    RawCall, Record, Tables, TaskEnd, TaskOrigin, TaskUsage, Text, NONE, UNKNOWN,
};
use names::Names;
use tasks::{key, Space, Tasks};

/// Most bytes that a single call can plausibly move, on any system.
const MOST_MOVED: i64 = 1 << 45;
/// Longest plausible duration of a single call, in ns (115 days).
const LONGEST_NS: i64 = 10_000_000_000_000_000;

/// Number of records whose rows are appended to the columns together. This is faster than appending each row
/// to each column separately.
const RECORDS: usize = 64;

/// Facts that the tracker needs before it tracks the first record.
#[derive(Clone, Debug, Default)]
pub struct TrackerOptions {
    /// One space for each log, rank or host with its own tids. `track` refers to spaces by index.
    pub spaces: Vec<SpaceOptions>,
}

/// The result of tracking.
#[derive(Debug, Default)]
pub struct Tracked {
    pub tables: Tables,
    pub losses: Losses,
    /// Space of each task, indexed by utid.
    pub spaces: Vec<u16>,
}

/// Converts records to events. One tracker serves all sources of a store.
pub struct Tracker {
    tasks: Tasks,
    descriptions: Descriptions,
    names: Names,
    tables: Tables,
    losses: Losses,
    /// Properties of each call, indexed by call id.
    meta: Vec<Meta>,
    next_handle: u32,
    /// Number of records seen. The tracker uses it as a clock that always advances.
    now: u64,
    scratch: Vec<u8>,
    /// Rows under construction; empty between calls.
    rows: Vec<EventRow>,
    text_ids: rustc_hash::FxHashMap<Box<[u8]>, u32>,
    unknown_offsets: u64,
    /// Number of io_urings whose requests the source does not show.
    rings: u64,
    ring_requests: bool,
    in_rings: rings::InRings,
    /// Start time in ns of the last call of each living task, indexed by task slot, if the source showed its
    /// beginning.
    begun: Vec<i64>,
    /// The calls that created maps; present only after [`Tracker::remember_maps`].
    map_calls: Option<maps::MapCalls>,
    identities: Identities,
    interfaces: interfaces::Interfaces,
    stacks: stacks::StackIds,
}

impl Tracker {
    pub fn new(options: TrackerOptions) -> Self {
        let mut tracker = Tracker {
            tasks: Tasks::default(),
            descriptions: Descriptions::default(),
            names: Names::default(),
            tables: Tables::default(),
            losses: Losses::default(),
            meta: CallId::all().map(|call| Meta::of(call.spec())).collect(),
            next_handle: 0,
            now: 0,
            scratch: Vec::new(),
            rows: Vec::new(),
            text_ids: Default::default(),
            unknown_offsets: 0,
            rings: 0,
            ring_requests: false,
            in_rings: Default::default(),
            begun: Vec::new(),
            map_calls: None,
            identities: Identities::default(),
            interfaces: Default::default(),
            stacks: stacks::StackIds::default(),
        };
        for space in options.spaces {
            tracker.add_space(space);
        }
        tracker
    }

    /// Adds a space; returns its index.
    pub fn add_space(&mut self, options: SpaceOptions) -> u16 {
        let directory = match &options.working_directory {
            Some(name) => {
                paths::resolve(&mut self.scratch, None, None, name);
                let relative = self.scratch.first() != Some(&b'/');
                self.names.file(names::SHARED, FileKind::Directory, relative, &self.scratch)
            }
            None => NONE,
        };
        let host = options.host.map_or(NO_INDEX, |host| index_of(&mut self.tables.hosts, &host));
        self.tasks.spaces.push(Space {
            directory,
            rank: options.rank,
            host,
            unordered: options.unordered,
            roots: 0,
        });
        (self.tasks.spaces.len() - 1) as u16
    }

    /// Announces forks that the next records will show. Before tracking a batch, the caller adds the forks of
    /// that batch and of the following one, each fork only once.
    pub fn add_hints(&mut self, space: u16, forks: &[Fork]) {
        for &fork in forks {
            self.tasks.add_hint(space, fork);
        }
    }

    /// Adds the events of a batch to `out`.
    pub fn track(&mut self, space: u16, batch: &Batch, out: &mut EventColumns) {
        let mut rows = std::mem::take(&mut self.rows);
        for records in batch.records.chunks(RECORDS) {
            records.iter().for_each(|record| self.rows_of(space, batch, record, &mut rows));
            out.extend(&rows);
            rows.clear();
        }
        self.rows = rows;
    }

    /// Adds the events of one record, for callers that merge several sources.
    pub fn record(&mut self, space: u16, batch: &Batch, record: &Record, out: &mut EventColumns) {
        let mut rows = std::mem::take(&mut self.rows);
        self.rows_of(space, batch, record, &mut rows);
        rows.drain(..).for_each(|row| out.push(&row));
        self.rows = rows;
    }

    fn rows_of(&mut self, space: u16, batch: &Batch, record: &Record, out: &mut Vec<EventRow>) {
        self.now += 1;
        match record {
            Record::Call(raw) => {
                let first = out.len();
                self.call_within(space, batch, raw, out);
                if raw.stack.is_some() {
                    self.place(batch.text(raw.stack), raw.call, &mut out[first..]);
                }
            }
            Record::End(end) => self.task_end(space, batch, end),
            Record::Start(start) => self.task_start(space, batch, start),
            Record::Descriptor(snapshot) => self.snapshot(space, batch, snapshot),
            Record::Identity(identity) => self.identity(space, batch, identity),
            Record::Interface(interface) => self.interface(space, batch, interface),
        }
    }

    /// Sets the stack and site of rows. Rows of io_uring requests that the call completed keep theirs,
    /// because they were submitted elsewhere.
    fn place(&mut self, stack: &[u8], call: CallId, rows: &mut [EventRow]) {
        if rows.is_empty() {
            return;
        }
        let (stack, site) = self.stacks.of(stack);
        for row in rows.iter_mut().filter(|row| row.call == call.0) {
            (row.stack, row.site) = (stack, site);
        }
    }

    /// Returns the tasks so far, by utid. [`Coverage`] needs them to find the process of a task.
    pub fn tasks(&self) -> &[iodock_event::TaskRow] {
        &self.tasks.rows
    }

    /// Returns the files so far, by file id. [`IoTimes`] needs their kinds.
    pub fn files(&self) -> &[FileEntry] {
        &self.names.table.entries
    }

    /// Returns the current name of a file, as bytes.
    pub fn name_of(&self, file: u32) -> &[u8] {
        self.names.name(file)
    }

    /// Returns the start times of the calls that have not ended, in ns, ascending.
    pub fn beginnings(&self) -> Vec<i64> {
        let places = self.begun.iter().enumerate();
        let under_way = places.filter(|&(place, _)| self.tasks.live[place as u32].pending.is_some());
        let mut begun: Vec<i64> = under_way.map(|(_, &start)| start).collect();
        begun.sort_unstable();
        begun
    }

    /// Adds the resources that tasks had used when they ended, as a recorder measured them. Call this after
    /// tracking: if a tid was used several times, the time of the end identifies the task.
    pub fn add_usages(&mut self, space: u16, usages: &[TaskUsage]) {
        let mut uses: rustc_hash::FxHashMap<i32, Vec<usize>> = Default::default();
        for (utid, row) in self.tasks.rows.iter().enumerate() {
            if self.tasks.row_spaces[utid] == space {
                uses.entry(row.tid).or_default().push(utid);
            }
        }
        for usage in usages {
            let Some(uses) = uses.get(&(usage.tid as i32)) else { continue };
            let away = |utid: &usize| self.tasks.rows[*utid].end.abs_diff(usage.time);
            let Some(&utid) = uses.iter().min_by_key(|utid| away(utid)) else { continue };
            self.tasks.rows[utid].cpu_user = usage.cpu_user_ns;
            self.tasks.rows[utid].cpu_system = usage.cpu_system_ns;
        }
    }

    /// Returns the side tables and the losses.
    pub fn finish(mut self) -> Tracked {
        let relative = self.names.table.entries.iter().filter(|entry| entry.relative).count() as u64;
        let orphans: u64 =
            self.tasks.spaces.iter().map(|space| u64::from(space.roots.saturating_sub(1))).sum();
        self.losses.add(LossKind::UnknownWorkingDirectory, relative);
        self.losses.add(LossKind::UnknownParent, orphans);
        self.losses.add(LossKind::MappedContents, self.names.mapped_count);
        self.losses.add(LossKind::UnknownOffsets, self.unknown_offsets);
        let unseen = if self.ring_requests { 0 } else { self.rings };
        self.losses.add(LossKind::IoUringContents, unseen + self.in_rings.data_requests());
        self.tables.files = self.names.into_table();
        self.tables.tasks = self.tasks.rows;
        self.tables.stacks = self.stacks.into_table();
        patterns::fill(&mut self.tables.files);
        Tracked { tables: self.tables, losses: self.losses, spaces: self.tasks.row_spaces }
    }

    /// Handles a call, and sets the interface call that contains it.
    fn call_within(&mut self, space: u16, batch: &Batch, raw: &RawCall, out: &mut Vec<EventRow>) {
        let before = out.len();
        self.call(space, batch, raw, out);
        if self.interfaces.are_there() && out.len() > before {
            let within = self.interfaces.uses_current(key(space, raw.tid));
            out[before..].iter_mut().for_each(|row| row.interface_call = within);
        }
    }

    fn call(&mut self, space: u16, batch: &Batch, raw: &RawCall, out: &mut Vec<EventRow>) {
        let key = key(space, raw.tid);
        let live = match self.tasks.find(key) {
            Some(live) => live,
            None if raw.phase == Phase::Exit => match self.tasks.known(key) {
                // This record is the end of a call of a task that has already ended. The tracker only counts
                // it.
                Some(known) => return out.push(self.blank_row(known.utid, raw)),
                None => self.appear(space, raw.tid, time_of(raw)),
            },
            None => self.appear(space, raw.tid, time_of(raw)),
        };
        let meta = self.meta_of(raw.call);
        if raw.phase == Phase::Enter {
            self.note_beginning(live, raw.start);
            self.begin(live, meta, batch, raw);
        } else {
            self.end(live, meta, batch, raw, out);
            if meta.action == Action::Clone {
                self.new_pidfd(live, raw, batch);
            }
        }
    }

    fn note_beginning(&mut self, live: u32, start: i64) {
        let place = live as usize;
        if place >= self.begun.len() {
            self.begun.resize(place + 1, UNKNOWN);
        }
        self.begun[place] = start;
    }

    fn meta_of(&mut self, call: CallId) -> Meta {
        self.meta.get(call.0 as usize).copied().unwrap_or(Meta::UNLISTED)
    }

    /// Returns `value` if it is plausible, else [`UNKNOWN`]. Damaged logs may contain impossible numbers,
    /// which would distort every sum.
    pub(crate) fn credible(&mut self, value: i64, most: i64) -> i64 {
        if value <= most {
            return value;
        }
        self.losses.add(LossKind::IncredibleNumbers, 1);
        UNKNOWN
    }

    fn blank_row(&mut self, utid: u32, raw: &RawCall) -> EventRow {
        EventRow {
            ts: raw.start,
            end_ts: raw.end,
            dur: self.credible(raw.duration, LONGEST_NS),
            sys_cpu: self.credible(raw.sys_cpu, LONGEST_NS),
            call: raw.call.0,
            errno: if raw.outcome == Outcome::Failed { raw.errno.0 } else { u16::MAX },
            result: if raw.outcome == Outcome::NoResult { UNKNOWN } else { raw.result },
            utid,
            requested: raw.requested,
            ..EventRow::BLANK
        }
    }

    fn task_end(&mut self, space: u16, batch: &Batch, end: &TaskEnd) {
        let key = key(space, end.tid);
        self.interfaces.abandon(key);
        if let Some(thread) = end.superseded_by {
            return self.superseded(space, key, thread, end.time);
        }
        let live = self.tasks.find(key);
        let utid = match (live, self.tasks.known(key)) {
            (Some(live), _) => self.tasks.live[live].utid,
            (None, Some(known)) => known.utid,
            (None, None) => {
                self.appear(space, end.tid, end.time);
                return self.task_end(space, batch, end);
            }
        };
        let signal = batch.text(end.signal);
        let row = &mut self.tasks.rows[utid as usize];
        if end.time != UNKNOWN {
            row.end = end.time;
        }
        row.exit_code = end.exit_code.or(row.exit_code);
        row.core_dumped |= end.core_dumped;
        if !signal.is_empty() {
            row.exit_signal = index_of(&mut self.tables.signals, &iodock_event::shown(signal));
        }
        if let Some(live) = live {
            self.tasks.end(live, &mut self.descriptions);
        }
    }

    fn superseded(&mut self, space: u16, leader: u64, thread: u32, time: i64) {
        let thread = self.tasks.find(key(space, thread));
        let leader = match self.tasks.find(leader) {
            Some(leader) => Some(leader),
            // The log showed the leader's exit first. The leader's id continues as the thread that called
            // exec.
            None => thread.and_then(|thread| self.revive(leader, thread)),
        };
        if let (Some(leader), Some(thread)) = (leader, thread) {
            if leader != thread {
                self.tasks.supersede(leader, thread, time, &mut self.descriptions);
            }
        }
    }

    /// Returns the id of a text in the commands table, and adds the text if it is new.
    fn text_id(&mut self, text: &[u8]) -> u32 {
        if let Some(&id) = self.text_ids.get(text) {
            return id;
        }
        let id = self.tables.commands.add_text(text);
        self.text_ids.insert(text.into(), id);
        id
    }

    fn add_command(&mut self, utid: u32, time: i64, path: &[u8], argv: Option<&[u8]>) {
        let path = self.text_id(path);
        let argv = argv.map_or(NONE, |argv| self.text_id(argv));
        self.tables.commands.push(utid, time, path, argv);
    }
}

/// Returns the time of a record: its start, or its end if the start is unknown.
fn time_of(raw: &RawCall) -> i64 {
    if raw.start == UNKNOWN {
        raw.end_time()
    } else {
        raw.start
    }
}

/// Returns the index of `name` in a short list, and adds it if it is new.
fn index_of(list: &mut Vec<String>, name: &str) -> u16 {
    let index = list.iter().position(|known| known == name).unwrap_or_else(|| {
        list.push(name.to_string());
        list.len() - 1
    });
    u16::try_from(index).unwrap_or(NO_INDEX)
}

/// Returns the text, or `None` if the source does not show one.
fn text_of(batch: &Batch, text: Text) -> Option<&[u8]> {
    text.is_some().then(|| batch.text(text))
}

/// Returns whether the call creates a thread, a vfork child or a fork child.
fn origin_of(action: iodock_event::Action, flags: u64) -> TaskOrigin {
    use iodock_event::constants::{CLONE_THREAD, CLONE_VFORK};
    match action {
        Action::NewThread => TaskOrigin::Thread,
        _ if flags & CLONE_THREAD != 0 => TaskOrigin::Thread,
        Action::Vfork => TaskOrigin::Vfork,
        _ if flags & CLONE_VFORK != 0 => TaskOrigin::Vfork,
        _ => TaskOrigin::Fork,
    }
}
