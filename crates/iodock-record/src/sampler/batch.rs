//! Collects the readings of one source in one round, and its failures.

use iodock_event::{Sample, SampleKind};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Number of bytes of a file that are read. The rest of a larger file is ignored.
const LONGEST_BYTES: u64 = 16 << 20;

#[derive(Debug, Default)]
pub struct Batch {
    pub samples: Vec<Sample>,
    /// Number of lines that are damaged, cut or of an unknown format.
    pub unreadable: u64,
    /// The first file that exists and could not be read, with the reason.
    pub refused: Option<(PathBuf, String)>,
}

impl Batch {
    pub fn push(&mut self, ts: i64, names: (&str, &str, &str), value: f64, kind: SampleKind) {
        let (source, target, metric) = names;
        self.samples.push(Sample {
            ts,
            source: source.into(),
            target: target.into(),
            metric: metric.into(),
            value,
            kind,
        });
    }

    /// Returns the content of a file. It is empty if the file does not exist or can't be read; the latter is
    /// recorded.
    pub fn content(&mut self, path: &Path) -> Vec<u8> {
        // Most files are shorter. Their length is not known before, and growing a buffer in small steps would
        // need ten calls.
        let mut text = Vec::with_capacity(4096);
        let read = File::open(path).and_then(|file| file.take(LONGEST_BYTES).read_to_end(&mut text));
        if let Err(error) = read {
            self.refuse(path, &error);
        }
        text
    }

    /// Records that a file can't be read. Missing files, and files that the kernel has disabled (pressure
    /// with psi=0), are not recorded.
    pub fn refuse(&mut self, path: &Path, error: &io::Error) {
        if !is_gone(error) && error.kind() != ErrorKind::Unsupported && self.refused.is_none() {
            self.refused = Some((path.into(), error.to_string()));
        }
    }

    /// Returns the complete lines of a file. These files end with a newline, so a last line without one is
    /// cut, and counts as unreadable.
    pub fn lines<'a>(&mut self, text: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        self.unreadable += u64::from(end < text.len());
        text[..end].split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
    }

    /// Returns the parsed line. If it is `None`, counts an unreadable line.
    pub fn read<T>(&mut self, line: Option<T>) -> Option<T> {
        self.unreadable += u64::from(line.is_none());
        line
    }
}

/// Returns whether the error means that the file does not exist, or not any more.
pub fn is_gone(error: &io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}
