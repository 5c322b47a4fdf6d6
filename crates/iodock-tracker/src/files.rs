//! Finds the files of calls, and installs the descriptors that refer to them.

use crate::calls::{is_standard, Ending, Subject};
use crate::descriptors::Description;
use crate::names::SHARED;
use crate::paths::{self, Note};
use crate::tasks::Descriptor;
use crate::{text_of, Tracker};
use iodock_event::constants::*;
use iodock_event::event::EventRow;
use iodock_event::record::RING_IS_SHOWN;
use iodock_event::{Action, Batch, FileKind, Outcome, Phase, RawCall, Text, AT_FDCWD, NONE, UNKNOWN};

impl Tracker {
    pub(crate) fn new_handle(&mut self) -> u32 {
        let handle = self.next_handle;
        self.next_handle = self.next_handle.saturating_add(1).min(NONE - 1);
        handle
    }

    /// Puts a description into the task's descriptor table; returns the description's slot.
    pub(crate) fn install(
        &mut self,
        live: u32,
        fd: i32,
        description: Description,
        close_on_exec: bool,
    ) -> u32 {
        let mut description = description;
        let task = &self.tasks.live[live];
        let table = task.table;
        description.unordered |=
            self.tasks.spaces[task.space as usize].unordered && self.tasks.tables[table].references > 1;
        let slot = self.descriptions.add(description);
        if let Some(old) = self.tasks.tables[table].set(fd, slot, close_on_exec) {
            self.descriptions.release(old);
        }
        slot
    }

    pub(crate) fn remove(&mut self, live: u32, fd: i32) {
        let table = self.tasks.live[live].table;
        if let Some(slot) = self.tasks.tables[table].remove(fd) {
            self.descriptions.release(slot);
        }
    }

    pub(crate) fn set_close_on_exec(&mut self, live: u32, fd: i32, on: bool) {
        let table = self.tasks.live[live].table;
        self.tasks.tables[table].set_close_on_exec(fd, on);
    }

    pub(crate) fn duplicate(&mut self, live: u32, subject: Subject, fd: i64, close_on_exec: bool) {
        let (Some(slot), Ok(fd)) = (subject.slot, i32::try_from(fd)) else { return };
        if fd < 0 {
            return;
        }
        self.descriptions.hold(slot);
        let table = self.tasks.live[live].table;
        if let Some(old) = self.tasks.tables[table].set(fd, slot, close_on_exec) {
            self.descriptions.release(old);
        }
    }

    /// Handles open and similar calls. The position of the new description is 0.
    pub(crate) fn opened(&mut self, ending: &Ending, subject: Subject, row: &mut EventRow) {
        let Ending { live, meta, raw, .. } = *ending;
        let flags = if meta.action == Action::Creat { O_CREAT | O_TRUNC | O_WRONLY } else { raw.flags };
        row.flags = flags as u32;
        let Ok(fd) = i32::try_from(raw.result) else { return };
        if !ending.succeeded() || fd < 0 {
            return;
        }
        let file = match subject.file {
            // The source shows the call but not the file's name.
            NONE if raw.phase != Phase::Orphan => {
                self.noted_file(Note::of(ending.batch.text(raw.result_text)), fd)
            }
            NONE => return,
            file => file,
        };
        row.file = file;
        self.learn_from_open(ending, file, flags);
        let mut description = Description::new(self.new_handle(), file);
        description.seekable = !self.names.is_fifo(file);
        description.position = if description.seekable { 0 } else { UNKNOWN };
        description.append = flags & O_APPEND != 0;
        row.handle = description.handle;
        row.fd = fd;
        self.install(live, fd, description, flags & O_CLOEXEC != 0);
    }

    fn learn_from_open(&mut self, ending: &Ending, file: u32, flags: u64) {
        let unnamed = flags & O_TMPFILE == O_TMPFILE;
        if flags & O_DIRECTORY != 0 && !unnamed {
            self.names.set_kind(file, FileKind::Directory);
        }
        if !unnamed && flags & O_CREAT != 0 {
            self.names.created(file, flags & O_EXCL != 0);
        }
        if let Some(kind) = FileKind::from_stat_type(ending.raw.stat_type).filter(|_| !unnamed) {
            self.names.set_kind(file, kind);
        }
        if !unnamed && (flags & O_TRUNC != 0 || flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL) {
            self.names.set_size(file, 0);
        }
        if let Note::Path { device: true, .. } = Note::of(ending.batch.text(ending.raw.result_text)) {
            self.names.set_kind(file, FileKind::Device);
        }
    }

    pub(crate) fn stat(&mut self, subject: Subject, raw: &RawCall) {
        const FIFO: u8 = 0o1;
        const REGULAR: u8 = 0o10;
        match FileKind::from_stat_type(raw.stat_type) {
            Some(FileKind::Symlink) => self.names.set_symlink(subject.file),
            Some(kind) => self.names.set_kind(subject.file, kind),
            None => {}
        }
        if let (FIFO, Some(slot)) = (raw.stat_type, subject.slot) {
            self.descriptions.get_mut(slot).has_no_position();
        }
        if raw.stat_size >= 0 && matches!(raw.stat_type, 0 | REGULAR) {
            self.names.set_size(subject.file, raw.stat_size);
        }
    }

