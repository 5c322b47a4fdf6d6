//! Tracks which interface call (such as an MPI-IO call) each task is in, and what that call did.

use crate::streams::{is_of_stream, Sums};
use crate::tasks::key;
use crate::{text_of, Tracker};
use iodock_event::interfaces::{
    DatasetRow, HintRow, InterfaceEffect, InterfacePart, InterfaceRecord, InterfaceRow,
};
use iodock_event::{Batch, NONE, UNKNOWN};
use rustc_hash::FxHashMap;

/// Control character that separates the file's name from the description of an object in the file.
const BETWEEN: u8 = 31;

/// A file, data set or variable that a process has opened through an interface.
#[derive(Clone, Copy)]
pub(crate) struct Opened {
    pub file: u32,
    pub handle: u32,
    /// Offset in the file at which the view begins, and bytes of its elementary type; `None` if the view has
    /// gaps.
    pub view: Option<(i64, i64)>,
}

/// An interface call that has not ended. `is_used`: a system call was made inside it.
struct Unfinished {
    row: InterfaceRow,
    is_used: bool,
}

#[derive(Default)]
pub(crate) struct Interfaces {
    /// The unfinished calls of each task, from the outermost to the innermost.
    current: FxHashMap<u64, Vec<Unfinished>>,
    /// Open objects by process, layer, and the handle that the program uses.
    pub opened: FxHashMap<(u32, u8, i64), Opened>,
    /// Handles of the variables of each open file, by the number that the program uses for the variable.
    variables: FxHashMap<(u32, u8, i64), FxHashMap<i64, u32>>,
    /// Sums of stdio calls that made no system call, for streams that are open.
    pub sums: Sums,
    calls: u32,
    handles: u32,
    ended: Vec<InterfaceRow>,
    hints: Vec<HintRow>,
    datasets: Vec<DatasetRow>,
}

impl Interfaces {
    /// Returns the id of the innermost interface call that the task is in; [`NONE`] if it is in none.
    pub fn current(&self, key: u64) -> u32 {
        self.current.get(&key).and_then(|calls| calls.last()).map_or(NONE, |call| call.row.id)
    }

    /// Returns the id as [`Interfaces::current`] does, and notes that the task made a system call inside the
    /// interface call.
    pub fn uses_current(&mut self, key: u64) -> u32 {
        let Some(call) = self.current.get_mut(&key).and_then(|calls| calls.last_mut()) else { return NONE };
        call.is_used = true;
        if call.row.id == NONE {
            call.row.id = next(&mut self.calls);
        }
        call.row.id
    }

    pub fn are_there(&self) -> bool {
        !self.current.is_empty()
    }

    /// Keeps the rows of all unfinished calls of a task that ended. The innermost call comes first.
    pub fn abandon(&mut self, key: u64) {
        for call in self.current.remove(&key).into_iter().flatten().rev() {
            self.keep(call.row);
        }
    }

    /// Handles the beginning of a call. The record's result is the layer of the call that contains it.
    /// Unfinished calls of higher layer numbers cannot contain it, so the task must have left them without
    /// returning.
    fn begins(&mut self, key: u64, utid: u32, record: &InterfaceRecord, (file, handle): (u32, u32)) {
        let outer = if record.result == UNKNOWN { 0 } else { record.result };
        let calls = self.current.entry(key).or_default();
        let is_left = |call: &Unfinished| i64::from(call.row.spec().layer) > outer;
        let left = calls.split_off(calls.iter().rposition(|call| !is_left(call)).map_or(0, |last| last + 1));
        let parent = calls.last().map_or(NONE, |call| call.row.id);
        let row =
            InterfaceRow { file, handle, ..InterfaceRow::new(NONE, parent, utid, record.call, record.time) };
        // A call on a stream gets no id yet, because it may become part of a sum.
        let id = if is_of_stream(&row) { NONE } else { next(&mut self.calls) };
        calls.push(Unfinished { row: InterfaceRow { id, ..row }, is_used: false });
        for call in left.into_iter().rev() {
            self.keep(call.row);
        }
    }

    /// Adds a finished row to the table. Rows are numbered without gaps.
    pub fn keep(&mut self, row: InterfaceRow) {
        let id = if row.id == NONE { next(&mut self.calls) } else { row.id };
        self.ended.push(InterfaceRow { id, ..row });
    }

    /// Removes and returns the call that has ended. The task left the calls inside it without returning.
    fn ends(&mut self, key: u64, call: u16) -> Option<Unfinished> {
        let calls = self.current.get_mut(&key)?;
        let place = calls.iter().rposition(|one| one.row.call == call)?;
        let left = calls.split_off(place + 1);
        let ended = calls.pop();
        for call in left.into_iter().rev() {
            self.keep(call.row);
        }
        ended
    }

