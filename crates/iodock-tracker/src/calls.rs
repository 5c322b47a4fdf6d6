//! Handles each call: resolves its descriptors at its beginning, and applies its effect at its end.

use crate::births::is_fork;
use crate::descriptors::Description;
use crate::paths::Note;
use crate::tasks::{Descriptor, Pending};
use crate::{text_of, Tracker};
use iodock_event::constants::*;
use iodock_event::event::EventRow;
use iodock_event::{
    Action, AsyncItem, Batch, CallSpec, FileKind, LossKind, Outcome, Phase, RawCall, Role, Text, AT_FDCWD,
    NONE,
};

/// The properties of a call that the tracker needs for each record, taken from the call's
/// [`iodock_event::CallSpec`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub action: Action,
    /// Whether the descriptor `fd` refers to the call's file.
    pub fd: bool,
    /// Whether `fd2` refers to a file of the call, or is a second descriptor number.
    pub fd2: bool,
    /// Whether `fd` is the directory that `path` is relative to.
    pub dir_fd: bool,
    pub dir_fd2: bool,
    /// Whether it is a request inside an io_uring.
    pub ring: bool,
    pub path: bool,
}

impl Meta {
    pub const UNLISTED: Meta = Meta {
        action: Action::None,
        fd: false,
        fd2: false,
        dir_fd: false,
        dir_fd2: false,
        path: false,
        ring: false,
    };

    pub fn of(spec: &CallSpec) -> Meta {
        Meta {
            action: spec.action,
            fd: spec.has_role(Role::Fd),
            fd2: spec.has_role(Role::Fd2),
            dir_fd: spec.has_role(Role::DirFd),
            dir_fd2: spec.has_role(Role::DirFd2),
            ring: spec.is_ring_request(),
            path: spec.has_role(Role::Path),
        }
    }

    fn names_first(&self) -> bool {
        self.fd || self.dir_fd
    }

    /// Returns whether the call concerns a second file. The second descriptor of dup2 is only a number.
    fn names_second(&self) -> bool {
        self.dir_fd2 || (self.fd2 && self.action != Action::Dup2)
    }
}

/// The descriptors and the directory of a call, resolved when the call began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    pub first: Descriptor,
    pub second: Descriptor,
    pub directory: u32,
    /// Value of the tracker's record counter when the call began.
    pub born: u64,
}

/// The file and the open file description behind a descriptor argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub file: u32,
    pub handle: u32,
    pub slot: Option<u32>,
}

impl Subject {
    pub const NOTHING: Subject = Subject { file: NONE, handle: NONE, slot: None };
}

/// A call at its end, before the tracker counts it.
pub(crate) struct Ending<'a> {
    pub live: u32,
    pub meta: Meta,
    pub batch: &'a Batch,
    pub raw: &'a RawCall,
    pub arguments: Arguments,
}

impl Ending<'_> {
    pub fn succeeded(&self) -> bool {
        self.raw.outcome == Outcome::Succeeded
    }

    /// Returns the entries of the call's structures, such as its control blocks.
    pub fn items(&self) -> &[AsyncItem] {
        let start = self.raw.items.start as usize;
        self.batch.items.get(start..start + self.raw.items.count as usize).unwrap_or_default()
    }
}

impl Tracker {
    /// Handles the beginning of a call: resolves the call's descriptors as of this moment.
    pub(crate) fn begin(&mut self, live: u32, meta: Meta, batch: &Batch, raw: &RawCall) {
        self.tasks.drop_pending(live, &mut self.descriptions);
        let arguments = self.arguments(live, meta, batch, raw);
        for held in [arguments.first, arguments.second] {
            if let Descriptor::Open(slot) = held {
                self.descriptions.hold(slot);
            }
        }
        self.tasks.live[live].pending = Some(Pending {
            call: raw.call,
            first: arguments.first,
            second: arguments.second,
            directory: arguments.directory,
            born: arguments.born,
            flags: raw.flags,
        });
        if is_fork(meta.action) {
            self.tasks.forking.push(live);
        }
    }

    fn arguments(&mut self, live: u32, meta: Meta, batch: &Batch, raw: &RawCall) -> Arguments {
        let first = if meta.names_first() { self.descriptor(live, raw.fd) } else { Descriptor::Absent };
        let second = if meta.names_second() { self.descriptor(live, raw.fd2) } else { Descriptor::Absent };
        let directory = if meta.path { self.directory(live, batch, raw) } else { NONE };
        Arguments { first, second, directory, born: self.now }
    }

