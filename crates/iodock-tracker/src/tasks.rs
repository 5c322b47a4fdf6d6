//! Processes and threads: their parents, the resources that they share, and the task that a tid means at a
//! time.

use crate::asynchronous::Submitted;
use crate::descriptors::{Descriptions, FdTable};
use crate::names::SHARED;
use crate::slab::Slab;
use iodock_event::constants::{CLONE_FILES, CLONE_FS};
use iodock_event::{CallId, Fork, TaskOrigin, TaskRow, NONE, UNKNOWN};
use rustc_hash::FxHashMap;

/// A log, a rank or a host with its own tids. Within one space, a tid belongs to one living task at a time.
#[derive(Clone, Debug, Default)]
pub struct SpaceOptions {
    /// The working directory of the space's first program; `None` if unknown.
    pub working_directory: Option<Vec<u8>>,
    pub rank: Option<i32>,
    pub host: Option<String>,
    /// Whether the source does not show in which order calls of different tasks ended.
    pub unordered: bool,
}

/// The tracker's state for one space.
pub struct Space {
    /// File id of the working directory at the beginning; [`NONE`] if unknown.
    pub directory: u32,
    pub rank: Option<i32>,
    pub host: u16,
    pub unordered: bool,
    pub roots: u32,
}

/// Working directory and root as file ids. Tasks created with CLONE_FS share them. [`NONE`] means that the
/// directory is unknown, or that the root is `/`.
#[derive(Clone, Copy, Debug)]
pub struct FsContext {
    pub references: u32,
    pub directory: u32,
    pub root: u32,
}

/// A call that has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub call: CallId,
    pub first: Descriptor,
    pub second: Descriptor,
    /// The working directory when the call began.
    pub directory: u32,
    pub born: u64,
    pub flags: u64,
}

/// The result of resolving a descriptor argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// The call has no descriptor argument, or it is negative.
    Absent,
    /// The descriptor is not in the table.
    Missing,
    /// The descriptor refers to the description in this slot.
    Open(u32),
}

pub struct Task {
    pub key: u64,
    pub utid: u32,
    pub space: u16,
    pub process: u32,
    pub table: u32,
    pub place: u32,
    pub pending: Option<Pending>,
    /// Number of the record that first showed the task.
    pub born: u64,
}

pub struct Process {
    pub upid: u32,
    pub pid: i32,
    pub tasks: u32,
    /// Asynchronous requests in flight. Most processes have none.
    pub submitted: Option<Box<Submitted>>,
}

/// The last task that had a tid, and its slot while the task lives.
#[derive(Clone, Copy)]
pub struct Known {
    pub utid: u32,
    pub live: u32,
}

#[derive(Default)]
pub struct Tasks {
    pub rows: Vec<TaskRow>,
    /// The space of each row, indexed by utid.
    pub row_spaces: Vec<u16>,
    pub spaces: Vec<Space>,
    pub live: Slab<Task>,
    pub processes: Slab<Process>,
    pub tables: Slab<FdTable>,
    pub places: Slab<FsContext>,
    known: FxHashMap<u64, Known>,
    /// Forks that later records will show, by child. The next field counts them by parent.
    hints: FxHashMap<u64, Fork>,
    hinted_parents: FxHashMap<u64, u32>,
    /// Children that appeared before their fork returned; the value is the parent.
    pub early: FxHashMap<u64, u32>,
    /// Tasks that are inside a fork, vfork or clone.
    pub forking: Vec<u32>,
    next_upid: u32,
    last: Option<(u64, u32)>,
}

/// Returns the thread id of the operating system; 0 if unknown.
fn shown_tid(tid: u32) -> i32 {
    if tid > iodock_event::lwp::UNNUMBERED {
        return 0;
    }
    iodock_event::lwp::parts(tid).map_or(tid, |(_, lwp)| lwp) as i32
}

pub fn key(space: u16, tid: u32) -> u64 {
    u64::from(space) << 32 | u64::from(tid)
}

/// The creator of a new task, and the way in which it was created.
#[derive(Clone, Copy)]
pub struct Birth {
    pub parent: u32,
    pub flags: u64,
    pub how: TaskOrigin,
}

impl Tasks {
    /// Returns the living task with this key (space and tid).
    pub fn find(&mut self, key: u64) -> Option<u32> {
        if let Some((last, live)) = self.last {
            if last == key {
                return Some(live);
            }
        }
        let live = self.known.get(&key)?.live;
        if live == NONE {
            return None;
        }
        self.last = Some((key, live));
        Some(live)
    }

    pub fn known(&self, key: u64) -> Option<Known> {
        self.known.get(&key).copied()
    }

