//! In which call of an interface a task is, and what that call did.

use crate::tasks::key;
use crate::{text_of, Tracker};
use iodock_event::interfaces::{HintRow, InterfaceEffect, InterfacePart, InterfaceRecord, InterfaceRow};
use iodock_event::{Batch, NONE, UNKNOWN};
use rustc_hash::FxHashMap;

/// What a process has open through an interface.
#[derive(Clone, Copy)]
struct Opened {
    file: u32,
    handle: u32,
    /// Where offsets count from, in bytes, and what each of them stands for; `None` where places are left out.
    view: Option<(i64, i64)>,
}

#[derive(Default)]
pub(crate) struct Interfaces {
    /// By task: the call that it is in.
    current: FxHashMap<u64, InterfaceRow>,
    /// By process and the program's own handle.
    opened: FxHashMap<(u32, i64), Opened>,
    calls: u32,
    handles: u32,
    ended: Vec<InterfaceRow>,
    hints: Vec<HintRow>,
}

impl Interfaces {
    /// The call that the task is in, [`NONE`] if it is in none.
    pub fn current(&self, key: u64) -> u32 {
        self.current.get(&key).map_or(NONE, |call| call.id)
    }

    pub fn are_there(&self) -> bool {
        !self.current.is_empty()
    }

    /// The task goes, or makes another call: it has not returned from that one.
    pub fn abandon(&mut self, key: u64) {
        self.ended.extend(self.current.remove(&key));
    }
}

impl Tracker {
    pub(crate) fn interface(&mut self, space: u16, batch: &Batch, record: &InterfaceRecord) {
        let key = key(space, record.tid);
        let live = match self.tasks.find(key) {
            Some(live) => live,
            None => self.appear(space, record.tid, record.time),
        };
        let utid = self.tasks.live[live].utid;
        if record.part == InterfacePart::Begins {
            self.interfaces.abandon(key);
            let id = self.interfaces.calls;
            // (Where numbers run out calls are still attributed, to one that says nothing.)
            self.interfaces.calls = self.interfaces.calls.saturating_add(1).min(NONE - 1);
            let row = InterfaceRow::new(id, utid, record.call, record.time);
            self.interfaces.current.insert(key, row);
            return;
        }
        if record.part == InterfacePart::Hint {
            let call = self.interfaces.current(key);
            let hint = text_of(batch, record.name).and_then(|text| HintRow::of(call, text));
            self.interfaces.hints.extend(hint.filter(|_| call != NONE));
            return;
        }
        let Some(mut row) = self.interfaces.current.remove(&key).filter(|row| row.call == record.call) else {
            return;
        };
        (row.end, row.result, row.bytes) = (record.time, record.result, record.bytes);
        let process = self.tasks.rows[utid as usize].upid;
        match row.spec().effect {
            InterfaceEffect::Open => self.interface_opens(live, process, batch, record, &mut row),
            effect => self.interfaces.uses(process, record, effect, &mut row),
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
        row.file = self.file_at(live, directory, without_kind(name));
        row.handle = self.interfaces.handles;
        self.interfaces.handles = self.interfaces.handles.saturating_add(1).min(NONE - 1);
        let opened = Opened { file: row.file, handle: row.handle, view: Some((0, 1)) };
        self.interfaces.opened.insert((process, record.handle), opened);
    }

    /// Calls of interfaces that have ended since this was asked last.
    pub fn take_interface_calls(&mut self) -> Vec<InterfaceRow> {
        std::mem::take(&mut self.interfaces.ended)
    }

    /// Hints of files that were opened since this was asked last.
    pub fn take_hints(&mut self) -> Vec<HintRow> {
        std::mem::take(&mut self.interfaces.hints)
    }

    /// The same at the end of everything: also those that have not returned.
    pub fn take_last_interface_calls(&mut self) -> Vec<InterfaceRow> {
        let mut left: Vec<InterfaceRow> = self.interfaces.current.drain().map(|(_, row)| row).collect();
        left.sort_unstable_by_key(|row| row.id);
        self.interfaces.ended.append(&mut left);
        self.take_interface_calls()
    }
}

impl Interfaces {
    /// A call on a file that is open.
    fn uses(
        &mut self,
        process: u32,
        record: &InterfaceRecord,
        effect: InterfaceEffect,
        row: &mut InterfaceRow,
    ) {
        let Some(opened) = self.opened.get_mut(&(process, record.handle)) else { return };
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
                self.opened.remove(&(process, record.handle));
            }
            _ => row.offset = place(opened.view, record.offset),
        }
    }
}

