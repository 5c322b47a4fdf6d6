//! Streams of stdio (`FILE`), and the sums of calls on them that made no system call.

use crate::calls::is_standard;
use crate::interfaces::{Interfaces, Opened};
use crate::tasks::Descriptor;
use crate::Tracker;
use iodock_event::interfaces::{InterfaceEffect, InterfaceRecord, InterfaceRow, STDIO};
use iodock_event::{Text, NONE, UNKNOWN};
use rustc_hash::FxHashMap;

/// Rows that sum up several calls, by process and handle. Each function has its own row.
pub(crate) type Sums = FxHashMap<(u32, u32), Vec<InterfaceRow>>;

impl Tracker {
    /// Returns the open stream, and adds it if it is new. The descriptor determines its file. A stream can be
    /// new without an open call: the system opens the standard streams, and a child inherits its parent's
    /// streams.
    pub(crate) fn stream(
        &mut self,
        live: u32,
        process: u32,
        record: &InterfaceRecord,
        layer: u8,
    ) -> Option<Opened> {
        if record.handle == UNKNOWN || record.spec().interface != STDIO {
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
            Descriptor::Missing if is_standard(fd) => {
                self.discover(live, fd, Text::NONE, &Default::default())
            }
            _ => return NONE,
        };
        self.descriptions.get(slot).file
    }

    /// Handles the end of a call on a stream. `is_used`: the call made system calls.
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
        let stands_alone =
            is_used || row.result != 0 || row.parent != NONE || effect != InterfaceEffect::Nothing;
        if stands_alone {
            self.interfaces.keep(row);
        } else {
            self.interfaces.add_to_sum(process, row);
        }
        if effect == InterfaceEffect::Close {
            self.interfaces.stream_is_closed(process, layer, record.handle, row.handle);
        }
    }

    /// Handles a record of calls that made no system call. The recorder's library counted them inside the
    /// program.
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
            return rows.push(InterfaceRow { is_sum: true, ..row });
        };
        sum.calls = sum.calls.saturating_add(row.calls);
        let is_known = sum.bytes != UNKNOWN && row.bytes != UNKNOWN;
        sum.bytes = if is_known { sum.bytes.saturating_add(row.bytes) } else { UNKNOWN };
        (sum.start, sum.end) = (sum.start.min(row.start), sum.end.max(row.end));
    }

    fn stream_is_closed(&mut self, process: u32, layer: u8, stream: i64, handle: u32) {
        self.sums.remove(&(process, handle)).into_iter().flatten().for_each(|sum| self.keep(sum));
        self.opened.remove(&(process, layer, stream));
    }

    /// Adds the sums of streams that were never closed to the table.
    pub(crate) fn end_sums(&mut self) {
        let mut left: Vec<InterfaceRow> = self.sums.drain().flat_map(|(_, rows)| rows).collect();
        left.sort_unstable_by_key(|row| (row.start, row.utid, row.handle, row.call));
        left.into_iter().for_each(|sum| self.keep(sum));
    }
}

/// Returns whether the call is a call on a stream.
pub(crate) fn is_of_stream(call: &InterfaceRow) -> bool {
    call.spec().interface == STDIO
}

#[cfg(test)]
mod tests {
    use crate::{Tracker, TrackerOptions};
    use iodock_event::interfaces::{InterfacePart, InterfaceRecord, INTERFACE_CALLS};
    use iodock_event::{Batch, CallId, EventColumns, Outcome, RawCall, Record, Text, NONE, UNKNOWN};

    const TID: u32 = 7;
    const STREAM: i64 = 0x5555;

    fn record(part: InterfacePart, name: &str, time: i64) -> InterfaceRecord {
        InterfaceRecord {
            tid: TID,
            time,
            part,
            call: INTERFACE_CALLS.iter().position(|call| call.name == name).expect("known") as u16,
            result: UNKNOWN,
            handle: UNKNOWN,
            bytes: UNKNOWN,
            offset: UNKNOWN,
            is_plain_view: false,
            variable: UNKNOWN,
            name: Text::NONE,
            descriptor: UNKNOWN,
            calls: UNKNOWN,
        }
    }

    fn begins(name: &str, time: i64) -> Record {
        let about =
            InterfaceRecord { handle: STREAM, descriptor: 1, ..record(InterfacePart::Begins, name, time) };
        Record::Interface(about)
    }

    fn ends(name: &str, time: i64, bytes: i64) -> Record {
        let handle = if name == "fclose" { STREAM } else { UNKNOWN };
        let end = record(InterfacePart::Ends, name, time);
        Record::Interface(InterfaceRecord { result: 0, bytes, handle, ..end })
    }

    fn counts(name: &str, time: i64, calls: i64) -> Record {
        let counted = record(InterfacePart::Counts, name, time);
        let (handle, descriptor) = (STREAM, 1);
        Record::Interface(InterfaceRecord { result: 0, bytes: calls, handle, descriptor, calls, ..counted })
    }

    fn write(time: i64) -> Record {
        let mut raw = RawCall::new(CallId::intern(b"write").expect("known"), TID);
        (raw.start, raw.duration, raw.fd, raw.outcome, raw.result) = (time, 1, 1, Outcome::Succeeded, 8);
        Record::Call(raw)
    }

    #[test]
    fn calls_without_a_system_call_are_summed_up_until_the_stream_is_closed() {
        let mut batch = Batch::default();
        batch.records.extend([
            counts("fputc", 5, 4096),
            begins("fputc", 10),
            write(11),
            ends("fputc", 12, 1),
        ]);
        batch.records.extend([begins("fprintf", 20), ends("fprintf", 21, 9), counts("fputc", 25, 10)]);
        batch.records.extend([begins("fclose", 30), write(31), ends("fclose", 32, UNKNOWN)]);
        let mut tracker = Tracker::new(TrackerOptions { spaces: vec![Default::default()] });
        let mut out = EventColumns::default();
        tracker.track(0, &batch, &mut out);
        let calls = tracker.take_interface_calls();
        let seen: Vec<_> =
            calls.iter().map(|row| (row.spec().name, row.calls, row.bytes, row.is_sum)).collect();
        assert_eq!(
            seen,
            [
                ("fputc", 1, 1, false),
                ("fclose", 1, UNKNOWN, false),
                ("fputc", 4106, 4106, true),
                ("fprintf", 1, 9, true)
            ]
        );
        assert!(calls.iter().all(|row| row.file == calls[0].file && row.handle == calls[0].handle));
        assert_eq!((calls[2].start, calls[2].end), (5, 25));
        assert_eq!(calls.iter().map(|row| row.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(out.interface_call, [calls[0].id, calls[1].id]);
        assert!(tracker.take_last_interface_calls().is_empty());
    }

    #[test]
    fn sums_of_streams_that_stay_open_are_there_at_the_end() {
        let mut batch = Batch::default();
        batch.records.extend([counts("fgetc", 5, 3), counts("fgetc", 6, 2)]);
        let mut tracker = Tracker::new(TrackerOptions { spaces: vec![Default::default()] });
        tracker.track(0, &batch, &mut EventColumns::default());
        assert!(tracker.take_interface_calls().is_empty());
        let [row] = tracker.take_last_interface_calls()[..] else { panic!("one row") };
        assert_eq!((row.calls, row.parent, row.is_sum), (5, NONE, true));
    }
}
