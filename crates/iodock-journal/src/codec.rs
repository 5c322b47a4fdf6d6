//! Records as bytes. A record is a mask that says which fields follow, then those fields; times and
//! thread ids are written against the record before, texts and control blocks stand in place.

use crate::wire::{put_bytes, put_quantity, put_signed, put_varint, Cursor};
use iodock_event::{
    AsyncItem, Batch, CallId, DescriptorSnapshot, ErrnoId, Fork, Items, LossKind, Outcome, Phase, Place,
    RawCall, Record, Start, TaskEnd, Text, NO_FD, UNKNOWN,
};

// The mask's lowest two bits: the kind of record.
const CALL: u64 = 0;
const END: u64 = 1;
const START: u64 = 2;
const DESCRIPTOR: u64 = 3;

// A call's mask; what nearly every call has comes first, so that the mask takes two bytes.
const TID: u64 = 1 << 2;
const BEGIN: u64 = 1 << 3;
const DURATION: u64 = 1 << 4;
const RESULT: u64 = 1 << 5;
const FD: u64 = 1 << 6;
const OUTCOME_SHIFT: u32 = 7;
const ERRNO: u64 = 1 << 9;
const REQUESTED: u64 = 1 << 10;
const REQUESTED_IS_RESULT: u64 = 1 << 11;
const OFFSET: u64 = 1 << 12;
const PATH: u64 = 1 << 13;
const FLAGS: u64 = 1 << 14;
const PHASE_SHIFT: u32 = 15;
const ARGUMENT: u64 = 1 << 17;
const STAT_TYPE: u64 = 1 << 18;
const STAT_SIZE: u64 = 1 << 19;
const PATH2: u64 = 1 << 20;
const FINISH: u64 = 1 << 21;
const SYS_CPU: u64 = 1 << 22;
const OFFSET2: u64 = 1 << 23;
const FD2: u64 = 1 << 24;
const ARGV: u64 = 1 << 25;
const FD_TEXT: u64 = 1 << 26;
const FD2_TEXT: u64 = 1 << 27;
const RESULT_TEXT: u64 = 1 << 28;
const ITEMS: u64 = 1 << 29;
const PATH_CUT: u64 = 1 << 30;

// What follows the records in a frame.
const TAIL_FORKS: u64 = 1;
const TAIL_LOSSES: u64 = 2;
const TAIL_COUNTS: u64 = 3;

/// Names of calls and errors as this journal numbers them, in the order of first use.
#[derive(Default)]
pub struct NameWriter {
    numbers: Vec<Option<u32>>,
    count: u32,
}

impl NameWriter {
    /// The journal's number for `id`, and whether it is new.
    fn number(&mut self, id: u16) -> (u32, bool) {
        let index = usize::from(id);
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, None);
        }
        if let Some(number) = self.numbers[index] {
            return (number, false);
        }
        let number = self.count;
        self.numbers[index] = Some(number);
        self.count += 1;
        (number, true)
    }
}

/// One kind of name, then its text: the numbers follow from the order.
const CALL_NAME: u8 = 0;
const ERRNO_NAME: u8 = 1;

/// A frame of records in the making, with the names it is the first to use.
#[derive(Default)]
pub struct RecordEncoder {
    calls: NameWriter,
    errnos: NameWriter,
    /// Payload of the names frame to come before.
    pub names: Vec<u8>,
    pub records: Vec<u8>,
    pub count: u64,
    forks: Vec<u8>,
    fork_count: u64,
    previous_time: i64,
    previous_tid: u32,
}

