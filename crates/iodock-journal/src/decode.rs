//! Decodes a journal's bytes to records, and validates all of them.

use crate::fields::*;
use crate::wire::Cursor;
use iodock_event::{
    AsyncItem, Batch, CallId, DescriptorSnapshot, ErrnoId, FirstLoss, Fork, Items, LossKind, Outcome, Phase,
    RawCall, Record, Start, TaskEnd, Text,
};

/// Maps the numbers of names in a journal to this program's ids. An entry is `None` if this program's table
/// of names is full.
#[derive(Default)]
pub struct NameReader {
    calls: Vec<Option<CallId>>,
    errnos: Vec<Option<ErrnoId>>,
}

impl NameReader {
    /// Reads a names frame.
    pub fn add(&mut self, payload: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(payload);
        while !cursor.is_empty() {
            match cursor.byte()? {
                CALL_NAME => self.calls.push(CallId::intern(cursor.bytes()?)),
                ERRNO_NAME => self.errnos.push(ErrnoId::intern(cursor.bytes()?)),
                _ => return None,
            }
        }
        Some(())
    }

    fn call(&self, number: u64) -> Option<Option<CallId>> {
        self.calls.get(usize::try_from(number).ok()?).copied()
    }

    fn errno(&self, number: u64) -> Option<ErrnoId> {
        self.errnos.get(usize::try_from(number).ok()?).map(|id| id.unwrap_or(ErrnoId::NONE))
    }
}

/// Decodes a records frame into `batch`. Returns `None` if the frame is damaged; `batch` then contains the
/// records before the damage.
pub fn decode_records(payload: &[u8], names: &NameReader, batch: &mut Batch) -> Option<()> {
    let mut decoder =
        RecordDecoder { cursor: Cursor::new(payload), names, previous_time: 0, previous_tid: 0 };
    for _ in 0..decoder.cursor.varint()? {
        decoder.record(batch)?;
    }
    while !decoder.cursor.is_empty() {
        match decoder.cursor.varint()? {
            TAIL_FORKS => decoder.forks(batch)?,
            TAIL_LOSSES => decoder.losses(batch)?,
            TAIL_COUNTS => decoder.counts(batch)?,
            _ => return None,
        }
    }
    Some(())
}

struct RecordDecoder<'a> {
    cursor: Cursor<'a>,
    names: &'a NameReader,
    previous_time: i64,
    previous_tid: u32,
}

