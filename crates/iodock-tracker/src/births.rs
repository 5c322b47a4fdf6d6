//! New tasks. A task becomes known by its own first call, by its parent's fork, or by the recorder's report.

use crate::descriptors::Description;
use crate::paths::Note;
use crate::tasks::{key, Birth, Task};
use crate::{origin_of, text_of, Tracker};
use iodock_event::constants::{CLONE_FILES, CLONE_FS, CLONE_THREAD, CLONE_VM, O_APPEND, O_CLOEXEC};
use iodock_event::{lwp, Action, Batch, DescriptorSnapshot, FileKind, LossKind, Start, TaskOrigin, UNKNOWN};

const THREAD_FLAGS: u64 = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_THREAD;

impl Tracker {
    /// Adds a task for a tid that belongs to no living task, and returns its slot. It is a child whose
    /// parent's fork has not returned yet, or a task without a known parent.
    pub(crate) fn appear(&mut self, space: u16, tid: u32, time: i64) -> u32 {
        let child = key(space, tid);
        match self.birth_of(space, child) {
            Some(birth) => self.add_early(child, birth, time),
            None => self.tasks.add_root(child, root_pid(tid), TaskOrigin::Root, time, self.now),
        }
    }

    fn birth_of(&mut self, space: u16, child: u64) -> Option<Birth> {
        if let Some(fork) = self.tasks.take_hint(child) {
            let parent = self.tasks.find(key(space, fork.parent_tid))?;
            let action = fork.call.spec().action;
            return Some(Birth {
                parent,
                flags: flags_of(action, fork.flags),
                how: origin_of(action, fork.flags),
            });
        }
        match self.tasks.only_forking(space) {
            Ok(parent) => self.pending_birth(parent?),
            Err(()) => {
                self.losses.add(LossKind::AmbiguousParent, 1);
                None
            }
        }
    }

    fn pending_birth(&self, parent: u32) -> Option<Birth> {
        let pending = self.tasks.live[parent].pending?;
        let action = pending.call.spec().action;
        Some(Birth { parent, flags: flags_of(action, pending.flags), how: origin_of(action, pending.flags) })
    }

    fn add_early(&mut self, child: u64, birth: Birth, time: i64) -> u32 {
        let parent = self.tasks.live[birth.parent].utid;
        self.tasks.early.insert(child, parent);
        self.tasks.add_child(child, birth, time, self.now, &mut self.descriptions)
    }

    /// Handles the return of `child` from a fork of `parent`.
    pub(crate) fn forked(
        &mut self,
        parent: u32,
        child: u32,
        action: Action,
        flags: u64,
        began: u64,
        time: i64,
    ) {
        let Task { utid, space, .. } = self.tasks.live[parent];
        let child = key(space, child);
        self.tasks.take_hint(child);
        if self.tasks.early.remove(&child) == Some(utid) {
            return;
        }
        if let Some(live) = self.tasks.find(child) {
            let (appeared, how) = (self.tasks.live[live].born, self.tasks.row(live).how);
            if how == TaskOrigin::Root && appeared > began {
                return self.adopt(live, parent, origin_of(action, flags));
            }
            // The tid is used again, although the log did not show the end of its previous task.
            self.tasks.end(live, &mut self.descriptions);
        }
        let birth = Birth { parent, flags: flags_of(action, flags), how: origin_of(action, flags) };
        self.tasks.add_child(child, birth, time, self.now, &mut self.descriptions);
    }

    /// Gives a parent to a task that was added without one.
    fn adopt(&mut self, child: u32, parent: u32, how: TaskOrigin) {
        let (space, parent_utid) = (self.tasks.live[parent].space, self.tasks.live[parent].utid);
        let parent_tid = self.tasks.row(parent).tid;
        let row = self.tasks.row(child);
        row.how = how;
        row.parent_utid = parent_utid;
        row.parent_pid = Some(parent_tid);
        self.tasks.spaces[space as usize].roots -= 1;
    }

    /// Revives a leader that has exited: it continues under its id as the thread that called exec.
    pub(crate) fn revive(&mut self, leader: u64, thread: u32) -> Option<u32> {
        let utid = self.tasks.known(leader)?.utid;
        Some(self.tasks.revive(leader, utid, thread))
    }

    /// Handles the recorder's report that a task started, or was already running.
    pub(crate) fn task_start(&mut self, space: u16, batch: &Batch, start: &Start) {
        let child = key(space, start.tid);
        let live = match self.tasks.find(child) {
            Some(live) => live,
            None => self.add_started(space, child, start),
        };
        self.tasks.row(live).pid = start.tgid as i32;
        if start.rank.is_some() {
            self.tasks.row(live).rank = start.rank;
        }
        let Task { process, place, utid, .. } = self.tasks.live[live];
        self.tasks.processes[process].pid = start.tgid as i32;
        if let Note::Path { name, .. } = Note::of(batch.text(start.working_directory)) {
            let directory = self.names.file(crate::names::SHARED, FileKind::Directory, false, name);
            self.tasks.places[place].directory = directory;
        }
        if let Some(argv) = text_of(batch, start.command).filter(|argv| start.attached && !argv.is_empty()) {
            let program = argv.split(|&byte| byte == 0).next().unwrap_or_default();
            self.add_command(utid, start.time, program, Some(argv));
        }
    }