    pub fn row(&mut self, live: u32) -> &mut TaskRow {
        &mut self.rows[self.live[live].utid as usize]
    }

    /// Adds a task without a parent: the first program, or a task whose fork the source does not show.
    pub fn add_root(&mut self, key: u64, pid: i32, how: TaskOrigin, time: i64, born: u64) -> u32 {
        let space = (key >> 32) as u16;
        let directory = self.spaces[space as usize].directory;
        self.spaces[space as usize].roots += 1;
        let table = self.tables.insert(FdTable::new());
        let place = self.places.insert(FsContext { references: 1, directory, root: NONE });
        let process = self.add_process(pid);
        self.add(key, None, how, time, born, (process, table, place))
    }

    /// Adds a child of another task. The flags determine what it shares with the parent and what it copies.
    pub fn add_child(
        &mut self,
        key: u64,
        birth: Birth,
        time: i64,
        born: u64,
        descriptions: &mut Descriptions,
    ) -> u32 {
        let parent = &self.live[birth.parent];
        let (process, table, place) = (parent.process, parent.table, parent.place);
        let unordered = self.spaces[parent.space as usize].unordered;
        let process = match birth.how {
            TaskOrigin::Thread => {
                self.processes[process].tasks += 1;
                process
            }
            _ => self.add_process(key as u32 as i32),
        };
        if unordered {
            self.mark_unordered(table, descriptions);
        }
        let table = match birth.flags & CLONE_FILES != 0 {
            true => {
                self.tables[table].references += 1;
                table
            }
            false => self.copy_table(table, descriptions),
        };
        let place = match birth.flags & CLONE_FS != 0 {
            true => {
                self.places[place].references += 1;
                place
            }
            false => self.copy_place(place),
        };
        self.add(key, Some(birth.parent), birth.how, time, born, (process, table, place))
    }

    /// Adds a thread to a process of which another thread is already known.
    pub fn add_sibling(
        &mut self,
        key: u64,
        sibling: u32,
        time: i64,
        born: u64,
        descriptions: &mut Descriptions,
    ) -> u32 {
        let Task { process, table, place, space, .. } = self.live[sibling];
        if self.spaces[space as usize].unordered {
            self.mark_unordered(table, descriptions);
        }
        self.processes[process].tasks += 1;
        self.tables[table].references += 1;
        self.places[place].references += 1;
        self.add(key, None, TaskOrigin::Attached, time, born, (process, table, place))
    }

    fn add_process(&mut self, pid: i32) -> u32 {
        let upid = self.next_upid;
        self.next_upid += 1;
        self.processes.insert(Process { upid, pid, tasks: 1, submitted: None })
    }

    fn add(
        &mut self,
        key: u64,
        parent: Option<u32>,
        how: TaskOrigin,
        time: i64,
        born: u64,
        (process, table, place): (u32, u32, u32),
    ) -> u32 {
        let space = (key >> 32) as u16;
        let utid = self.rows.len() as u32;
        let before = self.known.get(&key).map(|known| self.rows[known.utid as usize].generation);
        let parent = parent.map(|parent| self.live[parent].utid);
        let inherited = parent.and_then(|parent| self.rows[parent as usize].rank);
        self.row_spaces.push(space);
        self.rows.push(TaskRow {
            upid: self.processes[process].upid,
            host: self.spaces[space as usize].host,
            exit_signal: SHARED,
            rank: inherited.or(self.spaces[space as usize].rank),
            pid: self.processes[process].pid,
            tid: shown_tid(key as u32),
            generation: before.map_or(0, |generation| generation + 1),
            parent_utid: parent.unwrap_or(NONE),
            parent_pid: parent.map(|parent| self.rows[parent as usize].tid),
            how,
            core_dumped: false,
            exit_code: None,
            start: time,
            end: UNKNOWN,
            cpu_user: UNKNOWN,
            cpu_system: UNKNOWN,
        });
        let task = Task { key, utid, space, process, table, place, pending: None, born };
        let live = self.live.insert(task);
        self.known.insert(key, Known { utid, live });
        self.last = Some((key, live));
        live
    }

    /// Ends the task and releases its references.
    pub fn end(&mut self, live: u32, descriptions: &mut Descriptions) {
        self.drop_pending(live, descriptions);
        let Task { key, process, table, place, .. } = self.live[live];
        if let Some(known) = self.known.get_mut(&key).filter(|known| known.live == live) {
            known.live = NONE;
        }
        self.last = None;
        self.release_table(table, descriptions);
        self.release_place(place);
        self.processes[process].tasks -= 1;
        if self.processes[process].tasks == 0 {
            self.processes[process].submitted = None;
            self.processes.release(process);
        }
        self.live.release(live);
    }

