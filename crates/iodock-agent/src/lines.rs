//! Reads the lines of a file of any size through a small buffer. Files of servers may have 100 MB and are not
//! loaded completely.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Size of the buffer in bytes. Longer lines are skipped and counted.
const BUFFER_BYTES: usize = 128 << 10;

/// The unreadable parts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Total number of lines.
    pub lines: u64,
    /// Lines that are damaged, cut, too long, or not known in this format.
    pub unreadable: u64,
    /// Readable lines whose owner is unknown, because the line with the owner's name is damaged.
    pub orphaned: u64,
    /// Number of the first unreadable line, from 1.
    pub first_line: Option<u64>,
    /// File that contains that line, for sources that read many files.
    pub first_file: Option<PathBuf>,
}

impl Faults {
    pub fn unreadable(&mut self) {
        self.unreadable += 1;
        self.first_line.get_or_insert(self.lines);
    }

    /// Adds the faults of one more file.
    pub fn absorb(&mut self, of_file: Faults, path: &Path) {
        self.lines += of_file.lines;
        self.unreadable += of_file.unreadable;
        self.orphaned += of_file.orphaned;
        if let (None, Some(line)) = (self.first_line, of_file.first_line) {
            (self.first_line, self.first_file) = (Some(line), Some(path.into()));
        }
    }
}

/// Calls a function with each line of `input`, without its newline, and counts the lines. All these files end
/// with a newline. If the last line has none, it was cut, perhaps within a number, and counts as unreadable.
/// Fails if the input cannot be read.
pub fn each_line(
    input: &mut dyn Read,
    faults: &mut Faults,
    mut line: impl FnMut(&[u8], &mut Faults),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut filled, mut skipping) = (0, false);
    loop {
        let read = match input.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        filled += read;
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &buffer[..filled]) {
            faults.lines += 1;
            match std::mem::take(&mut skipping) {
                true => faults.unreadable(),
                false => line(&buffer[begin..end], faults),
            }
            begin = end + 1;
        }
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
        if filled == buffer.len() {
            (filled, skipping) = (0, true);
        }
        if read == 0 {
            break;
        }
    }
    if filled > 0 || skipping {
        faults.lines += 1;
        faults.unreadable();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> (Vec<Vec<u8>>, Faults) {
        let (mut found, mut faults) = (Vec::new(), Faults::default());
        each_line(&mut &text[..], &mut faults, |line, _| found.push(line.to_vec())).expect("read");
        (found, faults)
    }

    #[test]
    fn a_last_line_without_a_newline_counts_as_truncated() {
        let (found, faults) = lines(b"one\n\nthree");
        assert_eq!((found, faults.lines), (vec![b"one".to_vec(), b"".to_vec()], 3));
        assert_eq!((faults.unreadable, faults.first_line), (1, Some(3)));
        assert_eq!(lines(b"").1, Faults::default());
    }

    #[test]
    fn the_faults_of_several_files_name_the_first_file() {
        let mut all = Faults::default();
        all.absorb(lines(b"good\n").1, Path::new("a"));
        all.absorb(lines(b"good\nbad").1, Path::new("b"));
        all.absorb(lines(b"bad").1, Path::new("c"));
        assert_eq!((all.lines, all.unreadable, all.first_line), (4, 2, Some(2)));
        assert_eq!(all.first_file.as_deref(), Some(Path::new("b")));
    }

    #[test]
    fn long_lines_are_skipped_and_counted() {
        let mut text = b"first\n".to_vec();
        text.resize(text.len() + 3 * BUFFER_BYTES, b'x');
        text.extend(b"\nlast\n");
        let (found, faults) = lines(&text);
        assert_eq!(found, [b"first".to_vec(), b"last".to_vec()]);
        assert_eq!((faults.lines, faults.unreadable, faults.first_line), (3, 1, Some(2)));
    }
}
