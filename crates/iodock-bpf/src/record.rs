//! Defines the access to one record that the kernel's programs or the recorder wrote.

use crate::format::{again, Kind, LEAST_WORDS, MOST_WORDS, SHORT_TIME, SHORT_WORDS};

/// The words of a record, including the first one and the time.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub words: &'a [u64],
}

/// A piece of memory that was copied into a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied<'a> {
    Bytes(&'a [u8]),
    Unreadable,
}

impl<'a> Record<'a> {
    /// Returns the first record in `words`, which may contain more. Returns `None` if no complete record is
    /// there.
    #[inline]
    pub fn first_of(words: &'a [u64]) -> Option<Record<'a>> {
        let first = *words.first()?;
        let kind = (first >> 16 & 15) as usize;
        let count = match SHORT_WORDS[kind] {
            0 => Some((first & 0xffff) as usize).filter(|&count| count >= LEAST_WORDS[kind] as usize)?,
            1 => 2 - usize::from(Record::is_one_word(first)),
            short => short as usize,
        };
        words.get(..count).map(|words| Record { words })
    }

    /// Returns whether a record that begins with this word is a [`Kind::Again`] of a single word.
    #[inline]
    pub fn is_one_word(first: u64) -> bool {
        first >> 16 & 15 == Kind::Again as u64 && first & 0xffff != again::NO_PAGE
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::of((self.words[0] >> 16 & 15) as usize, self.number())
    }

    #[inline]
    pub fn number(&self) -> usize {
        (self.words[0] >> 20 & 0xfff) as usize
    }

    #[inline]
    pub fn tid(&self) -> u32 {
        (self.words[0] >> 32) as u32
    }

    /// Returns the time in monotonic ns. Short records have no such field.
    #[inline]
    pub fn time(&self) -> u64 {
        self.words[1]
    }

    #[inline]
    pub fn is_short(&self) -> bool {
        SHORT_WORDS[(self.words[0] >> 16 & 15) as usize] > 0
    }

    /// Returns the time of any record. A short record contains either the lower bits of its time, of which
    /// the value nearest to the previous time is chosen, or the time since the previous record.
    #[inline]
    pub fn time_after(&self, before: u64) -> u64 {
        match SHORT_WORDS[(self.words[0] >> 16 & 15) as usize] {
            0 => return self.time(),
            1 => return before.wrapping_add(self.words[0] >> again::GAP & ((1 << again::BITS) - 1)),
            _ => {}
        }
        let unused = 64 - SHORT_TIME;
        let later = (self.words[1].wrapping_sub(before) << unused) as i64 >> unused;
        before.wrapping_add_signed(later)
    }

    /// Returns the fields that a following short record inherits, in the form of a short record's first word.
    /// Returns 0 if the descriptor does not fit into that form, and `None` for records that are not small.
    #[inline]
    pub fn left_out(&self) -> Option<u64> {
        let (kind, fd) = match self.kind() {
            Kind::Small => (Kind::Short, self.words.get(3)),
            Kind::Positioned => (Kind::ShortPositioned, self.words.get(3)),
            Kind::Short | Kind::ShortSized => (Kind::Short, self.words.first()),
            Kind::ShortPositioned => (Kind::ShortPositioned, self.words.first()),
            _ => return None,
        };
        let fd = if self.is_short() { *fd? & 0xffff } else { *fd? & 0xffff_ffff };
        Some(if fd > 0xffff { 0 } else { self.words[0] & !0xf_ffff | fd | (kind as u64) << 16 })
    }

    /// Expands a [`Kind::Again`] to a short record. `time` is its time, and `left_out` is from the CPU's
    /// previous small record.
    #[inline]
    pub fn shortened(&self, time: u64, left_out: u64) -> [u64; 3] {
        let first = self.words[0];
        let offset = self.words.get(1).copied().unwrap_or((first & 0xffff) << again::PAGE);
        [left_out, time & ((1 << SHORT_TIME) - 1) | (first >> again::DURATION) << SHORT_TIME, offset]
    }

    /// Expands a short record to a small one. `before` contains the size and the result that the short record
    /// leaves out.
    pub fn expanded(&self, time: u64, before: (u32, u32)) -> ([u64; 5], usize) {
        let (first, more) = (self.words[0], self.words.get(2).copied().unwrap_or(0));
        let (size, result) = match self.kind() {
            Kind::ShortSized => ((more >> 32) as u32, more as u32),
            _ => before,
        };
        let positioned = self.kind() == Kind::ShortPositioned;
        let (kind, count) = if positioned { (Kind::Positioned, 5) } else { (Kind::Small, 4) };
        let head = count as u64 | (kind as u64) << 16 | (first & !0xf_ffff);
        let duration = self.words[1] >> SHORT_TIME;
        let words = [
            head,
            time,
            duration | u64::from(result) << 32,
            first & 0xffff | u64::from(size) << 32,
            if positioned { more } else { 0 },
        ];
        (words, count)
    }

    /// Returns the lower and the upper half of a word.
    #[inline]
    pub fn halves(&self, at: usize) -> (u32, u32) {
        (self.words[at] as u32, (self.words[at] >> 32) as u32)
    }

    /// Returns the copied pieces that follow word `from`, by their number.
    pub fn pieces(&self, from: usize) -> [Option<Copied<'a>>; 3] {
        let mut found = [None; 3];
        let mut rest = self.words.get(from..).unwrap_or(&[]);
        while let Some((&head, after)) = rest.split_first() {
            let (length, index) = (head as u32, (head >> 32) as usize);
            let copied = if length == u32::MAX { 0 } else { length as usize };
            let Some((words, next)) = after.split_at_checked(copied.div_ceil(8)) else { break };
            let piece = if length == u32::MAX {
                Copied::Unreadable
            } else {
                Copied::Bytes(&bytes_of(words)[..copied])
            };
            if let Some(place) = found.get_mut(index) {
                *place = Some(piece);
            }
            rest = next;
        }
        found
    }
}

/// Returns the bytes of the words, in memory order.
pub fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: the slice covers exactly the words; all values are valid bytes, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
}

