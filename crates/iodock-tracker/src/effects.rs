//! Applies the effect of a completed call on tasks, descriptors and working directories.

use crate::calls::{Ending, Subject};
use crate::tasks::Descriptor;
use crate::{text_of, time_of, Tracker};
use iodock_event::constants::*;
use iodock_event::event::EventRow;
use iodock_event::{Action, ErrnoId, FileKind, Outcome, RawCall, UNKNOWN};

impl Tracker {
    pub(crate) fn fork_returned(&mut self, ending: &Ending) {
        let raw = ending.raw;
        let Ok(child) = u32::try_from(raw.result) else { return };
        if child > 0 {
            let time = if raw.end_time() == UNKNOWN { raw.start } else { raw.end_time() };
            self.forked(ending.live, child, ending.meta.action, raw.flags, ending.arguments.born, time);
        }
    }

    pub(crate) fn exited(&mut self, live: u32, raw: &RawCall) {
        let time = time_of(raw);
        let row = self.tasks.row(live);
        if row.end == UNKNOWN {
            row.end = time;
        }
        self.tasks.end(live, &mut self.descriptions);
    }

    /// Handles close(), which frees the descriptor even if it reports an error, except EBADF. The tracker
    /// removes the entry only if it still refers to the same description as when close() began.
    pub(crate) fn closed(&mut self, ending: &Ending) {
        let Ending { live, raw, arguments, .. } = *ending;
        if raw.outcome == Outcome::Failed && raw.errno == ErrnoId::from_linux(9) {
            return;
        }
        let now = self.descriptor(live, raw.fd);
        let same = match arguments.first {
            Descriptor::Missing => true,
            open => open == now,
        };
        if same && now != Descriptor::Absent {
            self.remove(live, raw.fd);
        }
    }

    /// Applies the effect of a successful call that is not a transfer.
    pub(crate) fn effect(&mut self, ending: &Ending, subject: Subject) {
        let Ending { live, meta, raw, batch, .. } = *ending;
        let close_on_exec = raw.flags & O_CLOEXEC != 0;
        match meta.action {
            Action::Dup => self.duplicate(live, subject, raw.result, false),
            Action::Dup2 if raw.fd != raw.fd2 => {
                self.duplicate(live, subject, i64::from(raw.fd2), close_on_exec)
            }
            Action::Ioctl if raw.flags == FIOCLEX => self.set_close_on_exec(live, raw.fd, true),
            Action::Ioctl if raw.flags == FIONCLEX => self.set_close_on_exec(live, raw.fd, false),
            Action::CloseRange => self.close_range(live, raw),
            Action::Stat => self.stat(subject, raw),
            Action::Truncate if raw.argument >= 0 => self.names.set_size(subject.file, raw.argument),
            Action::Readlink | Action::Symlink => self.names.set_symlink(subject.file),
            Action::ReadDirectory | Action::Directory => {
                self.names.set_kind(subject.file, FileKind::Directory)
            }
            Action::ChangeDirectory | Action::ChangeDirectoryFd => self.change_directory(live, subject),
            Action::ChangeRoot => self.change_root(live, subject),
            Action::Unshare => self.unshare(live, raw.flags),
            Action::NewFromProcess => self.get_from_process(ending, subject),
            Action::Unlink if raw.flags & AT_REMOVEDIR != 0 => {
                self.names.set_kind(subject.file, FileKind::Directory)
            }
            Action::Unlink => self.names.remove(subject.file),
            Action::Node if raw.argument != UNKNOWN => {
                // According to mknod(2), a mode without a file type means a regular file.
                let kind = FileKind::from_stat_type(stat_type_of_mode(raw.argument as u64));
                self.names.set_kind(subject.file, kind.unwrap_or(FileKind::Regular));
            }
            Action::NewFifo => self.names.set_kind(subject.file, FileKind::Fifo),
            action => self.new_descriptors(live, action, raw, batch),
        }
    }

    pub(crate) fn fcntl(&mut self, ending: &Ending, subject: Subject, row: &mut EventRow) {
        let Ending { live, raw, .. } = *ending;
        if let Some(flags) = status_flags(raw) {
            row.flags = flags;
        }
        if !ending.succeeded() {
            return;
        }
        match raw.flags {
            F_DUPFD => self.duplicate(live, subject, raw.result, false),
            F_DUPFD_CLOEXEC => self.duplicate(live, subject, raw.result, true),
            F_DUP2FD if raw.argument != i64::from(raw.fd) => {
                self.duplicate(live, subject, raw.argument, false)
            }
            F_SETFD if raw.argument != UNKNOWN => {
                self.set_close_on_exec(live, raw.fd, raw.argument as u64 & FD_CLOEXEC != 0)
            }
            F_SETFL if raw.argument != UNKNOWN => {
                if let Some(slot) = subject.slot {
                    self.descriptions.get_mut(slot).append = raw.argument as u64 & O_APPEND != 0;
                }
            }
            _ => {}
        }
    }

    fn close_range(&mut self, live: u32, raw: &RawCall) {
        if raw.flags & CLOSE_RANGE_UNSHARE != 0 {
            self.tasks.unshare_table(live, &mut self.descriptions);
        }
        let last = if raw.argument == UNKNOWN || raw.argument < 0 { i64::MAX } else { raw.argument };
        let table = self.tasks.live[live].table;
        for fd in self.tasks.tables[table].range(i64::from(raw.fd.max(0)), last) {
            match raw.flags & CLOSE_RANGE_CLOEXEC != 0 {
                true => self.set_close_on_exec(live, fd, true),
                false => self.remove(live, fd),
            }
        }
    }

    fn unshare(&mut self, live: u32, flags: u64) {
        if flags & CLONE_FILES != 0 {
            self.tasks.unshare_table(live, &mut self.descriptions);
        }
        if flags & CLONE_FS != 0 {
            self.tasks.unshare_place(live);
        }
    }

    pub(crate) fn executed(&mut self, ending: &Ending, subject: Subject) {
        let Ending { live, raw, batch, .. } = *ending;
        self.tasks.unshare_table(live, &mut self.descriptions);
        let table = self.tasks.live[live].table;
        for fd in self.tasks.tables[table].closing_on_exec() {
            self.remove(live, fd);
        }
        let path = self.names.name(subject.file).to_vec();
        if path.is_empty() {
            // The log shows only the end of this call.
            return;
        }
        let utid = self.tasks.live[live].utid;
        self.add_command(utid, time_of(raw), &path, text_of(batch, raw.argv));
    }
}

/// Returns the open flags if fcntl sets them on an existing description.
fn status_flags(raw: &RawCall) -> Option<u32> {
    let sets = raw.flags == F_SETFL && raw.argument != UNKNOWN;
    sets.then_some((raw.argument as u64 & CHANGED_BY_SETFL) as u32)
}