/// Where in the file an offset is, bytes.
fn place(view: Option<(i64, i64)>, offset: i64) -> i64 {
    let Some((from, size)) = view.filter(|_| offset >= 0) else { return UNKNOWN };
    offset.checked_mul(size).and_then(|bytes| bytes.checked_add(from)).unwrap_or(UNKNOWN)
}

/// ROMIO takes the kind of the file system before the name: `ufs:/data/out`. (One letter is none: it might be a drive's.)
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
    use iodock_event::{CallId, EventColumns, Outcome, RawCall, Record, TaskEnd, Text};

    const OPEN: u16 = 0;
    const CLOSE: u16 = 1;
    const VIEW: u16 = 2;
    const WRITE_AT: u16 = 16;
    const TID: u32 = 7;

    fn part(part: InterfacePart, call: u16, time: i64) -> InterfaceRecord {
        let (bytes, offset, is_plain_view) = (UNKNOWN, UNKNOWN, false);
        let (result, handle, name) = (0, 99, Text::NONE);
        InterfaceRecord { tid: TID, time, part, call, result, handle, bytes, offset, is_plain_view, name }
    }

    fn begins(call: u16, time: i64) -> Record {
        Record::Interface(part(InterfacePart::Begins, call, time))
    }

    fn ends(call: u16, time: i64) -> InterfaceRecord {
        part(InterfacePart::Ends, call, time)
    }

    fn write(time: i64) -> Record {
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
    fn a_call_belongs_to_the_one_that_its_task_is_in() {
        let mut batch = Batch::default();
        let opened = InterfaceRecord { name: batch.push_text(b"ufs:out"), ..ends(OPEN, 20) };
        let view = InterfaceRecord { bytes: 8, offset: 100, is_plain_view: true, ..ends(VIEW, 26) };
        let written = InterfaceRecord { bytes: 8, offset: 2, ..ends(WRITE_AT, 40) };
        batch.records.extend([begins(OPEN, 10), write(12), Record::Interface(opened), write(22)]);
        batch.records.extend([begins(VIEW, 25), Record::Interface(view)]);
        batch.records.extend([begins(WRITE_AT, 30), write(32), Record::Interface(written)]);
        batch.records.extend([begins(CLOSE, 50), Record::Interface(ends(CLOSE, 52)), write(60)]);
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
    fn hints_belong_to_the_call_that_opens() {
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
        batch.records.extend([begins(OPEN, 10), write(12), Record::End(end), write(30)]);
        let (mut tracker, out) = tracked(&batch);
        assert_eq!(out.interface_call, [0, NONE]);
        let calls = tracker.take_interface_calls();
        assert_eq!(calls, [InterfaceRow::new(0, 0, OPEN, 10)]);
        assert!(tracker.take_last_interface_calls().is_empty());
    }

    #[test]
    fn offsets_are_places_where_the_view_leaves_nothing_out() {
        assert_eq!(place(Some((100, 8)), 3), 124);
        assert_eq!(place(None, 3), UNKNOWN);
        assert_eq!(place(Some((0, 1)), UNKNOWN), UNKNOWN);
        assert_eq!(place(Some((0, i64::MAX)), 3), UNKNOWN);
    }

    #[test]
    fn the_kind_of_the_file_system_is_no_part_of_a_name() {
        assert_eq!(without_kind(b"ufs:/data/out"), b"/data/out");
        assert_eq!(without_kind(b"out:1"), b"1");
        assert_eq!(without_kind(b"a/b:c"), b"a/b:c");
        assert_eq!(without_kind(b"c:out"), b"c:out");
    }
}