impl RecordDecoder<'_> {
    fn record(&mut self, batch: &mut Batch) -> Option<()> {
        let mask = self.cursor.varint()?;
        let record = match mask & 3 {
            CALL => match self.call(mask, batch)? {
                Some(call) => Record::Call(call),
                None => {
                    batch.lose(LossKind::TooManyNames);
                    return Some(());
                }
            },
            END => self.end(mask, batch)?,
            START => self.start(mask, batch)?,
            _ => self.descriptor(mask, batch)?,
        };
        batch.records.push(record);
        Some(())
    }

    fn text(&mut self, present: bool, batch: &mut Batch) -> Option<Text> {
        if !present {
            return Some(Text::NONE);
        }
        let bytes = self.cursor.bytes()?;
        // Offsets of texts have 32 bits, and the largest value means "no text".
        if batch.bytes.len() + bytes.len() >= u32::MAX as usize {
            return None;
        }
        Some(batch.push_text(bytes))
    }

    /// Decodes a call. The outer `None` means that the frame is damaged, the inner one that there are too
    /// many names.
    fn call(&mut self, mask: u64, batch: &mut Batch) -> Option<Option<RawCall>> {
        let known = self.names.call(self.cursor.varint()?)?;
        let mut call = RawCall::new(known.unwrap_or(CallId(0)), self.previous_tid);
        if mask & TID != 0 {
            call.tid = self.cursor.u32()?;
            self.previous_tid = call.tid;
        }
        if mask & BEGIN != 0 {
            self.previous_time = self.previous_time.wrapping_add(self.cursor.signed()?);
            call.start = self.previous_time;
        }
        self.numbers(mask, &mut call)?;
        if mask & ERRNO != 0 {
            call.errno = self.names.errno(self.cursor.varint()?)?;
        }
        if mask & FLAGS != 0 {
            call.flags = self.cursor.varint()?;
        }
        if mask & STAT_TYPE != 0 {
            call.stat_type = self.cursor.byte()?;
        }
        self.texts(mask, &mut call, batch)?;
        if mask & ITEMS != 0 {
            call.items = self.items(batch)?;
        }
        call.outcome = outcome(mask >> OUTCOME_SHIFT & 3)?;
        call.phase = phase(mask >> PHASE_SHIFT & 3);
        call.path_cut = mask & PATH_CUT != 0;
        Some(known.map(|_| call))
    }

    fn numbers(&mut self, mask: u64, call: &mut RawCall) -> Option<()> {
        for (bit, _) in numbers(call) {
            if mask & bit == 0 {
                continue;
            }
            let value = self.cursor.signed()?;
            match bit {
                DURATION => call.duration = value,
                RESULT => call.result = value,
                FD => call.fd = value.try_into().ok()?,
                REQUESTED => call.requested = value,
                OFFSET => call.offset = value,
                ARGUMENT => call.argument = value,
                STAT_SIZE => call.stat_size = value,
                FINISH => call.end = value,
                SYS_CPU => call.sys_cpu = value,
                OFFSET2 => call.offset2 = value,
                _ => call.fd2 = value.try_into().ok()?,
            }
        }
        if mask & REQUESTED_IS_RESULT != 0 {
            call.requested = call.result;
        }
        Some(())
    }

    fn texts(&mut self, mask: u64, call: &mut RawCall, batch: &mut Batch) -> Option<()> {
        call.path = self.text(mask & PATH != 0, batch)?;
        call.path2 = self.text(mask & PATH2 != 0, batch)?;
        call.argv = self.text(mask & ARGV != 0, batch)?;
        call.fd_text = self.text(mask & FD_TEXT != 0, batch)?;
        call.fd2_text = self.text(mask & FD2_TEXT != 0, batch)?;
        call.result_text = self.text(mask & RESULT_TEXT != 0, batch)?;
        Some(())
    }

    fn items(&mut self, batch: &mut Batch) -> Option<Items> {
        let start = u32::try_from(batch.items.len()).ok()?;
        let count = self.cursor.u32()?;
        for _ in 0..count {
            let (key, fd) = (self.cursor.varint()?, self.cursor.i32()?);
            let write = self.cursor.byte()? != 0;
            let (bytes, offset) = (self.cursor.signed()?, self.cursor.quantity()?);
            batch.items.push(AsyncItem::request(key, fd, write, bytes, offset));
        }
        Some(Items { start, count })
    }

    fn end(&mut self, mask: u64, batch: &mut Batch) -> Option<Record> {
        let (tid, time) = (self.cursor.u32()?, self.cursor.quantity()?);
        let exit_code = if mask & 1 << 2 != 0 { Some(self.cursor.i32()?) } else { None };
        let signal = self.text(mask & 1 << 3 != 0, batch)?;
        let superseded_by = if mask & 1 << 4 != 0 { Some(self.cursor.u32()?) } else { None };
        let core_dumped = mask & 1 << 5 != 0;
        Some(Record::End(TaskEnd { tid, time, exit_code, signal, core_dumped, superseded_by }))
    }

    fn start(&mut self, mask: u64, batch: &mut Batch) -> Option<Record> {
        let (tid, tgid, time) = (self.cursor.u32()?, self.cursor.u32()?, self.cursor.quantity()?);
        let parent_tid = if mask & 1 << 2 != 0 { Some(self.cursor.u32()?) } else { None };
        let rank = if mask & 1 << 6 != 0 { Some(self.cursor.i32()?) } else { None };
        let working_directory = self.text(mask & 1 << 3 != 0, batch)?;
        let command = self.text(mask & 1 << 4 != 0, batch)?;
        let attached = mask & 1 << 5 != 0;
        Some(Record::Start(Start { tid, tgid, parent_tid, time, working_directory, command, attached, rank }))
    }

    fn descriptor(&mut self, mask: u64, batch: &mut Batch) -> Option<Record> {
        let (tid, fd) = (self.cursor.u32()?, self.cursor.i32()?);
        let (position, flags) = (self.cursor.quantity()?, self.cursor.varint()?);
        let (stat_type, stat_size) = (self.cursor.byte()?, self.cursor.quantity()?);
        let target = self.text(mask & 1 << 2 != 0, batch)?;
        let snapshot = DescriptorSnapshot { tid, fd, target, position, flags, stat_type, stat_size };
        Some(Record::Descriptor(snapshot))
    }

    fn forks(&mut self, batch: &mut Batch) -> Option<()> {
        for _ in 0..self.cursor.varint()? {
            let (parent_tid, child_tid) = (self.cursor.u32()?, self.cursor.u32()?);
            let flags = self.cursor.varint()?;
            let call = self.names.call(self.cursor.varint()?)?.unwrap_or(CallId(0));
            batch.forks.push(Fork { parent_tid, child_tid, flags, call });
        }
        Some(())
    }

    fn losses(&mut self, batch: &mut Batch) -> Option<()> {
        for _ in 0..self.cursor.varint()? {
            let name = self.cursor.bytes()?;
            let count = self.cursor.varint()?;
            let place = FirstLoss {
                file: self.cursor.string()?,
                line: self.cursor.varint()?,
                sample: self.cursor.string()?,
            };
            // A kind of loss that this version does not know still means that records are missing.
            let kind = LossKind::ALL.iter().find(|kind| kind.name().as_bytes() == name);
            let kind = kind.copied().unwrap_or(LossKind::DroppedRecords);
            batch.losses.add(kind, count);
            if !place.file.is_empty() || !place.sample.is_empty() {
                batch.losses.first.entry(kind).or_insert(place);
            }
        }
        Some(())
    }

    fn counts(&mut self, batch: &mut Batch) -> Option<()> {
        let counts = &mut batch.counts;
        for field in [
            &mut counts.lines,
            &mut counts.unfinished,
            &mut counts.resumed,
            &mut counts.orphans,
            &mut counts.timed,
            &mut counts.untimed,
        ] {
            *field = self.cursor.varint()?;
        }
        for _ in 0..self.cursor.varint()? {
            let name = self.cursor.string()?;
            counts.signals.insert(name, self.cursor.varint()?);
        }
        Some(())
    }
}

fn outcome(number: u64) -> Option<Outcome> {
    [Outcome::Succeeded, Outcome::Failed, Outcome::NoResult].get(number as usize).copied()
}

fn phase(number: u64) -> Phase {
    [Phase::Whole, Phase::Enter, Phase::Exit, Phase::Orphan][number as usize & 3]
}