    pub fn next_handle(&mut self) -> u32 {
        next(&mut self.handles)
    }
}

/// Returns the next number. If all numbers are used, the last number is returned again, so that calls are
/// still attributed to some row.
fn next(number: &mut u32) -> u32 {
    let id = *number;
    *number = number.saturating_add(1).min(NONE - 1);
    id
}

impl Tracker {
    pub(crate) fn interface(&mut self, space: u16, batch: &Batch, record: &InterfaceRecord) {
        let key = key(space, record.tid);
        let live = match self.tasks.find(key) {
            Some(live) => live,
            None => self.appear(space, record.tid, record.time),
        };
        let utid = self.tasks.live[live].utid;
        let process = self.tasks.rows[utid as usize].upid;
        match record.part {
            InterfacePart::Begins => {
                // Only calls on streams have their handle and descriptor in the record of the beginning.
                let opened = self.stream(live, process, record, record.spec().layer);
                let about = opened.map_or((NONE, NONE), |opened| (opened.file, opened.handle));
                self.interfaces.begins(key, utid, record, about);
            }
            InterfacePart::Hint => {
                let call = self.interfaces.current(key);
                let hint = text_of(batch, record.name).and_then(|text| HintRow::of(call, text));
                self.interfaces.hints.extend(hint.filter(|_| call != NONE));
            }
            InterfacePart::Counts => self.stream_calls_counted(live, process, record, utid),
            InterfacePart::Ends => self.interface_ends(live, process, batch, record, key),
        }
    }

    fn interface_ends(&mut self, live: u32, process: u32, batch: &Batch, record: &InterfaceRecord, key: u64) {
        let Some(Unfinished { mut row, is_used }) = self.interfaces.ends(key, record.call) else { return };
        (row.end, row.result, row.bytes) = (record.time, record.result, record.bytes);
        if is_of_stream(&row) {
            return self.stream_call_ends(live, process, record, row, is_used);
        }
        match row.spec().effect {
            InterfaceEffect::Open | InterfaceEffect::Part => {
                self.interface_opens(live, process, batch, record, &mut row)
            }
            effect => self.interfaces.uses(process, record, effect, &mut row),
        }
        if record.variable != UNKNOWN {
            let name = text_of(batch, record.name);
            self.interfaces.uses_variable(process, record, name, &mut row);
        }
        self.interfaces.ended.push(row);
    }

    fn interface_opens(
        &mut self,
        live: u32,
        process: u32,
        batch: &Batch,
        record: &InterfaceRecord,
        row: &mut InterfaceRow,
    ) {
        let Some(name) = text_of(batch, record.name) else { return };
        let place = self.tasks.live[live].place;
        let directory = self.tasks.places[place].directory;
        let file_end = name.iter().position(|&byte| byte == BETWEEN).unwrap_or(name.len());
        row.file = self.file_at(live, directory, without_kind(&name[..file_end]));
        row.handle = self.interfaces.next_handle();
        if let Some(part) = name.get(file_end + 1..) {
            self.interfaces.datasets.push(DatasetRow::of(row.id, row.handle, row.file, part));
        }
        // Offsets in an object of the file (such as a data set) are not offsets in the file.
        let view = (row.spec().effect == InterfaceEffect::Open).then_some((0, 1));
        let opened = Opened { file: row.file, handle: row.handle, view };
        let key = (process, row.spec().layer, record.handle);
        self.interfaces.opened.insert(key, opened);
        self.interfaces.variables.remove(&key);
    }

    /// Returns the interface calls that have ended since the last call of this function.
    pub fn take_interface_calls(&mut self) -> Vec<InterfaceRow> {
        std::mem::take(&mut self.interfaces.ended)
    }

    /// Returns the hints of files that were opened since the last call of this function.
    pub fn take_hints(&mut self) -> Vec<HintRow> {
        std::mem::take(&mut self.interfaces.hints)
    }

    /// Returns the data sets that were opened since the last call of this function.
    pub fn take_datasets(&mut self) -> Vec<DatasetRow> {
        std::mem::take(&mut self.interfaces.datasets)
    }

    /// Returns the remaining calls at the end of the run, including those that have not returned.
    pub fn take_last_interface_calls(&mut self) -> Vec<InterfaceRow> {
        let left = self.interfaces.current.drain().flat_map(|(_, calls)| calls).map(|call| call.row);
        let mut left: Vec<InterfaceRow> = left.collect();
        left.sort_unstable_by_key(|row| (row.id, row.start, row.utid));
        left.into_iter().for_each(|row| self.interfaces.keep(row));
        self.interfaces.end_sums();
        self.take_interface_calls()
    }
}