    pub(crate) fn change_directory(&mut self, live: u32, subject: Subject) {
        let known = subject.file != NONE && self.has_path(subject.file);
        let place = self.tasks.live[live].place;
        self.tasks.places[place].directory = if known { subject.file } else { NONE };
        if known {
            self.names.set_kind(subject.file, FileKind::Directory);
        }
    }

    pub(crate) fn change_root(&mut self, live: u32, subject: Subject) {
        if subject.file != NONE && self.has_path(subject.file) {
            let place = self.tasks.live[live].place;
            self.tasks.places[place].root = subject.file;
            self.names.set_kind(subject.file, FileKind::Directory);
        }
    }

    fn has_path(&self, file: u32) -> bool {
        self.names.table.entries[file as usize].kind.has_path()
    }

    /// Returns the directory that a relative path starts from; [`NONE`] if it is not known.
    pub(crate) fn base(
        &mut self,
        has_dir_fd: bool,
        descriptor: Descriptor,
        fd: i32,
        note: Text,
        batch: &Batch,
        directory: u32,
    ) -> u32 {
        if !has_dir_fd || fd == AT_FDCWD {
            return directory;
        }
        match descriptor {
            Descriptor::Open(slot) => {
                let file = self.descriptions.get(slot).file;
                if self.has_path(file) {
                    file
                } else {
                    self.noted_directory(batch.text(note))
                }
            }
            _ => self.noted_directory(batch.text(note)),
        }
    }

    /// Returns the file that `path` names.
    pub(crate) fn file_at(&mut self, live: u32, base: u32, path: &[u8]) -> u32 {
        let root = self.tasks.places[self.tasks.live[live].place].root;
        let root = (root != NONE).then(|| self.names.name(root));
        let relative = match (path.first(), base) {
            (Some(b'/'), _) => false,
            (_, NONE) => true,
            _ => self.names.table.entries[base as usize].relative,
        };
        let base = (base != NONE).then(|| self.names.name(base));
        paths::resolve(&mut self.scratch, base, root, path);
        self.names.file(SHARED, FileKind::File, relative, &self.scratch)
    }

    /// Returns the directory that the log names after a descriptor (strace -y: `3</path>`); [`NONE`] if it
    /// names no path, or a device.
    pub(crate) fn noted_directory(&mut self, note: &[u8]) -> u32 {
        match Note::of(note) {
            Note::Path { name, device: false } => self.names.file(SHARED, FileKind::File, false, name),
            _ => NONE,
        }
    }

    /// Returns a file for a descriptor that the tracker does not know.
    pub(crate) fn undiscovered_file(&mut self, fd: i32, note: Text, batch: &Batch) -> u32 {
        if is_standard(fd) {
            let name = [&b"stdin"[..], b"stdout", b"stderr"][fd as usize];
            return self.names.file(SHARED, FileKind::Standard, false, name);
        }
        self.noted_file(Note::of(batch.text(note)), fd)
    }

    pub(crate) fn noted_file(&mut self, note: Note, fd: i32) -> u32 {
        match note {
            Note::Path { name, .. } if name.starts_with(b"/memfd:") => {
                self.names.file(SHARED, FileKind::Memfd, false, &name[1..])
            }
            Note::Path { name, device } => {
                let file = self.names.file(SHARED, FileKind::File, false, name);
                if device {
                    self.names.set_kind(file, FileKind::Device);
                }
                file
            }
            Note::Other(text) => {
                let (kind, name) = kind_of_note(text);
                self.names.file(SHARED, kind, false, name)
            }
            Note::Nothing => self.names.file(SHARED, FileKind::Unknown, false, format!("fd:{fd}").as_bytes()),
        }
    }

