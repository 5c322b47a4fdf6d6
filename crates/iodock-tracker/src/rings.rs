//! Requests inside io_urings, for sources that show submissions and completions at the end of io_uring_enter.
//! Each request becomes a row of its own (`io_uring_read`) when it completes.

use crate::calls::{Ending, Subject};
use crate::Tracker;
use iodock_event::event::EventRow;
use iodock_event::{Action, AsyncItem, CallId, ErrnoId, LossKind, Outcome, RawCall, Text};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A request in flight. It keeps a reference to its open file description.
#[derive(Clone, Copy, Debug)]
struct Request {
    call: CallId,
    subject: Subject,
    fd: i32,
    requested: i64,
    offset: i64,
    /// Start time of the call that submitted the request, ns.
    start: i64,
    /// Whether different requests with the same key were in flight. The tracker cannot distinguish them.
    ambiguous: bool,
}

impl Request {
    /// Returns whether two requests are alike. Then the order of their completions does not change which data
    /// of which file were requested. It does not change offsets either, unless fewer bytes were moved than
    /// requested.
    fn is_like(&self, other: &Request) -> bool {
        let of = |request: &Request| (request.call, request.fd, request.requested);
        let file = |request: &Request| (request.subject.file, request.subject.handle);
        of(self) == of(other) && file(self) == file(other)
    }
}

/// Process, open file description of the ring, and the number that the program assigned to the request.
type Key = (u32, u32, u64);

/// The requests in flight in all rings, oldest first. A key can have several, because many programs do not
/// number their requests.
#[derive(Debug, Default)]
pub(crate) struct InRings(FxHashMap<Key, VecDeque<Request>>);

impl InRings {
    fn add(&mut self, key: Key, request: Request) {
        let same = self.0.entry(key).or_default();
        let ambiguous = same.back().is_some_and(|last| last.ambiguous || !last.is_like(&request));
        if ambiguous && !same[same.len() - 1].ambiguous {
            same.iter_mut().for_each(|request| request.ambiguous = true);
        }
        same.push_back(Request { ambiguous, ..request });
    }

    fn take(&mut self, key: Key) -> Option<Request> {
        let same = self.0.get_mut(&key)?;
        let request = same.pop_front();
        if same.is_empty() {
            self.0.remove(&key);
        }
        request
    }

    /// Returns the number of requests in flight that will become a row when they complete.
    pub fn data_requests(&self) -> u64 {
        let shown = |request: &&Request| request.call.spec().is_ring_request();
        self.0.values().flatten().filter(shown).count() as u64
    }
}

impl Tracker {
    /// Adds the row of io_uring_enter, and a row for each completed request that the call reported.
    pub(crate) fn ring_entered(&mut self, ending: &Ending, blank: EventRow, out: &mut Vec<EventRow>) {
        let mut row = blank;
        let ring = self.subject_of(ending, &mut row);
        (row.file, row.handle) = (ring.file, ring.handle);
        out.push(row);
        if ending.raw.argument > 0 {
            self.losses.add(LossKind::IoUringContents, ending.raw.argument as u64);
        }
        let process = self.tasks.live[ending.live].process;
        let key = |item: &AsyncItem| (process, ring.handle, item.key);
        let mut early = Vec::new();
        for item in ending.items() {
            match item.call {
                Some(call) => self.goes_in(ending, key(item), call, item),
                None if !self.is_done(ending, key(item), item.bytes, out) => early.push(item),
                None => {}
            }
        }
        // Handles completions for which no request was known at first. Another thread may have collected the
        // completion while this call was still running. The rest belong to requests from before the
        // recording, or to requests that complete several times.
        for item in early {
            self.is_done(ending, key(item), item.bytes, out);
        }
    }

    fn goes_in(&mut self, ending: &Ending, key: Key, call: CallId, item: &AsyncItem) {
        let mut subject = Subject::NOTHING;
        if !call.spec().is_ring_request() {
            self.losses.add(LossKind::IoUringContents, 1);
        } else if item.fd >= 0 {
            let descriptor = self.descriptor(ending.live, item.fd);
            subject = self.subject(ending.live, descriptor, item.fd, Text::NONE, ending.batch, false);
        }
        if let Some(slot) = subject.slot {
            self.descriptions.hold(slot);
        }
        let start = ending.raw.start;
        let (fd, requested, offset) = (item.fd, item.bytes, item.offset);
        self.in_rings.add(key, Request { call, subject, fd, requested, offset, start, ambiguous: false });
    }

    /// Handles a completion. Returns whether the tracker knows its request.
    fn is_done(&mut self, ending: &Ending, key: Key, result: i64, out: &mut Vec<EventRow>) -> bool {
        let Some(request) = self.in_rings.take(key) else { return false };
        if request.ambiguous {
            self.losses.add(LossKind::AsyncUnmatched, 1);
        } else if request.call.spec().is_ring_request() {
            self.show_request(ending, &request, result, out);
        }
        if let Some(slot) = request.subject.slot {
            self.descriptions.release(slot);
        }
        true
    }

    fn show_request(&mut self, ending: &Ending, request: &Request, result: i64, out: &mut Vec<EventRow>) {
        let mut raw = RawCall::new(request.call, ending.raw.tid);
        // The time at which the kernel completed the request is unknown. The row ends when the program saw
        // the completion.
        (raw.start, raw.end) = (request.start, ending.raw.end_time());
        (raw.result, raw.outcome) = (result, Outcome::Succeeded);
        if result < 0 {
            raw.errno = i32::try_from(-result).map_or(ErrnoId::NONE, ErrnoId::from_linux);
            (raw.result, raw.outcome) = (-1, Outcome::Failed);
        }
        let meta = self.meta_of(request.call);
        let moves = matches!(meta.action, Action::PositionedRead | Action::PositionedWrite);
        if moves {
            (raw.requested, raw.offset) = (request.requested, request.offset);
        }
        let mut row = self.blank_row(self.tasks.live[ending.live].utid, &raw);
        row.file = request.subject.file;
        row.handle = request.subject.handle;
        row.fd = request.fd;
        if moves {
            let done = Ending { meta, raw: &raw, ..*ending };
            self.read_or_write(&done, request.subject, &mut row);
        }
        out.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = (1, 2, 0);

    fn request(name: &str, file: u32, offset: i64) -> Request {
        let call = CallId::intern(name.as_bytes()).expect("a call");
        let subject = Subject { file, handle: file, slot: None };
        Request { call, subject, fd: file as i32, requested: 4096, offset, start: 0, ambiguous: false }
    }

    /// Returns the offsets of completed requests and whether each is certain, in the order of completion.
    fn done(requests: &[Request]) -> Vec<(i64, bool)> {
        let mut rings = InRings::default();
        requests.iter().for_each(|&request| rings.add(KEY, request));
        std::iter::from_fn(|| rings.take(KEY)).map(|request| (request.offset, request.ambiguous)).collect()
    }

    #[test]
    fn equal_requests_with_the_same_number_complete_in_order() {
        let alike = [0, 4096, 8192].map(|offset| request("io_uring_read", 3, offset));
        assert_eq!(done(&alike), [(0, false), (4096, false), (8192, false)]);
    }

    #[test]
    fn different_requests_with_the_same_number_are_ambiguous() {
        let [one, other] = [3, 4].map(|file| request("io_uring_read", file, 0));
        assert_eq!(done(&[one, other, one, one]), [(0, true); 4]);
        assert_eq!(done(&[one, request("io_uring_write", 3, 0)]), [(0, true); 2]);
        assert_eq!(done(&[one, Request { requested: 1, ..one }]), [(0, true); 2]);
    }
}