impl Interfaces {
    /// Handles a call on an open file.
    fn uses(
        &mut self,
        process: u32,
        record: &InterfaceRecord,
        effect: InterfaceEffect,
        row: &mut InterfaceRow,
    ) {
        let key = (process, row.spec().layer, record.handle);
        let Some(opened) = self.opened.get_mut(&key) else { return };
        (row.file, row.handle) = (opened.file, opened.handle);
        match effect {
            InterfaceEffect::View => {
                row.bytes = UNKNOWN;
                if record.result == 0 {
                    let is_known = record.is_plain_view && record.bytes > 0 && record.offset >= 0;
                    opened.view = is_known.then_some((record.offset, record.bytes));
                }
            }
            InterfaceEffect::Close if record.result == 0 => {
                self.opened.remove(&key);
                self.variables.remove(&key);
            }
            _ => row.offset = place(opened.view, record.offset),
        }
    }

    /// Handles a call on a variable of the file. The first call on a variable has a `name`, which
    /// [`DatasetRow::of`] parses.
    fn uses_variable(
        &mut self,
        process: u32,
        record: &InterfaceRecord,
        name: Option<&[u8]>,
        row: &mut InterfaceRow,
    ) {
        let key = (process, row.spec().layer, record.handle);
        if row.file == NONE {
            return;
        }
        if let Some(name) = name {
            let handle = self.next_handle();
            self.variables.entry(key).or_default().insert(record.variable, handle);
            self.datasets.push(DatasetRow::of(row.id, handle, row.file, name));
        }
        let known = self.variables.get(&key).and_then(|variables| variables.get(&record.variable));
        row.handle = known.copied().unwrap_or(row.handle);
    }
}

/// Converts an offset in a view to an offset in the file, bytes.
fn place(view: Option<(i64, i64)>, offset: i64) -> i64 {
    let Some((from, size)) = view.filter(|_| offset >= 0) else { return UNKNOWN };
    offset.checked_mul(size).and_then(|bytes| bytes.checked_add(from)).unwrap_or(UNKNOWN)
}