    pub fn drop_pending(&mut self, live: u32, descriptions: &mut Descriptions) {
        if let Some(pending) = self.live[live].pending.take() {
            for held in [pending.first, pending.second] {
                if let Descriptor::Open(slot) = held {
                    descriptions.release(slot);
                }
            }
        }
        if !self.forking.is_empty() {
            self.forking.retain(|&other| other != live);
        }
    }

    /// Handles exec by a thread that is not the leader: the leader's id continues as that thread.
    pub fn supersede(&mut self, leader: u32, thread: u32, time: i64, descriptions: &mut Descriptions) {
        self.drop_pending(leader, descriptions);
        self.live[leader].pending = self.live[thread].pending.take();
        let row = self.row(thread);
        if row.end == UNKNOWN {
            row.end = time;
        }
        self.end(thread, descriptions);
    }

    fn copy_table(&mut self, table: u32, descriptions: &mut Descriptions) -> u32 {
        self.tables[table].foreign = true;
        let copy = self.tables[table].copy();
        for (_, slot) in copy.iter() {
            descriptions.hold(slot);
        }
        self.tables.insert(copy)
    }

    fn copy_place(&mut self, place: u32) -> u32 {
        let copy = FsContext { references: 1, ..self.places[place] };
        self.places.insert(copy)
    }

    fn mark_unordered(&mut self, table: u32, descriptions: &mut Descriptions) {
        for (_, slot) in self.tables[table].iter() {
            descriptions.get_mut(slot).unordered = true;
        }
    }

    fn release_table(&mut self, table: u32, descriptions: &mut Descriptions) {
        self.tables[table].references -= 1;
        if self.tables[table].references == 0 {
            for (_, slot) in std::mem::take(&mut self.tables[table]).iter() {
                descriptions.release(slot);
            }
            self.tables.release(table);
        }
    }

    fn release_place(&mut self, place: u32) {
        self.places[place].references -= 1;
        if self.places[place].references == 0 {
            self.places.release(place);
        }
    }

    /// Gives the task its own descriptor table.
    pub fn unshare_table(&mut self, live: u32, descriptions: &mut Descriptions) {
        let table = self.live[live].table;
        if self.tables[table].references > 1 {
            self.live[live].table = self.copy_table(table, descriptions);
            self.tables[table].references -= 1;
        }
    }

    /// Gives the task its own working directory.
    pub fn unshare_place(&mut self, live: u32) {
        let place = self.live[live].place;
        if self.places[place].references > 1 {
            self.live[live].place = self.copy_place(place);
            self.places[place].references -= 1;
        }
    }

    pub fn add_hint(&mut self, space: u16, fork: Fork) {
        if self.hints.insert(key(space, fork.child_tid), fork).is_none() {
            *self.hinted_parents.entry(key(space, fork.parent_tid)).or_default() += 1;
        }
    }

    /// Returns and removes the announced fork that will create this child, if there is one.
    pub fn take_hint(&mut self, child: u64) -> Option<Fork> {
        let fork = self.hints.remove(&child)?;
        let parent = key((child >> 32) as u16, fork.parent_tid);
        if let Some(count) = self.hinted_parents.get_mut(&parent) {
            *count -= 1;
            if *count == 0 {
                self.hinted_parents.remove(&parent);
            }
        }
        Some(fork)
    }

    /// Returns the only task of the space that is inside a fork and may be the parent of any child. `Err` if
    /// there are several such tasks.
    pub fn only_forking(&self, space: u16) -> Result<Option<u32>, ()> {
        let mut waiting = self.forking.iter().copied().filter(|&live| {
            let task = &self.live[live];
            task.space == space && !self.hinted_parents.contains_key(&task.key)
        });
        match (waiting.next(), waiting.next()) {
            (Some(_), Some(_)) => Err(()),
            (first, _) => Ok(first),
        }
    }
}

impl Tasks {
    /// Revives the task that last had the tid. It shares everything with `sibling`.
    pub fn revive(&mut self, key: u64, utid: u32, sibling: u32) -> u32 {
        let Task { space, process, table, place, born, .. } = self.live[sibling];
        self.processes[process].tasks += 1;
        self.tables[table].references += 1;
        self.places[place].references += 1;
        let live = self.live.insert(Task { key, utid, space, process, table, place, pending: None, born });
        self.rows[utid as usize].end = UNKNOWN;
        self.known.insert(key, Known { utid, live });
        self.last = None;
        live
    }
}