    fn add_started(&mut self, space: u16, child: u64, start: &Start) -> u32 {
        if let Some(parent) = start.parent_tid.and_then(|parent| self.tasks.find(key(space, parent))) {
            let birth = match self.birth_from(child, parent) {
                Some(birth) => birth,
                None => self.guessed_birth(parent, start.tgid),
            };
            return self.add_early(child, birth, start.time);
        }
        let now = self.now;
        if start.tgid != start.tid {
            if let Some(sibling) = self.tasks.find(key(space, start.tgid)) {
                return self.tasks.add_sibling(child, sibling, start.time, now, &mut self.descriptions);
            }
        }
        let how = if start.attached { TaskOrigin::Attached } else { TaskOrigin::Root };
        self.tasks.add_root(child, start.tgid as i32, how, start.time, now)
    }

    fn birth_from(&mut self, child: u64, parent: u32) -> Option<Birth> {
        if let Some(fork) = self.tasks.take_hint(child) {
            let action = fork.call.spec().action;
            return Some(Birth {
                parent,
                flags: flags_of(action, fork.flags),
                how: origin_of(action, fork.flags),
            });
        }
        let pending = self.tasks.live[parent].pending?;
        is_fork(pending.call.spec().action).then(|| self.pending_birth(parent))?
    }

    /// Describes the birth of a child whose parent and process are known, but not the call that created it.
    fn guessed_birth(&mut self, parent: u32, tgid: u32) -> Birth {
        match self.tasks.row(parent).pid == tgid as i32 {
            true => Birth { parent, flags: THREAD_FLAGS, how: TaskOrigin::Thread },
            false => Birth { parent, flags: 0, how: TaskOrigin::Fork },
        }
    }

    /// Adds a descriptor that was open before recording began.
    pub(crate) fn snapshot(&mut self, space: u16, batch: &Batch, snapshot: &DescriptorSnapshot) {
        if snapshot.fd < 0 {
            return;
        }
        let live = match self.tasks.find(key(space, snapshot.tid)) {
            Some(live) => live,
            None => self.appear(space, snapshot.tid, UNKNOWN),
        };
        let file = self.noted_file(Note::of(batch.text(snapshot.target)), snapshot.fd);
        if let Some(kind) = FileKind::from_stat_type(snapshot.stat_type) {
            self.names.set_kind(file, kind);
            if kind == FileKind::Regular && snapshot.stat_size >= 0 {
                self.names.set_size(file, snapshot.stat_size);
            }
        }
        let mut description = Description::new(self.new_handle(), file);
        description.seekable = matches!(snapshot.stat_type, 0o10 | 0o6);
        description.append = snapshot.flags & O_APPEND != 0;
        if description.seekable && !self.is_ambiguous(live, file, snapshot) {
            description.position = snapshot.position;
        }
        self.install(live, snapshot.fd, description, snapshot.flags & O_CLOEXEC != 0);
    }

    /// Returns whether another descriptor of the table has the same file and state, as after `>log 2>&1`.
    /// Both may then share an open file description, so either could move the other's position. The position
    /// stays unknown until a seek shows it.
    fn is_ambiguous(&mut self, live: u32, file: u32, snapshot: &DescriptorSnapshot) -> bool {
        let table = self.tasks.live[live].table;
        let mut twin = None;
        for (fd, slot) in self.tasks.tables[table].iter() {
            let other = self.descriptions.get(slot);
            if fd != snapshot.fd
                && other.file == file
                && [snapshot.position, UNKNOWN].contains(&other.position)
            {
                twin = Some(slot);
            }
        }
        if let Some(slot) = twin {
            self.descriptions.get_mut(slot).position = UNKNOWN;
        }
        twin.is_some()
    }
}

/// Returns the process id of a task whose process is not known otherwise; 0 if the source shows no number.
fn root_pid(tid: u32) -> i32 {
    match tid > lwp::UNNUMBERED {
        true => 0,
        false => tid as i32,
    }
}

pub(crate) fn is_fork(action: Action) -> bool {
    matches!(action, Action::Fork | Action::Vfork | Action::Clone | Action::NewThread)
}

/// Returns the flags of a call that creates a task. They show what the child shares with its parent.
fn flags_of(action: Action, flags: u64) -> u64 {
    match action {
        Action::Clone => flags,
        Action::NewThread => THREAD_FLAGS,
        _ => 0,
    }
}
