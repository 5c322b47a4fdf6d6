//! Reads a file of frames. Damaged parts are skipped up to the next frame.

use iodock_samples::frame::{self, Damage};
use memchr::memmem;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// First bytes of each frame.
const MAGIC: &[u8] = b"IODOCS";
const ENDING: &str = ".frames";

/// The part of a file that was synced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Number in the file's name. No frame in the file has a smaller number.
    pub first: u64,
    pub last: u64,
    pub frames: u64,
    pub bytes: u64,
    /// Number of damaged places that the spool has counted as lost.
    pub damaged: u64,
}

impl Segment {
    pub fn empty(first: u64) -> Self {
        Segment { first, ..Segment::default() }
    }

    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{:020}{ENDING}", self.first))
    }

    /// Returns the number in a segment's name.
    pub fn named(name: &str) -> Option<u64> {
        let digits = name.strip_suffix(ENDING)?;
        (digits.len() == 20).then(|| digits.parse().ok())?
    }

    /// Returns the number of frames after number `kept`.
    pub fn unkept(&self, kept: u64) -> u64 {
        match self.frames {
            0 => 0,
            frames if kept < self.first => frames,
            frames => frames.min(self.last.saturating_sub(kept)),
        }
    }
}

/// Position of a complete frame in the bytes, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub begin: usize,
    pub end: usize,
    pub sequence: u64,
}

/// Iterates over the frames in a file's bytes.
pub struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of places without a valid frame.
    pub damaged: u64,
    /// Position of an incomplete frame at the end of the bytes.
    pub torn: Option<usize>,
}

impl<'a> Frames<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Frames { bytes, at: 0, damaged: 0, torn: None }
    }

    fn skip(&mut self) {
        self.damaged += 1;
        let next = self.bytes.get(self.at + 1..).and_then(|rest| memmem::find(rest, MAGIC));
        self.at = next.map_or(self.bytes.len(), |next| self.at + 1 + next);
    }
}

impl Iterator for Frames<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        while self.at < self.bytes.len() {
            match frame::split(&self.bytes[self.at..]) {
                Ok((header, frame, _)) => {
                    let begin = self.at;
                    self.at += frame.len();
                    return Some(Found { begin, end: self.at, sequence: header.sequence });
                }
                Err(Damage::Cut(_)) => {
                    // A damaged length also looks like a cut frame. But then another frame follows, so it
                    // counts as damaged.
                    let at = self.at;
                    self.skip();
                    if self.at == self.bytes.len() {
                        self.damaged -= 1;
                        self.torn = Some(at);
                    }
                }
                Err(_) => self.skip(),
            }
        }
        None
    }
}

/// Reads the bytes from `begin` to `end` of a file. Fails if the file cannot be read.
pub fn read(path: &Path, begin: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(begin)).unwrap_or(0)];
    File::open(path)?.read_exact_at(&mut bytes, begin)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iodock_samples::batch::Batch;

    fn frames(numbers: std::ops::Range<u64>) -> Vec<u8> {
        let encode = |sequence| frame::encode(&Batch { sequence, host: "h".into(), ..Batch::default() });
        numbers.filter_map(encode).flatten().collect()
    }

    fn numbers(bytes: &[u8]) -> (Vec<u64>, u64, Option<usize>) {
        let mut frames = Frames::of(bytes);
        let numbers = frames.by_ref().map(|found| found.sequence).collect();
        (numbers, frames.damaged, frames.torn)
    }

    #[test]
    fn a_truncated_tail_and_damage_lose_only_the_affected_batches() {
        let (whole, one) = (frames(1..4), frames(1..2).len());
        assert_eq!(numbers(&whole), (vec![1, 2, 3], 0, None));
        for end in 2 * one + 1..3 * one {
            assert_eq!(numbers(&whole[..end]), (vec![1, 2], 0, Some(2 * one)));
        }
        for at in 0..one {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            let (found, count, torn) = numbers(&damaged);
            // The last four bytes of a header are not used.
            let is_unused = (28..32).contains(&at);
            assert_eq!(
                (found, count, torn),
                (if is_unused { vec![1, 2, 3] } else { vec![2, 3] }, !is_unused as u64, None)
            );
        }
    }

    #[test]
    fn the_name_of_a_segment_contains_its_first_number() {
        let segment = Segment::empty(17);
        let path = segment.path(Path::new("/s"));
        assert_eq!(
            Segment::named(path.file_name().and_then(|name| name.to_str()).expect("a name")),
            Some(17)
        );
        assert_eq!(Segment::named("17.frames"), None);
        assert_eq!(Segment::named("refused-00000000000000000017.frame"), None);
    }

    #[test]
    fn a_batch_that_is_not_kept_is_counted() {
        let segment = Segment { first: 10, last: 14, frames: 5, bytes: 1, damaged: 0 };
        let unkept = |kept| segment.unkept(kept);
        assert_eq!([unkept(0), unkept(9), unkept(10), unkept(14), unkept(99)], [5, 5, 4, 0, 0]);
        assert_eq!(Segment::empty(10).unkept(0), 0);
    }
}