/// Appends a note of the recorder: a record of `fields`, followed by pieces of memory. Pieces that exceed the
/// size limit of a record are cut.
pub fn put_note(out: &mut Vec<u64>, kind: Kind, tid: u32, time: u64, fields: &[u64], pieces: &[&[u8]]) {
    let start = out.len();
    out.extend_from_slice(&[0, time]);
    out.extend_from_slice(fields);
    for (index, piece) in pieces.iter().enumerate() {
        let room = (MOST_WORDS / pieces.len()).saturating_sub(fields.len() + 3) * 8;
        let piece = &piece[..piece.len().min(room)];
        out.push(piece.len() as u64 | (index as u64) << 32);
        out.extend(piece.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        }));
    }
    let (kind, number) = kind.numbers();
    out[start] =
        (out.len() - start) as u64 | (kind as u64) << 16 | (number as u64) << 20 | u64::from(tid) << 32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back_as_written() {
        let mut words = Vec::new();
        put_note(&mut words, Kind::Rank, 3, 5, &[7], &[]);
        put_note(&mut words, Kind::Descriptor, 4, 6, &[1, 2], &[b"123456789", &[b'x'; 1 << 20]]);
        let first = Record::first_of(&words).expect("whole");
        assert_eq!((first.kind(), first.tid(), first.time(), first.words[2]), (Kind::Rank, 3, 5, 7));
        let second = Record::first_of(&words[first.words.len()..]).expect("whole");
        assert_eq!((second.kind(), second.words[3]), (Kind::Descriptor, 2));
        let [name, long, none] = second.pieces(4);
        assert_eq!((name, none), (Some(Copied::Bytes(b"123456789")), None));
        assert!(matches!(long, Some(Copied::Bytes(bytes)) if bytes.len() > 1 << 17));
        assert_eq!(first.words.len() + second.words.len(), words.len());
    }

    #[test]
    fn a_short_record_expands_to_a_small_one() {
        let before = 5 << SHORT_TIME | 0xff_ffff_fff0;
        let short = |kind: Kind, time: u64, more: &[u64]| {
            let first = 7 | (kind as u64) << 16 | 17 << 20 | 99 << 32;
            [&[first, time & ((1 << SHORT_TIME) - 1) | 250 << SHORT_TIME], more].concat()
        };
        let words = short(Kind::ShortPositioned, before + 100, &[1 << 33, 1, 2, 3]);
        let record = Record::first_of(&words).expect("whole");
        assert_eq!((record.words.len(), record.time_after(before)), (3, before + 100));
        let (words, count) = record.expanded(before + 100, (4096, 12));
        let whole = Record { words: &words[..count] };
        assert_eq!((whole.kind(), whole.number(), whole.tid()), (Kind::Positioned, 17, 99));
        assert_eq!((whole.halves(2), whole.halves(3), words[4]), ((250, 12), (7, 4096), 1 << 33));
        let words = short(Kind::ShortSized, before - 30, &[3 | 8 << 32]);
        let record = Record::first_of(&words).expect("whole");
        assert_eq!(record.time_after(before), before - 30);
        let (words, count) = record.expanded(before - 30, (4096, 12));
        let whole = Record { words: &words[..count] };
        assert_eq!((whole.kind(), whole.halves(2), whole.halves(3)), (Kind::Small, (250, 3), (7, 8)));
        assert!(Record::first_of(&short(Kind::Short, 1, &[])[..1]).is_none());
    }

    #[test]
    fn a_truncated_record_is_refused() {
        let mut words = Vec::new();
        put_note(&mut words, Kind::Rank, 3, 5, &[7], &[]);
        assert!(Record::first_of(&words[..2]).is_none());
        assert!(Record::first_of(&[]).is_none());
        assert!(Record::first_of(&[0, 1, 2]).is_none());
    }
}
