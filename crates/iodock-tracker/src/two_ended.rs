//! Calls with two ends, which produce two adjacent rows: transfers between two files, calls with two names,
//! and completions of asynchronous I/O.

use crate::asynchronous::Request;
use crate::calls::{Ending, Subject};
use crate::paths::Note;
use crate::transfers::Move;
use crate::{text_of, Tracker, MOST_MOVED};
use iodock_event::event::EventRow;
use iodock_event::{Direction, LossKind, Outcome, Side, NONE, UNKNOWN};

impl Tracker {
    /// Handles sendfile, copy_file_range, splice and tee: they read from `fd` and write to `fd2`.
    pub(crate) fn transfer(&mut self, ending: &Ending, blank: EventRow, out: &mut Vec<EventRow>) {
        let Ending { live, batch, raw, arguments, .. } = *ending;
        let failed = raw.outcome == Outcome::Failed;
        let input = self.subject(live, arguments.first, raw.fd, raw.fd_text, batch, failed);
        let output = self.subject(live, arguments.second, raw.fd2, raw.fd2_text, batch, failed);
        let mut from = EventRow { side: Side::In as u8, fd: raw.fd, ..blank };
        from.file = input.file;
        from.handle = input.handle;
        from.other_file = output.file;
        let mut to = EventRow { side: Side::Out as u8, fd: raw.fd2, ..blank };
        to.file = output.file;
        to.handle = output.handle;
        to.other_file = input.file;
        self.step(ending, input, self.side_of(Direction::Read, raw.offset, input), &mut from);
        self.step(ending, output, self.side_of(Direction::Write, raw.offset2, output), &mut to);
        out.push(from);
        out.push(to);
    }

    fn side_of(&self, direction: Direction, offset: i64, subject: Subject) -> Move {
        let at = (offset != UNKNOWN).then_some(if offset < 0 { UNKNOWN } else { offset });
        let seekable = subject.slot.is_some_and(|slot| self.descriptions.get(slot).seekable);
        Move { placed: at.is_some() || seekable, ..Move::new(direction, at) }
    }

    /// Handles rename and link, which concern both names.
    pub(crate) fn two_names(&mut self, ending: &Ending, blank: EventRow, out: &mut Vec<EventRow>) {
        let Ending { live, meta, batch, raw, arguments } = *ending;
        let old = match text_of(batch, raw.path).filter(|path| !path.is_empty()) {
            Some(path) => {
                let (first, directory) = (arguments.first, arguments.directory);
                let base = self.base(meta.dir_fd, first, raw.fd, raw.fd_text, batch, directory);
                self.file_at(live, base, path)
            }
            // The source names the descriptor instead of a path, as in linkat(fd, "", ..., AT_EMPTY_PATH).
            None => self.subject(live, arguments.first, raw.fd, raw.fd_text, batch, true).file,
        };
        let new = match text_of(batch, raw.path2).filter(|path| !path.is_empty()) {
            Some(path) => {
                let (second, directory) = (arguments.second, arguments.directory);
                let base = self.base(meta.dir_fd2, second, raw.fd2, raw.fd2_text, batch, directory);
                self.file_at(live, base, path)
            }
            None => NONE,
        };
        if ending.succeeded() && old != NONE && new != NONE {
            let entry = self.names.table.entries[old as usize];
            self.names.set_kind(new, entry.kind);
            self.names.set_size(new, entry.size);
            if raw.call.spec().family == "rename" {
                self.names.remove(old);
            }
        }
        out.push(EventRow { side: Side::Old as u8, file: old, other_file: new, ..blank });
        out.push(EventRow { side: Side::New as u8, file: new, other_file: old, ..blank });
    }

    /// Handles io_submit: stores the requests, which will complete later.
    pub(crate) fn submit(&mut self, ending: &Ending) {
        let Ending { live, raw, .. } = *ending;
        let (Outcome::Succeeded, Ok(accepted)) = (raw.outcome, usize::try_from(raw.result)) else { return };
        for item in ending.items().iter().take(accepted) {
            let task = &self.tasks.live[live];
            let (process, slot) = (task.process, self.tasks.tables[task.table].get(item.fd));
            let (file, handle, appends) = match slot.map(|slot| self.descriptions.get(slot)) {
                Some(open) => (open.file, open.handle, open.append && item.write),
                None => (self.noted_file(Note::Nothing, item.fd), NONE, false),
            };
            let mut request = Request::new(item, file, handle);
            if appends || request.offset < 0 {
                request.offset = UNKNOWN;
            }
            let submitted = self.tasks.processes[process].submitted.get_or_insert_default();
            submitted.add(item.key, request);
        }
    }

    /// Handles io_getevents: adds one row for each completed request. The call counts once, so all rows but
    /// the first are marked as other ends of it.
    pub(crate) fn completions(&mut self, ending: &Ending, blank: EventRow, out: &mut Vec<EventRow>) {
        let process = self.tasks.live[ending.live].process;
        let first_row = out.len();
        for item in ending.items().iter().filter(|_| ending.succeeded()) {
            let submitted = self.tasks.processes[process].submitted.as_mut();
            let Some(request) = submitted.and_then(|submitted| submitted.complete(item.key)) else {
                self.losses.add(LossKind::AsyncUnmatched, 1);
                continue;
            };
            let mut row = completion(blank, &request, self.credible(item.bytes, MOST_MOVED));
            if out.len() > first_row {
                row.side = Side::Out as u8;
                row.other_file = out[first_row].file;
                out[first_row].side = Side::In as u8;
                out[first_row].other_file = row.file;
            }
            if request.write && row.bytes > 0 && row.offset != UNKNOWN {
                self.names.written_up_to(row.file, row.offset.saturating_add(row.bytes));
            }
            out.push(row);
        }
        if out.len() == first_row {
            out.push(blank);
        }
    }
}

fn completion(blank: EventRow, request: &Request, bytes: i64) -> EventRow {
    let direction = if request.write { Direction::Write } else { Direction::Read };
    EventRow {
        file: request.file,
        handle: request.handle,
        fd: request.fd,
        requested: request.requested,
        offset: request.offset,
        bytes: if bytes < 0 { UNKNOWN } else { bytes },
        direction: direction as u8,
        ..blank
    }
}