    /// Handles calls that return new descriptors, as a result or through an argument.
    pub(crate) fn new_descriptors(&mut self, live: u32, action: Action, raw: &RawCall, batch: &Batch) {
        let close_on_exec = raw.flags & O_CLOEXEC != 0;
        let (kind, name) = match action {
            Action::NewPipe => return self.new_pair(live, FileKind::Pipe, raw, batch),
            Action::NewSocketPair => return self.new_pair(live, FileKind::Socket, raw, batch),
            Action::NewSocket | Action::NewAccepted => (FileKind::Socket, &b"socket"[..]),
            Action::NewEventfd => (FileKind::Eventfd, &b"eventfd"[..]),
            Action::NewEpoll => (FileKind::Epoll, &b"epoll"[..]),
            Action::NewTimerfd => (FileKind::Timerfd, &b"timerfd"[..]),
            // If the program passes a descriptor, the call only changes the signals of that descriptor.
            Action::NewSignalfd if raw.fd >= 0 => return,
            Action::NewSignalfd => (FileKind::Signalfd, &b"signalfd"[..]),
            Action::NewInotify => (FileKind::Inotify, &b"inotify"[..]),
            Action::NewPidfd => (FileKind::Pidfd, &b"pidfd"[..]),
            Action::NewIoUring => {
                self.rings += u64::from(raw.argument != RING_IS_SHOWN);
                (FileKind::IoUring, &b"io_uring"[..])
            }
            Action::NewMemfd => return self.new_memfd(live, raw, batch, close_on_exec),
            Action::NewUnnamed => (FileKind::Other, &b"other"[..]),
            _ => return,
        };
        let Some(fd) = i32::try_from(raw.result).ok().filter(|&fd| fd >= 0) else { return };
        self.install_special(live, fd, (kind, name), raw.result_text, batch, close_on_exec);
        if action == Action::NewPidfd {
            self.new_pidfd_of(live, fd, raw.argument);
        }
    }

    /// Adds the descriptor for the child that clone with `CLONE_PIDFD` returns to the parent. exec closes it.
    pub(crate) fn new_pidfd(&mut self, live: u32, raw: &RawCall, batch: &Batch) {
        if raw.flags & CLONE_PIDFD != 0 && raw.outcome == Outcome::Succeeded && raw.fd >= 0 {
            self.install_special(live, raw.fd, (FileKind::Pidfd, b"pidfd"), raw.fd_text, batch, true);
            self.new_pidfd_of(live, raw.fd, raw.result);
        }
    }

    fn new_pair(&mut self, live: u32, kind: FileKind, raw: &RawCall, batch: &Batch) {
        let name: &[u8] = if kind == FileKind::Pipe { b"pipe" } else { b"socket" };
        let close_on_exec = raw.flags & O_CLOEXEC != 0;
        for (fd, note) in [(raw.fd, raw.fd_text), (raw.fd2, raw.fd2_text)] {
            if fd >= 0 {
                let slot = self.install_special(live, fd, (kind, name), note, batch, close_on_exec);
                self.descriptions.get_mut(slot).read_end = kind == FileKind::Pipe && fd == raw.fd;
            }
        }
    }

    fn new_memfd(&mut self, live: u32, raw: &RawCall, batch: &Batch, close_on_exec: bool) {
        let Some(fd) = i32::try_from(raw.result).ok().filter(|&fd| fd >= 0) else { return };
        let name = [b"memfd:", text_of(batch, raw.path).unwrap_or_default()].concat();
        let file = self.names.file(SHARED, FileKind::Memfd, false, &name);
        let mut description = Description::new(self.new_handle(), file);
        description.position = 0;
        description.seekable = true;
        self.install(live, fd, description, close_on_exec);
    }

    fn install_special(
        &mut self,
        live: u32,
        fd: i32,
        (kind, name): (FileKind, &[u8]),
        note: Text,
        batch: &Batch,
        close_on_exec: bool,
    ) -> u32 {
        let noted = match Note::of(batch.text(note)) {
            // anon_inode:[...] shows only the kind of the object.
            Note::Other(text) if !text.starts_with(b"anon_inode:") => text,
            _ => name,
        };
        let file = self.names.file(SHARED, kind, false, noted);
        let description = Description::new(self.new_handle(), file);
        self.install(live, fd, description, close_on_exec)
    }
}

/// Returns kind and name of the object that a note without a path describes.
fn kind_of_note(text: &[u8]) -> (FileKind, &[u8]) {
    let inside = text.strip_prefix(b"anon_inode:").map(|name| name.trim_ascii());
    let Some(inside) = inside else {
        return match text {
            _ if text.starts_with(b"pipe:") => (FileKind::Pipe, text),
            _ if text.starts_with(b"net:") || text.starts_with(b"mnt:") => (FileKind::Other, text),
            _ if text.starts_with(b"pid:[") => (FileKind::Other, text),
            _ if text.starts_with(b"pid:") => (FileKind::Pidfd, text),
            _ if text.starts_with(b"signalfd:") => (FileKind::Signalfd, text),
            _ if text.contains(&b':') => (FileKind::Socket, text),
            _ => (FileKind::Other, text),
        };
    };
    match inside.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]")).unwrap_or(inside) {
        b"eventpoll" => (FileKind::Epoll, b"epoll"),
        b"eventfd" => (FileKind::Eventfd, b"eventfd"),
        b"timerfd" => (FileKind::Timerfd, b"timerfd"),
        b"signalfd" => (FileKind::Signalfd, b"signalfd"),
        b"pidfd" => (FileKind::Pidfd, b"pidfd"),
        b"io_uring" => (FileKind::IoUring, b"io_uring"),
        b"inotify" => (FileKind::Inotify, b"inotify"),
        _ => (FileKind::Other, text),
    }
}
