//! Streams of stdio (FILE), and the sums of calls on them that made no system call.

use crate::calls::is_standard;
use crate::interfaces::{Interfaces, Opened};
use crate::tasks::Descriptor;
use crate::Tracker;
use iodock_event::interfaces::{InterfaceEffect, InterfaceRecord, InterfaceRow, STDIO};
use iodock_event::{Text, NONE, UNKNOWN};
use rustc_hash::FxHashMap;

/// Rows that stand for several calls, by process and handle: one for each function.
pub(crate) type Sums = FxHashMap<(u32, u32), Vec<InterfaceRow>>;

impl Tracker {
    /// The open stream and its file, which the descriptor says: standard streams were opened before the program began, and
    /// others by the parent of this process.
    pub(crate) fn stream(
        &mut self,
        live: u32,
        process: u32,
        record: &InterfaceRecord,
        layer: u8,
    ) -> Option<Opened> {
        if record.handle == UNKNOWN {
            return None;
        }
        let file = i32::try_from(record.descriptor).map_or(NONE, |fd| self.file_of(live, fd));
        let key = (process, layer, record.handle);
        let known = self.interfaces.opened.get(&key).copied();
        if let Some(known) = known.filter(|known| file == NONE || file == known.file) {
            return Some(known);
        }
        let opened = Opened { file, handle: self.interfaces.next_handle(), view: None };
        self.interfaces.opened.insert(key, opened);
        Some(opened)
    }

    fn file_of(&mut self, live: u32, fd: i32) -> u32 {
        let slot = match self.descriptor(live, fd) {
            Descriptor::Open(slot) => slot,
            Descriptor::Missing if is_standard(fd) => self.discover(live, fd, Text::NONE, &Default::default()),
            _ => return NONE,
        };
        self.descriptions.get(slot).file
    }

    /// A call on a stream has ended. `is_used`: it made system calls.
    pub(crate) fn stream_call_ends(
        &mut self,
        live: u32,
        process: u32,
        record: &InterfaceRecord,
        mut row: InterfaceRow,
        is_used: bool,
    ) {
        let (effect, layer) = (row.spec().effect, row.spec().layer);
        if effect == InterfaceEffect::Open && record.handle != UNKNOWN {
            self.interfaces.opened.remove(&(process, layer, record.handle));
            let opened = self.stream(live, process, record, layer);
            (row.file, row.handle) = opened.map_or((NONE, NONE), |opened| (opened.file, opened.handle));
        }
        let stands_alone = is_used || row.result != 0 || row.parent != NONE || effect != InterfaceEffect::Nothing;
        if stands_alone {
            self.interfaces.ended.push(row);
        } else {
            self.interfaces.add_to_sum(process, row);
        }
        if effect == InterfaceEffect::Close {
            self.interfaces.stream_is_closed(process, layer, record.handle, row.handle);
        }
    }

    /// Calls that made no system call, which the program's process counted.
    pub(crate) fn stream_calls_counted(
        &mut self,
        live: u32,
        process: u32,
        record: &InterfaceRecord,
        utid: u32,
    ) {
        let mut row = InterfaceRow::new(NONE, NONE, utid, record.call, record.time);
        let opened = self.stream(live, process, record, row.spec().layer);
        (row.file, row.handle) = opened.map_or((NONE, NONE), |opened| (opened.file, opened.handle));
        (row.end, row.result, row.bytes, row.calls) = (record.time, 0, record.bytes, record.calls.max(0));
        self.interfaces.add_to_sum(process, row);
    }
}

impl Interfaces {
    fn add_to_sum(&mut self, process: u32, row: InterfaceRow) {
        let rows = self.sums.entry((process, row.handle)).or_default();
        let Some(sum) = rows.iter_mut().find(|sum| sum.call == row.call) else {
            let id = if row.id == NONE { self.next_id() } else { row.id };
            let sum = InterfaceRow { id, is_sum: true, ..row };
            self.sums.entry((process, row.handle)).or_default().push(sum);
            return;
        };
        sum.calls = sum.calls.saturating_add(row.calls);
        let is_known = sum.bytes != UNKNOWN && row.bytes != UNKNOWN;
        sum.bytes = if is_known { sum.bytes.saturating_add(row.bytes) } else { UNKNOWN };
        (sum.start, sum.end) = (sum.start.min(row.start), sum.end.max(row.end));
    }

    fn stream_is_closed(&mut self, process: u32, layer: u8, stream: i64, handle: u32) {
        self.ended.extend(self.sums.remove(&(process, handle)).unwrap_or_default());
        self.opened.remove(&(process, layer, stream));
    }

    /// The sums of streams that were never closed.
    pub(crate) fn end_sums(&mut self) {
        let mut left: Vec<InterfaceRow> = self.sums.drain().flat_map(|(_, rows)| rows).collect();
        left.sort_unstable_by_key(|row| row.id);
        self.ended.append(&mut left);
    }
}

/// Whether calls of this layer are of streams.
pub(crate) fn is_of_stream(call: &InterfaceRow) -> bool {
    call.spec().interface == STDIO
}
