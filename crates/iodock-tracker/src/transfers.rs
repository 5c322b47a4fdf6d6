//! Calls that move bytes or the position of a single file.

use crate::calls::{Ending, Subject};
use crate::{Tracker, MOST_MOVED};
use iodock_event::constants::{O_APPEND, O_DSYNC, O_SYNC, RWF_APPEND, RWF_DSYNC, RWF_SYNC};
use iodock_event::event::EventRow;
use iodock_event::{Action, Direction, ErrnoId, FileKind, LossKind, Outcome, UNKNOWN};

/// The direction and the offset of a transfer.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub direction: Direction,
    /// Value of the offset argument, if the call has one and uses it.
    pub at: Option<i64>,
    /// Whether this call appends even if the descriptor was not opened for appending.
    pub appends: bool,
    /// Whether the transfer has an offset in the file.
    pub placed: bool,
}

impl Move {
    pub fn new(direction: Direction, at: Option<i64>) -> Self {
        Move { direction, at, appends: false, placed: true }
    }
}

impl Tracker {
    pub(crate) fn read_or_write(&mut self, ending: &Ending, subject: Subject, row: &mut EventRow) {
        let (raw, action) = (ending.raw, ending.meta.action);
        let direction = match action {
            Action::Read | Action::PositionedRead => Direction::Read,
            _ => Direction::Write,
        };
        let positioned = matches!(action, Action::PositionedRead | Action::PositionedWrite);
        let at = match positioned {
            // preadv2 and pwritev2 with offset -1 use and move the description's position.
            true if raw.offset == -1 && raw.outcome != Outcome::Failed => None,
            true => Some(if raw.offset < 0 { UNKNOWN } else { raw.offset }),
            false => None,
        };
        let mut step = Move::new(direction, at);
        if action == Action::PositionedWrite {
            let flags = flags_of_one_write(raw.flags);
            step.appends = flags & O_APPEND != 0;
            if flags != 0 {
                row.flags = flags as u32;
            }
        }
        self.step(ending, subject, step, row);
    }

    /// Sets the moved bytes of the row, and moves the position of the open file description.
    pub(crate) fn step(&mut self, ending: &Ending, subject: Subject, step: Move, row: &mut EventRow) {
        let bytes = match ending.raw.outcome {
            Outcome::Succeeded if ending.raw.result >= 0 => {
                self.credible(ending.raw.result, most_moved(ending))
            }
            _ => UNKNOWN,
        };
        row.direction = step.direction as u8;
        row.bytes = bytes;
        let Some(slot) = subject.slot else {
            row.offset = step.at.unwrap_or(UNKNOWN);
            return;
        };
        if !step.placed {
            return;
        }
        if self.names.is_fifo(subject.file) {
            return;
        }
        let description = self.descriptions.get_mut(slot);
        let appends = step.direction == Direction::Write && (description.append || step.appends);
        row.offset = match step.at {
            _ if appends => UNKNOWN,
            Some(offset) => offset,
            None if description.unordered => UNKNOWN,
            None => description.position,
        };
        if step.at.is_none() {
            if description.unordered && description.seekable {
                self.unknown_offsets += 1;
            }
            match ending.raw.outcome {
                Outcome::Failed => {}
                Outcome::Succeeded if !appends => description.advance(bytes),
                _ => description.position = UNKNOWN,
            }
        }
        if bytes == UNKNOWN {
            return;
        }
        if row.offset != UNKNOWN {
            let (pattern, gap) = description.last.classify(row.offset, bytes);
            row.pattern = pattern as u8;
            row.gap = gap;
        }
        if step.direction == Direction::Write && bytes > 0 {
            match row.offset {
                UNKNOWN if appends => self.names.appended(row.file, bytes),
                UNKNOWN => {}
                offset => self.names.written_up_to(row.file, offset.saturating_add(bytes)),
            }
        }
    }

    pub(crate) fn seek(&mut self, ending: &Ending, subject: Subject, row: &mut EventRow) {
        let raw = ending.raw;
        if !ending.succeeded() {
            if let (true, Some(slot)) = (raw.errno == ErrnoId::from_linux(ESPIPE), subject.slot) {
                self.descriptions.get_mut(slot).has_no_position();
            }
            return;
        }
        row.offset = if ending.meta.action == Action::SeekResult { raw.offset } else { raw.result };
        if let Some(slot) = subject.slot {
            let description = self.descriptions.get_mut(slot);
            if description.seekable {
                description.position = row.offset;
            }
        }
    }

    pub(crate) fn map(&mut self, ending: &Ending, subject: Subject, row: &mut EventRow) {
        if subject.slot.is_none() {
            return;
        }
        row.offset = ending.raw.offset;
        let kind = self.names.table.entries[subject.file as usize].kind;
        if ending.succeeded() && kind == FileKind::Unknown && row.offset == RING_REQUESTS_AT {
            self.losses.add(LossKind::IoUringContents, 1);
        }
        if ending.succeeded() && (kind.has_path() || kind == FileKind::Memfd) {
            self.names.mark_mapped(subject.file);
            self.note_map(ending.live, ending.raw, subject.file);
        }
    }
}

/// Returns the most bytes that the call can have moved, which is the number requested. Calls on messages have
/// no such limit here.
fn most_moved(ending: &Ending) -> i64 {
    use Action::{PositionedRead, PositionedWrite, Read, Transfer, Write};
    let bounded = matches!(ending.meta.action, Read | PositionedRead | Write | PositionedWrite | Transfer);
    match ending.raw.requested {
        asked @ 0.. if bounded => asked.min(MOST_MOVED),
        _ => MOST_MOVED,
    }
}

/// Error number of a seek on a file without a position, such as a FIFO or terminal.
const ESPIPE: i32 = 29;

/// Offset at which a program maps an io_uring's requests (linux/io_uring.h, IORING_OFF_SQES). If the source
/// did not show the creation of the ring, it does not show its requests either, for example because the
/// program makes system calls without libc.
const RING_REQUESTS_AT: i64 = 0x1000_0000;

/// Returns the open flags that correspond to the flags of a single pwritev2.
fn flags_of_one_write(flags: u64) -> u64 {
    [(RWF_APPEND, O_APPEND), (RWF_DSYNC, O_DSYNC), (RWF_SYNC, O_SYNC)]
        .iter()
        .filter(|(own, _)| flags & own != 0)
        .fold(0, |all, (_, open)| all | open)
}