impl RecordEncoder {
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.fork_count == 0
    }

    pub fn len(&self) -> usize {
        self.records.len() + self.forks.len() + self.names.len()
    }

    fn call_number(&mut self, call: CallId) -> u64 {
        let (number, new) = self.calls.number(call.0);
        if new {
            self.names.push(CALL_NAME);
            put_bytes(&mut self.names, call.name().as_bytes());
        }
        u64::from(number)
    }

    fn errno_number(&mut self, errno: ErrnoId) -> u64 {
        let (number, new) = self.errnos.number(errno.0);
        if new {
            self.names.push(ERRNO_NAME);
            put_bytes(&mut self.names, errno.name().as_bytes());
        }
        u64::from(number)
    }

    fn put_time(&mut self, time: i64) {
        put_signed(&mut self.records, time.wrapping_sub(self.previous_time));
        self.previous_time = time;
    }

    pub fn push(&mut self, record: &Record, batch: &Batch) {
        self.count += 1;
        match record {
            Record::Call(call) => self.push_call(call, batch),
            Record::End(end) => self.push_end(end, batch),
            Record::Start(start) => self.push_start(start, batch),
            Record::Descriptor(descriptor) => self.push_descriptor(descriptor, batch),
        }
    }

    fn push_call(&mut self, call: &RawCall, batch: &Batch) {
        let mask = call_mask(call, self.previous_tid);
        put_varint(&mut self.records, mask);
        let number = self.call_number(call.call);
        put_varint(&mut self.records, number);
        if mask & TID != 0 {
            put_varint(&mut self.records, u64::from(call.tid));
            self.previous_tid = call.tid;
        }
        if mask & BEGIN != 0 {
            self.put_time(call.start);
        }
        for (bit, value) in numbers(call) {
            if mask & bit != 0 {
                put_signed(&mut self.records, value);
            }
        }
        if mask & ERRNO != 0 {
            let number = self.errno_number(call.errno);
            put_varint(&mut self.records, number);
        }
        if mask & FLAGS != 0 {
            put_varint(&mut self.records, call.flags);
        }
        if mask & STAT_TYPE != 0 {
            self.records.push(call.stat_type);
        }
        for (bit, text) in texts(call) {
            if mask & bit != 0 {
                put_bytes(&mut self.records, batch.text(text));
            }
        }
        if mask & ITEMS != 0 {
            put_items(&mut self.records, items_of(batch, call.items));
        }
    }

    fn push_end(&mut self, end: &TaskEnd, batch: &Batch) {
        let code = u64::from(end.exit_code.is_some());
        let signal = u64::from(end.signal.is_some());
        let superseded = u64::from(end.superseded_by.is_some());
        let mask = END | code << 2 | signal << 3 | superseded << 4 | u64::from(end.core_dumped) << 5;
        put_varint(&mut self.records, mask);
        put_varint(&mut self.records, u64::from(end.tid));
        put_quantity(&mut self.records, end.time);
        if let Some(code) = end.exit_code {
            put_signed(&mut self.records, i64::from(code));
        }
        if end.signal.is_some() {
            put_bytes(&mut self.records, batch.text(end.signal));
        }
        if let Some(tid) = end.superseded_by {
            put_varint(&mut self.records, u64::from(tid));
        }
    }

    fn push_start(&mut self, start: &Start, batch: &Batch) {
        let parent = u64::from(start.parent_tid.is_some());
        let directory = u64::from(start.working_directory.is_some());
        let command = u64::from(start.command.is_some());
        let rank = u64::from(start.rank.is_some());
        let mask =
            START | parent << 2 | directory << 3 | command << 4 | u64::from(start.attached) << 5 | rank << 6;
        put_varint(&mut self.records, mask);
        put_varint(&mut self.records, u64::from(start.tid));
        put_varint(&mut self.records, u64::from(start.tgid));
        put_quantity(&mut self.records, start.time);
        if let Some(tid) = start.parent_tid {
            put_varint(&mut self.records, u64::from(tid));
        }
        if let Some(rank) = start.rank {
            put_signed(&mut self.records, i64::from(rank));
        }
        for text in [start.working_directory, start.command] {
            if text.is_some() {
                put_bytes(&mut self.records, batch.text(text));
            }
        }
    }

    fn push_descriptor(&mut self, descriptor: &DescriptorSnapshot, batch: &Batch) {
        let target = u64::from(descriptor.target.is_some());
        put_varint(&mut self.records, DESCRIPTOR | target << 2);
        put_varint(&mut self.records, u64::from(descriptor.tid));
        put_signed(&mut self.records, i64::from(descriptor.fd));
        put_quantity(&mut self.records, descriptor.position);
        put_varint(&mut self.records, descriptor.flags);
        self.records.push(descriptor.stat_type);
        put_quantity(&mut self.records, descriptor.stat_size);
        if descriptor.target.is_some() {
            put_bytes(&mut self.records, batch.text(descriptor.target));
        }
    }

    /// Forks of a batch; they go behind the records of the frame.
    pub fn push_fork(&mut self, fork: &Fork) {
        let number = self.call_number(fork.call);
        for value in [u64::from(fork.parent_tid), u64::from(fork.child_tid), fork.flags, number] {
            put_varint(&mut self.forks, value);
        }
        self.fork_count += 1;
    }

    /// The finished payload; `losses` and `counts` are those since the last frame. Then starts anew.
    pub fn finish(&mut self, counts: &Batch) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.records.len() + self.forks.len() + 64);
        put_varint(&mut out, self.count);
        out.append(&mut self.records);
        if self.fork_count > 0 {
            put_varint(&mut out, TAIL_FORKS);
            put_varint(&mut out, self.fork_count);
            out.append(&mut self.forks);
        }
        put_losses(&mut out, counts);
        put_counts(&mut out, counts);
        (self.count, self.fork_count, self.previous_time, self.previous_tid) = (0, 0, 0, 0);
        out
    }
}

