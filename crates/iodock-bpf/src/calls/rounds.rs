//! Encodes and decodes rounds. A round contains the records that the recorder took out of the buffers at one
//! time. It is a sequence of parts, each after a word with its kind (32 bits) and its length in words (32
//! bits). END is the last part. docs/explanation/bpf-buffers.md describes the format.

use crate::record::Record;

/// Kind of the part with the recorder's own notes, which are records, too.
pub const NOTES: u32 = u32::MAX - 2;
/// Kind of the part with the calls in flight: the time of the check in monotonic ns, then [`IN_CALL_WORDS`]
/// words per call.
pub const IN_CALL: u32 = u32::MAX - 1;
/// Kind of the last part: a time in monotonic ns. Records before it, except late ones, are in this round or a
/// previous one.
pub const END: u32 = u32::MAX;

pub const IN_CALL_WORDS: usize = 8;

/// Longest delay in ns between a record's time and its appearance in the buffer, if no interrupt adds to it.
pub const STRAGGLER_NS: u64 = 5_000_000;

/// A call that has begun but not ended: its beginning in monotonic ns, and its first arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InCall {
    pub tid: u32,
    pub start: u64,
    pub number: usize,
    pub arguments: [u64; 5],
}

impl InCall {
    fn words(&self) -> [u64; IN_CALL_WORDS] {
        let [first, second, third, fourth, fifth] = self.arguments;
        [u64::from(self.tid), self.start, self.number as u64, first, second, third, fourth, fifth]
    }

    pub fn from_words(words: &[u64]) -> Option<InCall> {
        let &[tid, start, number, ref arguments @ ..] = words else { return None };
        Some(InCall {
            tid: tid as u32,
            start,
            number: number as usize,
            arguments: arguments.try_into().ok()?,
        })
    }
}

/// Appends a part with the words that `write` appends. If it appends none, the part is left out.
pub fn put_part(out: &mut Vec<u64>, what: u32, write: impl FnOnce(&mut Vec<u64>)) {
    let start = out.len();
    out.push(0);
    write(out);
    match out.len() - start - 1 {
        0 => out.truncate(start),
        length => out[start] = u64::from(what) | (length as u64) << 32,
    }
}

pub fn put_in_call(out: &mut Vec<u64>, time: u64, calls: impl Iterator<Item = InCall>) {
    put_part(out, IN_CALL, |out| {
        out.push(time);
        calls.for_each(|call| out.extend(call.words()));
    });
}

/// Returns the parts of a frame: kind and words.
pub fn parts(mut words: &[u64]) -> impl Iterator<Item = (u32, &[u64])> {
    std::iter::from_fn(move || {
        let (&head, rest) = words.split_first()?;
        let (part, next) = rest.split_at_checked((head >> 32) as usize)?;
        words = next;
        Some((head as u32, part))
    })
}

/// Counts the records of all CPUs in a round.
pub fn records(words: &[u64]) -> u64 {
    let mut count = 0;
    for (_, mut part) in parts(words).filter(|&(what, _)| what < NOTES) {
        while let Some(record) = Record::first_of(part) {
            count += 1;
            part = &part[record.words.len()..];
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{again, Kind};
    use crate::record::put_note;

    #[test]
    fn parts_of_a_file_are_read_back_as_written() {
        let mut words = Vec::new();
        let call = InCall { tid: 7, start: 9, number: 2, arguments: [1, 2, 3, 4, 5] };
        put_part(&mut words, 1, |out| out.extend([10, 11]));
        put_part(&mut words, 2, |_| {});
        put_in_call(&mut words, 12, [call].into_iter());
        let found: Vec<(u32, &[u64])> = parts(&words).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], (1, &[10, 11][..]));
        assert_eq!((found[1].0, found[1].1[0]), (IN_CALL, 12));
        assert_eq!(InCall::from_words(&found[1].1[1..]), Some(call));
        assert_eq!(parts(&words[..2]).count(), 0);
    }

    #[test]
    fn records_of_each_cpu_are_counted() {
        let mut words = Vec::new();
        let again = (Kind::Again as u64) << 16;
        put_part(&mut words, 0, |out| out.extend([again, again | again::NO_PAGE, 1 << 40, again]));
        put_part(&mut words, 1, |out| out.extend([4 | 1 << 16, 5, 6, 7]));
        put_part(&mut words, NOTES, |out| put_note(out, Kind::Gone, 3, 5, &[], &[]));
        assert_eq!(records(&words), 4);
    }
}