    pub(crate) fn descriptor(&self, live: u32, fd: i32) -> Descriptor {
        if fd < 0 {
            return Descriptor::Absent;
        }
        match self.tasks.tables[self.tasks.live[live].table].get(fd) {
            Some(slot) => Descriptor::Open(slot),
            None => Descriptor::Missing,
        }
    }

    /// Returns the working directory. If it is not known, takes the one that the source shows next to
    /// `AT_FDCWD`.
    fn directory(&mut self, live: u32, batch: &Batch, raw: &RawCall) -> u32 {
        let place = self.tasks.live[live].place;
        let known = self.tasks.places[place].directory;
        if known != NONE || raw.fd != AT_FDCWD || !raw.fd_text.is_some() {
            return known;
        }
        let noted = self.noted_directory(batch.text(raw.fd_text));
        self.tasks.places[place].directory = noted;
        noted
    }

    /// Handles the end of a call: counts it and applies its effect.
    pub(crate) fn end(
        &mut self,
        live: u32,
        meta: Meta,
        batch: &Batch,
        raw: &RawCall,
        out: &mut Vec<EventRow>,
    ) {
        if raw.phase != Phase::Exit || self.tasks.live[live].pending.is_none() {
            let arguments = self.arguments(live, meta, batch, raw);
            return self.finish_call(Ending { live, meta, batch, raw, arguments }, out);
        }
        let Some(pending) = self.tasks.live[live].pending.take() else { return };
        if is_fork(pending.call.spec().action) {
            self.tasks.forking.retain(|&other| other != live);
        }
        let mut arguments = self.arguments(live, meta, batch, raw);
        if pending.call == raw.call {
            arguments = Arguments { born: pending.born, ..arguments.as_of(&pending) };
        }
        self.finish_call(Ending { live, meta, batch, raw, arguments }, out);
        for held in [pending.first, pending.second] {
            if let Descriptor::Open(slot) = held {
                self.descriptions.release(slot);
            }
        }
    }

    fn finish_call(&mut self, ending: Ending, out: &mut Vec<EventRow>) {
        let Ending { live, meta, batch, raw, .. } = ending;
        let mut row = self.blank_row(self.tasks.live[live].utid, raw);
        self.ring_requests |= meta.ring;
        match meta.action {
            Action::Transfer => return self.transfer(&ending, row, out),
            Action::TwoNames => return self.two_names(&ending, row, out),
            Action::AsyncComplete => return self.completions(&ending, row, out),
            Action::RingEnter => return self.ring_entered(&ending, row, out),
            _ => {}
        }
        let subject = self.subject_of(&ending, &mut row);
        row.file = subject.file;
        row.handle = subject.handle;
        match meta.action {
            Action::Read | Action::Write | Action::PositionedRead | Action::PositionedWrite => {
                self.read_or_write(&ending, subject, &mut row)
            }
            Action::Receive | Action::Send | Action::ReceiveMany | Action::SendMany | Action::PipeMemory => {
                self.receive_or_send(&ending, subject, &mut row)
            }
            Action::Seek | Action::SeekResult => self.seek(&ending, subject, &mut row),
            Action::Map => self.map(&ending, subject, &mut row),
            Action::AsyncSubmit => self.submit(&ending),
            Action::Open | Action::Creat => self.opened(&ending, subject, &mut row),
            Action::Exec if ending.succeeded() => self.executed(&ending, subject),
            Action::Exit => {}
            Action::Close => self.closed(&ending),
            Action::Fcntl => self.fcntl(&ending, subject, &mut row),
            _ if ending.succeeded() => self.effect(&ending, subject),
            _ => {}
        }
        out.push(row);
        if meta.action == Action::Exit {
            self.exited(live, raw);
        } else if is_fork(meta.action) && ending.succeeded() && meta.action != Action::NewThread {
            self.fork_returned(&ending);
        }
        if raw.path_cut && batch.losses.count(LossKind::TruncatedPaths) == 0 {
            self.losses.add(LossKind::TruncatedPaths, 1);
        }
    }