fn call_mask(call: &RawCall, previous_tid: u32) -> u64 {
    let mut mask = CALL | (call.outcome as u64) << OUTCOME_SHIFT | (call.phase as u64) << PHASE_SHIFT;
    let same = call.requested != UNKNOWN && call.requested == call.result;
    let bits = [
        (TID, call.tid != previous_tid),
        (BEGIN, call.start != UNKNOWN),
        (DURATION, call.duration != UNKNOWN),
        (RESULT, call.result != UNKNOWN),
        (FD, call.fd != NO_FD),
        (ERRNO, call.errno.is_some()),
        (REQUESTED, call.requested != UNKNOWN && !same),
        (REQUESTED_IS_RESULT, same),
        (OFFSET, call.offset != UNKNOWN),
        (FLAGS, call.flags != 0),
        (ARGUMENT, call.argument != UNKNOWN),
        (STAT_TYPE, call.stat_type != 0),
        (STAT_SIZE, call.stat_size != UNKNOWN),
        (FINISH, call.end != UNKNOWN),
        (SYS_CPU, call.sys_cpu != UNKNOWN),
        (OFFSET2, call.offset2 != UNKNOWN),
        (FD2, call.fd2 != NO_FD),
        (ITEMS, call.items.count > 0),
        (PATH_CUT, call.path_cut),
    ];
    for (bit, present) in bits {
        mask |= if present { bit } else { 0 };
    }
    for (bit, text) in texts(call) {
        mask |= if text.is_some() { bit } else { 0 };
    }
    mask
}

/// Number fields in the order in which they are written.
fn numbers(call: &RawCall) -> [(u64, i64); 11] {
    [
        (DURATION, call.duration),
        (RESULT, call.result),
        (FD, i64::from(call.fd)),
        (REQUESTED, call.requested),
        (OFFSET, call.offset),
        (ARGUMENT, call.argument),
        (STAT_SIZE, call.stat_size),
        (FINISH, call.end),
        (SYS_CPU, call.sys_cpu),
        (OFFSET2, call.offset2),
        (FD2, i64::from(call.fd2)),
    ]
}

fn texts(call: &RawCall) -> [(u64, Text); 6] {
    [
        (PATH, call.path),
        (PATH2, call.path2),
        (ARGV, call.argv),
        (FD_TEXT, call.fd_text),
        (FD2_TEXT, call.fd2_text),
        (RESULT_TEXT, call.result_text),
    ]
}

fn items_of(batch: &Batch, items: Items) -> &[AsyncItem] {
    let start = items.start as usize;
    batch.items.get(start..start.saturating_add(items.count as usize)).unwrap_or(&[])
}

fn put_items(out: &mut Vec<u8>, items: &[AsyncItem]) {
    put_varint(out, items.len() as u64);
    for item in items {
        put_varint(out, item.key);
        put_signed(out, i64::from(item.fd));
        out.push(u8::from(item.write));
        put_signed(out, item.bytes);
        put_quantity(out, item.offset);
    }
}

/// Does a batch have losses or counts?
pub fn has_side(batch: &Batch) -> bool {
    !batch.losses.counts.is_empty() || has_counts(batch)
}

fn count_numbers(batch: &Batch) -> [u64; 6] {
    let counts = &batch.counts;
    [counts.lines, counts.unfinished, counts.resumed, counts.orphans, counts.timed, counts.untimed]
}

fn has_counts(batch: &Batch) -> bool {
    count_numbers(batch) != [0; 6] || !batch.counts.signals.is_empty()
}

fn put_losses(out: &mut Vec<u8>, batch: &Batch) {
    if batch.losses.counts.is_empty() {
        return;
    }
    put_varint(out, TAIL_LOSSES);
    put_varint(out, batch.losses.counts.len() as u64);
    for (kind, &count) in &batch.losses.counts {
        put_bytes(out, kind.name().as_bytes());
        put_varint(out, count);
        let first = batch.losses.first.get(kind);
        put_bytes(out, first.map_or("", |place| &place.file).as_bytes());
        put_varint(out, first.map_or(0, |place| place.line));
        put_bytes(out, first.map_or("", |place| &place.sample).as_bytes());
    }
}

fn put_counts(out: &mut Vec<u8>, batch: &Batch) {
    if !has_counts(batch) {
        return;
    }
    put_varint(out, TAIL_COUNTS);
    count_numbers(batch).iter().for_each(|&number| put_varint(out, number));
    put_varint(out, batch.counts.signals.len() as u64);
    for (name, &count) in &batch.counts.signals {
        put_bytes(out, name.as_bytes());
        put_varint(out, count);
    }
}

/// A journal's numbers back to this program's ids. `None`: this program's name table is full.
#[derive(Default)]
pub struct NameReader {
    calls: Vec<Option<CallId>>,
    errnos: Vec<Option<ErrnoId>>,
}

impl NameReader {
    /// Takes a names frame.
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

/// Reads a records frame into `batch`. `None`: damaged, and `batch` holds what came before the damage.
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
        // A text's place is 32 bits wide: what lies beyond can't be told from "none".
        if batch.bytes.len() + bytes.len() >= u32::MAX as usize {
            return None;
        }
        Some(batch.push_text(bytes))
    }

    /// The outer `None` is damage, the inner one a name too many.
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
            batch.items.push(AsyncItem { key, fd, write, bytes, offset });
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
            let place = Place {
                file: self.cursor.string()?,
                line: self.cursor.varint()?,
                sample: self.cursor.string()?,
            };
            // A loss that this version does not know is still a record that is not there.
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