/// Removes the file system kind that ROMIO accepts before a name, as in `ufs:/data/out`. A single letter is
/// kept, because it might be a drive.
fn without_kind(name: &[u8]) -> &[u8] {
    let letters = name.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    match name.get(letters) {
        Some(b':') if letters > 1 => &name[letters + 1..],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SpaceOptions, TrackerOptions};
    use iodock_event::interfaces::INTERFACE_CALLS;
    use iodock_event::{CallId, EventColumns, Outcome, RawCall, Record, TaskEnd, Text};

    const OPEN: u16 = 0;
    const CLOSE: u16 = 1;
    const VIEW: u16 = 2;
    const WRITE_AT: u16 = 16;
    const TID: u32 = 7;

    fn part(part: InterfacePart, call: u16, time: i64) -> InterfaceRecord {
        let (bytes, offset, is_plain_view, variable) = (UNKNOWN, UNKNOWN, false, UNKNOWN);
        let (tid, result, handle, name) = (TID, 0, 99, Text::NONE);
        let (descriptor, calls) = (UNKNOWN, UNKNOWN);
        InterfaceRecord {
            tid,
            time,
            part,
            call,
            result,
            handle,
            bytes,
            offset,
            is_plain_view,
            variable,
            name,
            descriptor,
            calls,
        }
    }

    fn begins(call: u16, time: i64) -> Record {
        Record::Interface(part(InterfacePart::Begins, call, time))
    }

    fn ends(call: u16, time: i64) -> InterfaceRecord {
        part(InterfacePart::Ends, call, time)
    }

    fn write_at(time: i64) -> Record {
        let mut raw = RawCall::new(CallId::intern(b"pwrite64").expect("known"), TID);
        (raw.start, raw.duration, raw.fd, raw.outcome, raw.result) = (time, 1, 3, Outcome::Succeeded, 8);
        Record::Call(raw)
    }

    fn tracked(batch: &Batch) -> (Tracker, EventColumns) {
        let space = SpaceOptions { working_directory: Some(b"/scratch".to_vec()), ..SpaceOptions::default() };
        let mut tracker = Tracker::new(TrackerOptions { spaces: vec![space] });
        let mut out = EventColumns::default();
        tracker.track(0, batch, &mut out);
        (tracker, out)
    }

    #[test]
    fn a_system_call_belongs_to_the_interface_call_of_its_task() {
        let mut batch = Batch::default();
        let opened = InterfaceRecord { name: batch.push_text(b"ufs:out"), ..ends(OPEN, 20) };
        let view = InterfaceRecord { bytes: 8, offset: 100, is_plain_view: true, ..ends(VIEW, 26) };
        let written = InterfaceRecord { bytes: 8, offset: 2, ..ends(WRITE_AT, 40) };
        batch.records.extend([begins(OPEN, 10), write_at(12), Record::Interface(opened), write_at(22)]);
        batch.records.extend([begins(VIEW, 25), Record::Interface(view)]);
        batch.records.extend([begins(WRITE_AT, 30), write_at(32), Record::Interface(written)]);
        batch.records.extend([begins(CLOSE, 50), Record::Interface(ends(CLOSE, 52)), write_at(60)]);
        let (mut tracker, out) = tracked(&batch);
        assert_eq!(out.interface_call, [0, NONE, 2, NONE]);
        let calls = tracker.take_last_interface_calls();
        let seen: Vec<_> = calls.iter().map(|row| (row.id, row.call, row.start, row.end)).collect();
        assert_eq!(seen, [(0, OPEN, 10, 20), (1, VIEW, 25, 26), (2, WRITE_AT, 30, 40), (3, CLOSE, 50, 52)]);
        assert!(calls.iter().all(|row| tracker.name_of(row.file) == b"/scratch/out" && row.handle == 0));
        assert_eq!((calls[2].bytes, calls[2].offset), (8, 116));
        assert_eq!((calls[1].bytes, calls[1].offset), (UNKNOWN, UNKNOWN));
    }

    #[test]
    fn hints_belong_to_the_call_that_opens_the_file() {
        let mut batch = Batch::default();
        let name = batch.push_text(b"cb_nodes\x1f2\x1f");
        let hint = InterfaceRecord { name, ..part(InterfacePart::Hint, OPEN, 12) };
        let outside = InterfaceRecord { time: 30, ..hint };
        batch.records.extend([begins(OPEN, 10), Record::Interface(hint), Record::Interface(ends(OPEN, 20))]);
        batch.records.push(Record::Interface(outside));
        let (mut tracker, _) = tracked(&batch);
        let wanted = HintRow { call: 0, key: "cb_nodes".into(), asked: Some("2".into()), taken: None };
        assert_eq!(tracker.take_hints(), [wanted]);
    }

    #[test]
    fn a_call_that_never_returns_has_no_end() {
        let mut batch = Batch::default();
        let (exit_code, signal) = (None, Text::NONE);
        let end = TaskEnd { tid: TID, time: 20, exit_code, signal, core_dumped: false, superseded_by: None };
        batch.records.extend([begins(OPEN, 10), write_at(12), Record::End(end), write_at(30)]);
        let (mut tracker, out) = tracked(&batch);
        assert_eq!(out.interface_call, [0, NONE]);
        let calls = tracker.take_interface_calls();
        assert_eq!(calls, [InterfaceRow::new(0, NONE, 0, OPEN, 10)]);
        assert!(tracker.take_last_interface_calls().is_empty());
    }

    const HDF5_WRITE: &str = "H5Dwrite";

    fn number(name: &str) -> u16 {
        INTERFACE_CALLS.iter().position(|call| call.name == name).expect("known") as u16
    }

    /// Makes a record of a call that begins within a call of layer `outer`; 0 means that it is within none.
    fn begins_in(outer: i64, call: u16, time: i64) -> Record {
        Record::Interface(InterfaceRecord { result: outer, ..part(InterfacePart::Begins, call, time) })
    }

    #[test]
    fn a_call_made_by_a_higher_layer_has_it_as_parent() {
        let (write, layer) = (number(HDF5_WRITE), 2);
        let mut batch = Batch::default();
        batch.records.extend([begins(write, 10), begins_in(layer, WRITE_AT, 12), write_at(13)]);
        batch.records.extend([Record::Interface(ends(WRITE_AT, 14)), write_at(15)]);
        batch.records.extend([Record::Interface(ends(write, 20)), write_at(25)]);
        let (mut tracker, out) = tracked(&batch);
        assert_eq!(out.interface_call, [1, 0, NONE]);
        let calls = tracker.take_last_interface_calls();
        let seen: Vec<_> = calls.iter().map(|row| (row.id, row.parent, row.end)).collect();
        assert_eq!(seen, [(1, 0, 14), (0, NONE, 20)]);
    }

    #[test]
    fn an_abandoned_call_is_not_a_parent() {
        let write = number(HDF5_WRITE);
        let mut batch = Batch::default();
        batch.records.extend([
            begins(write, 10),
            begins(WRITE_AT, 12),
            Record::Interface(ends(WRITE_AT, 14)),
        ]);
        // The inner call is abandoned, and the outer one continues.
        batch.records.extend([
            begins(write, 20),
            begins_in(2, WRITE_AT, 22),
            Record::Interface(ends(write, 30)),
        ]);
        let (mut tracker, _) = tracked(&batch);
        let calls = tracker.take_last_interface_calls();
        let seen: Vec<_> = calls.iter().map(|row| (row.id, row.parent, row.end)).collect();
        assert_eq!(seen, [(0, NONE, UNKNOWN), (1, NONE, 14), (3, 2, UNKNOWN), (2, NONE, 30)]);
    }

    #[test]
    fn variables_are_known_from_their_first_call_until_close() {
        let (open, close, write) = (number("nc_create"), number("nc_close"), number("nc_put_vara_double"));
        let mut batch = Batch::default();
        let file = batch.push_text(b"out.nc");
        let variable = batch.push_text(b"heat\x1fchunked\x1f8\x1f\x1f1x20\x1f");
        let first = InterfaceRecord { variable: 3, name: variable, ..ends(write, 30) };
        let later = InterfaceRecord { variable: 3, ..ends(write, 40) };
        let opened = |time| InterfaceRecord { name: file, ..ends(open, time) };
        for record in [opened(20), first, later, ends(close, 50), opened(60), later] {
            batch.records.extend([begins(record.call, record.time - 5), Record::Interface(record)]);
        }
        let (mut tracker, _) = tracked(&batch);
        let calls = tracker.take_last_interface_calls();
        assert_eq!(calls.iter().map(|row| row.handle).collect::<Vec<_>>(), [0, 1, 1, 0, 2, 2]);
        assert!(calls.iter().all(|row| tracker.name_of(row.file) == b"/scratch/out.nc"));
        let sets = tracker.take_datasets();
        let [set] = sets.as_slice() else { panic!("one data set") };
        assert_eq!((set.call, set.handle, set.name.as_str(), set.extent.as_deref()), (1, 1, "heat", None));
        assert_eq!((set.chunk_bytes, set.filters.as_deref()), (Some(160), None));
    }

    #[test]
    fn data_sets_are_known_from_the_call_that_opened_them() {
        let open = number("H5Dopen2");
        let mut batch = Batch::default();
        let name = batch.push_text(b"out.h5\x1f/heat\x1fchunked\x1f8\x1f100x20\x1f10x20\x1fshuffle,deflate");
        let opened = InterfaceRecord { name, handle: 7, ..ends(open, 20) };
        let written = InterfaceRecord { handle: 7, bytes: 80, ..ends(number(HDF5_WRITE), 40) };
        batch.records.extend([begins(open, 10), Record::Interface(opened)]);
        batch.records.extend([begins(number(HDF5_WRITE), 30), Record::Interface(written)]);
        let (mut tracker, _) = tracked(&batch);
        let calls = tracker.take_last_interface_calls();
        assert!(calls.iter().all(|row| tracker.name_of(row.file) == b"/scratch/out.h5" && row.handle == 0));
        let datasets = tracker.take_datasets();
        let text = |text: &str| Some(text.to_string());
        let (layout, extent) = (text("chunked"), text("100x20"));
        let (chunk, filters) = (text("10x20"), text("shuffle,deflate"));
        let (name, file) = ("/heat".into(), calls[0].file);
        let (element_bytes, chunk_bytes) = (Some(8), Some(1600));
        let wanted = DatasetRow {
            call: 0,
            handle: 0,
            file,
            name,
            layout,
            element_bytes,
            extent,
            chunk,
            chunk_bytes,
            filters,
        };
        assert_eq!(datasets, [wanted]);
    }

    #[test]
    fn offsets_are_file_offsets_if_the_view_has_no_gaps() {
        assert_eq!(place(Some((100, 8)), 3), 124);
        assert_eq!(place(None, 3), UNKNOWN);
        assert_eq!(place(Some((0, 1)), UNKNOWN), UNKNOWN);
        assert_eq!(place(Some((0, i64::MAX)), 3), UNKNOWN);
    }

    #[test]
    fn a_file_system_prefix_is_not_part_of_a_name() {
        assert_eq!(without_kind(b"ufs:/data/out"), b"/data/out");
        assert_eq!(without_kind(b"out:1"), b"1");
        assert_eq!(without_kind(b"a/b:c"), b"a/b:c");
        assert_eq!(without_kind(b"c:out"), b"c:out");
    }
}
