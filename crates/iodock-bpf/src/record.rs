//! One record, as the kernel's programs or the recorder wrote it.

use crate::format::{Kind, KINDS, MOST_WORDS};

/// A record's words, the first and the time with them.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub words: &'a [u64],
}

/// A copied piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied<'a> {
    Bytes(&'a [u8]),
    Unreadable,
}

impl<'a> Record<'a> {
    /// The first of `words`, which may hold more; `None` if no whole record is there.
    #[inline]
    pub fn first_of(words: &'a [u64]) -> Option<Record<'a>> {
        let count = (*words.first()? & 0xffff) as usize;
        words.get(..count).filter(|words| words.len() > 1).map(|words| Record { words })
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        KINDS.get((self.words[0] >> 16 & 15) as usize).copied().unwrap_or(Kind::Padding)
    }

    #[inline]
    pub fn number(&self) -> usize {
        (self.words[0] >> 20 & 0xfff) as usize
    }

    #[inline]
    pub fn tid(&self) -> u32 {
        (self.words[0] >> 32) as u32
    }

    /// Monotonic ns.
    #[inline]
    pub fn time(&self) -> u64 {
        self.words[1]
    }

    /// The lower and the upper half of a word.
    #[inline]
    pub fn halves(&self, at: usize) -> (u32, u32) {
        (self.words[at] as u32, (self.words[at] >> 32) as u32)
    }

    /// The copied pieces that follow word `from`, by their number.
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

/// The bytes that words hold, in the order in which they lie in memory.
pub fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: any bytes are valid, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
}

/// Appends a note of the recorder's own: a record of `fields`, and behind it pieces of memory, cut to what
/// a record can hold.
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
    out[start] = (out.len() - start) as u64 | (kind as u64) << 16 | u64::from(tid) << 32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
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
    fn what_is_cut_is_no_record() {
        let mut words = Vec::new();
        put_note(&mut words, Kind::Rank, 3, 5, &[7], &[]);
        assert!(Record::first_of(&words[..2]).is_none());
        assert!(Record::first_of(&[]).is_none());
        assert!(Record::first_of(&[0, 1, 2]).is_none());
    }
}
