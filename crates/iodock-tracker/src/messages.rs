//! Calls on sockets and pipes whose data or descriptors are in structures that their arguments point to.

use crate::calls::{Ending, Subject};
use crate::tasks::key;
use crate::{Tracker, MOST_MOVED};
use iodock_event::event::EventRow;
use iodock_event::{Action, AsyncItem, Direction, LossKind, NO_FD, UNKNOWN};

impl Tracker {
    /// Counts the bytes, which have no offset, and handles the descriptors that are passed with them.
    pub(crate) fn receive_or_send(&mut self, ending: &Ending, subject: Subject, row: &mut EventRow) {
        let receives = match ending.meta.action {
            Action::Receive | Action::ReceiveMany => true,
            Action::PipeMemory => subject.slot.is_some_and(|slot| self.descriptions.get(slot).read_end),
            _ => false,
        };
        row.direction = if receives { Direction::Read } else { Direction::Write } as u8;
        if !ending.succeeded() || ending.raw.result < 0 {
            return;
        }
        let items = ending.items();
        let moved = match ending.meta.action {
            Action::ReceiveMany | Action::SendMany => bytes_of_messages(items, ending.raw.result),
            _ => ending.raw.result,
        };
        row.bytes = self.credible(moved, MOST_MOVED);
        for fd in items.iter().map(|item| item.fd).filter(|&fd| fd >= 0) {
            match receives {
                true => self.received(ending.live, fd),
                false => self.handed_on(ending.live, fd),
            }
        }
    }

    /// Marks the description of a descriptor that was sent. From now on the receiving process moves the same
    /// position.
    fn handed_on(&mut self, live: u32, fd: i32) {
        let Some(slot) = self.tasks.tables[self.tasks.live[live].table].get(fd) else { return };
        let description = self.descriptions.get_mut(slot);
        if description.seekable {
            description.seekable = false;
            description.position = UNKNOWN;
            self.losses.add(LossKind::PassedDescriptors, 1);
        }
    }

    /// Adds a descriptor that came from another process. The tracker knows neither its file nor how others
    /// move its position.
    fn received(&mut self, live: u32, fd: i32) {
        self.remove(live, fd);
        let table = self.tasks.live[live].table;
        self.tasks.tables[table].foreign = true;
    }

    /// Handles pidfd_open: notes the process whose descriptors pidfd_getfd can copy.
    pub(crate) fn new_pidfd_of(&mut self, live: u32, fd: i32, process: i64) {
        let Some(slot) = self.tasks.tables[self.tasks.live[live].table].get(fd) else { return };
        self.descriptions.get_mut(slot).process = u32::try_from(process).unwrap_or(0);
    }

    /// Handles pidfd_getfd, which copies a descriptor of another process. Both share the description, as
    /// after dup.
    pub(crate) fn get_from_process(&mut self, ending: &Ending, subject: Subject) {
        let (live, raw) = (ending.live, ending.raw);
        let Ok(fd) = i32::try_from(raw.result) else { return };
        let slot = subject.slot.and_then(|slot| {
            let process = self.descriptions.get(slot).process;
            let other = self.tasks.find(key(self.tasks.live[live].space, process))?;
            self.tasks.tables[self.tasks.live[other].table].get(i32::try_from(raw.argument).ok()?)
        });
        match slot {
            Some(_) => self.duplicate(live, Subject { slot, ..subject }, i64::from(fd), true),
            None => self.received(live, fd),
        }
    }
}

/// Returns the sum of the bytes of the first `count` messages; UNKNOWN unless the source shows all of them.
fn bytes_of_messages(items: &[AsyncItem], count: i64) -> i64 {
    let messages = items.iter().filter(|item| item.fd == NO_FD);
    let mut left = count;
    let mut sum = 0i64;
    for message in messages.take(usize::try_from(count).unwrap_or(0)) {
        if message.bytes < 0 {
            return UNKNOWN;
        }
        left -= 1;
        sum = sum.saturating_add(message.bytes);
    }
    if left > 0 {
        UNKNOWN
    } else {
        sum
    }
}
