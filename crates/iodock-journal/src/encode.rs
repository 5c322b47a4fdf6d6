//! Encodes records as bytes.

use crate::fields::*;
use crate::wire::{put_bytes, put_quantity, put_signed, put_varint, ShortBytes};
use iodock_event::{
    AsyncItem, Batch, CallId, DescriptorSnapshot, ErrnoId, Fork, Items, Outcome, Phase, RawCall, Record,
    Start, TaskEnd, NO_FD, UNKNOWN,
};

/// Numbers that this journal gives to the names of calls and errors, in the order of first use.
#[derive(Default)]
pub struct NameWriter {
    numbers: Vec<Option<u32>>,
    count: u32,
}

impl NameWriter {
    /// Returns the journal's number for `id`, and whether the number is new.
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

/// Builds a frame of records, and the frame of the names that these records are the first to use.
#[derive(Default)]
pub struct RecordEncoder {
    calls: NameWriter,
    errnos: NameWriter,
    /// Payload of the names frame, which the writer puts before the records frame.
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
            // The journal does not store these records: the back ends that produce them also keep raw records
            // in another file.
            Record::Identity(_) | Record::Interface(_) => self.count -= 1,
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

    /// Encodes a complete data call. The result is the same as that of [`push`](Self::push), in a third of
    /// the time.
    #[inline]
    pub fn push_data(&mut self, data: &DataCall) {
        self.count += 1;
        let same = data.requested == data.result;
        let asked = if same { REQUESTED_IS_RESULT } else { REQUESTED };
        let bits = [
            (TID, data.tid != self.previous_tid),
            (asked, data.requested != UNKNOWN),
            (OFFSET, data.offset != UNKNOWN),
        ];
        let outcome = (Outcome::Succeeded as u64) << OUTCOME_SHIFT | (Phase::Whole as u64) << PHASE_SHIFT;
        let mut mask = CALL | BEGIN | DURATION | RESULT | FD | outcome;
        for (bit, present) in bits {
            mask |= if present { bit } else { 0 };
        }
        let number = self.call_number(data.call);
        let mut bytes = ShortBytes::default();
        bytes.put_varint(mask);
        bytes.put_varint(number);
        if mask & TID != 0 {
            bytes.put_varint(u64::from(data.tid));
            self.previous_tid = data.tid;
        }
        bytes.put_signed(data.start.wrapping_sub(self.previous_time));
        self.previous_time = data.start;
        bytes.put_signed(data.duration);
        bytes.put_signed(data.result);
        bytes.put_signed(i64::from(data.fd));
        if mask & REQUESTED != 0 {
            bytes.put_signed(data.requested);
        }
        if mask & OFFSET != 0 {
            bytes.put_signed(data.offset);
        }
        bytes.append_to(&mut self.records);
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

    /// Adds a fork. A frame contains its forks after its records.
    pub fn push_fork(&mut self, fork: &Fork) {
        let number = self.call_number(fork.call);
        for value in [u64::from(fork.parent_tid), u64::from(fork.child_tid), fork.flags, number] {
            put_varint(&mut self.forks, value);
        }
        self.fork_count += 1;
    }

    /// Returns the payload of the finished frame, and begins a new frame. `counts` contains the losses and
    /// counts since the previous frame.
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

/// A read or write, or another successful call that has only a descriptor and numbers. Times are in ns.
/// `requested` and `offset` may be `UNKNOWN`.
#[derive(Clone, Copy, Debug)]
pub struct DataCall {
    pub call: CallId,
    pub tid: u32,
    pub fd: i32,
    pub start: i64,
    pub duration: i64,
    pub result: i64,
    pub requested: i64,
    pub offset: i64,
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

/// Returns whether a batch has losses or counts.
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