    /// Returns the file of a call that concerns a single file.
    pub(crate) fn subject_of(&mut self, ending: &Ending, row: &mut EventRow) -> Subject {
        let Ending { live, meta, batch, raw, arguments } = *ending;
        if meta.path {
            if let Some(path) = text_of(batch, raw.path).filter(|path| !path.is_empty()) {
                if matches!(meta.action, Action::NewMemfd) {
                    return Subject::NOTHING;
                }
                let base =
                    self.base(meta.dir_fd, arguments.first, raw.fd, raw.fd_text, batch, arguments.directory);
                return Subject { file: self.file_at(live, base, path), ..Subject::NOTHING };
            }
            if raw.fd == AT_FDCWD && raw.flags & AT_EMPTY_PATH != 0 {
                return Subject { file: arguments.directory, ..Subject::NOTHING };
            }
        }
        let takes_fd = meta.fd || (meta.dir_fd && raw.fd >= 0);
        if !takes_fd || matches!(meta.action, Action::CloseRange) {
            return Subject::NOTHING;
        }
        row.fd = raw.fd;
        let ignored = matches!(meta.action, Action::Map) && raw.flags & MAP_ANONYMOUS != 0;
        if ignored {
            return Subject::NOTHING;
        }
        self.subject(live, arguments.first, raw.fd, raw.fd_text, batch, raw.outcome == Outcome::Failed)
    }

    /// Returns the open file description behind a descriptor. If the tracker saw no call that opened it, but
    /// this call shows that it exists, the tracker adds a description.
    pub(crate) fn subject(
        &mut self,
        live: u32,
        descriptor: Descriptor,
        fd: i32,
        note: Text,
        batch: &Batch,
        failed: bool,
    ) -> Subject {
        let slot = match descriptor {
            Descriptor::Absent => return Subject::NOTHING,
            Descriptor::Open(slot) => {
                self.learn_name(slot, fd, note, batch);
                slot
            }
            Descriptor::Missing => match self.descriptor(live, fd) {
                // The descriptor was created after this call began, so this call used a different one.
                Descriptor::Open(_) => return self.unknown_subject(fd, note, batch),
                _ if failed => return self.unknown_subject(fd, note, batch),
                _ => self.discover(live, fd, note, batch),
            },
        };
        let description = self.descriptions.get(slot);
        Subject { file: description.file, handle: description.handle, slot: Some(slot) }
    }

    /// Names the file of a description whose open call did not show the name, once a call shows it.
    fn learn_name(&mut self, slot: u32, fd: i32, note: Text, batch: &Batch) {
        let known = self.descriptions.get(slot).file;
        if note.is_some() && self.names.table.entries[known as usize].kind == FileKind::Unknown {
            let file = self.noted_file(Note::of(batch.text(note)), fd);
            self.descriptions.get_mut(slot).file = file;
        }
    }

    fn unknown_subject(&mut self, fd: i32, note: Text, batch: &Batch) -> Subject {
        Subject { file: self.undiscovered_file(fd, note, batch), ..Subject::NOTHING }
    }

    /// Adds a description for a descriptor that was open before the log begins.
    pub(crate) fn discover(&mut self, live: u32, fd: i32, note: Text, batch: &Batch) -> u32 {
        let file = self.undiscovered_file(fd, note, batch);
        let kind = self.names.table.entries[file as usize].kind;
        if kind == FileKind::Unknown {
            self.losses.add(LossKind::UnknownDescriptors, 1);
        }
        let mut description = Description::new(self.new_handle(), file);
        let foreign = self.tasks.tables[self.tasks.live[live].table].foreign;
        description.seekable = !foreign && (kind.has_path() || kind == FileKind::Unknown);
        self.install(live, fd, description, false)
    }
}

impl Arguments {
    /// Returns the arguments as of the call's beginning, completed by those that only its end shows.
    fn as_of(self, pending: &Pending) -> Arguments {
        let choose = |then, now| if then == Descriptor::Absent { now } else { then };
        Arguments {
            first: choose(pending.first, self.first),
            second: choose(pending.second, self.second),
            directory: if pending.directory == NONE { self.directory } else { pending.directory },
            born: pending.born,
        }
    }
}

/// Returns whether the descriptor is stdin, stdout or stderr, which a log may show without an open call.
pub(crate) fn is_standard(fd: i32) -> bool {
    (0..=2).contains(&fd)
}
