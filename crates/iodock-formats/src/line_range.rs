//! Selects a range of lines of a log.

use crate::LineRange;
use memchr::memchr_iter;
use std::io::{self, Read};

/// A reader that returns only the lines of a range.
pub struct LinesOf<R> {
    inner: R,
    /// Number of newlines before the first selected line that have not been read yet.
    before: u64,
    /// Number of selected lines that have not been read yet; `None` for all lines.
    wanted: Option<u64>,
}

impl<R: Read> LinesOf<R> {
    pub fn new(inner: R, lines: LineRange) -> Self {
        let before = lines.first.saturating_sub(1);
        LinesOf { inner, before, wanted: lines.last.map(|last| last.saturating_sub(before)) }
    }

    /// Moves the selected bytes to the front, and returns their number.
    fn cut(&mut self, bytes: &mut [u8]) -> usize {
        let start = end_of(bytes, &mut self.before);
        let end = match &mut self.wanted {
            Some(wanted) => start + end_of(&bytes[start..], wanted),
            None => bytes.len(),
        };
        bytes.copy_within(start..end, 0);
        end - start
    }
}

/// Returns the position after the last of `count` lines, or the length of `bytes` if it has fewer lines.
/// Decreases `count` by the number of lines found.
fn end_of(bytes: &[u8], count: &mut u64) -> usize {
    if *count == 0 {
        return 0;
    }
    for at in memchr_iter(b'\n', bytes) {
        *count -= 1;
        if *count == 0 {
            return at + 1;
        }
    }
    bytes.len()
}

impl<R: Read> Read for LinesOf<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.wanted != Some(0) {
            let count = self.inner.read(buffer)?;
            if count == 0 {
                break;
            }
            match self.cut(&mut buffer[..count]) {
                0 => {}
                kept => return Ok(kept),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_selects_lines_of_a_text() {
        let read = |first, last, step: usize| {
            let mut reader = LinesOf::new(&b"a\nbb\n\nd"[..], LineRange { first, last });
            let (mut out, mut buffer) = (String::new(), vec![0; step]);
            loop {
                match reader.read(&mut buffer).unwrap() {
                    0 => return out,
                    count => out += std::str::from_utf8(&buffer[..count]).unwrap(),
                }
            }
        };
        for step in [1, 2, 3, 20] {
            assert_eq!(read(1, None, step), "a\nbb\n\nd");
            assert_eq!(read(2, Some(2), step), "bb\n");
            assert_eq!(read(2, Some(9), step), "bb\n\nd");
            assert_eq!((read(4, None, step), read(5, None, step)), ("d".into(), String::new()));
        }
    }
}
