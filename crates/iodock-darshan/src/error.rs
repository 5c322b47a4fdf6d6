//! Reasons why a log could not be read at all.

use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why a file is unreadable.
#[derive(Debug)]
pub enum Fault {
    /// The system returned this error.
    Unreadable(std::io::Error),
    Empty,
    NotDarshan,
    /// The file ends within its header.
    HeaderCut,
    /// The number that shows the byte order is wrong in both byte orders.
    HeaderDamaged,
    /// The first bytes are those of a log of format 2 or earlier.
    OldFormat(String),
    UnknownCompression(u8),
    /// The file is an output of darshan-parser without the counters of records.
    NoRecords,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable(error) => write!(out, "can't be read: {error}"),
            Fault::Empty => out.write_str("is empty"),
            Fault::NotDarshan => out.write_str("is not a log of Darshan"),
            Fault::HeaderCut => out.write_str("ends within the header of a Darshan log"),
            Fault::HeaderDamaged => out.write_str("begins like a Darshan log, but its header is damaged"),
            Fault::OldFormat(version) => write!(out, "is a Darshan log of format {version}, before 3.00"),
            Fault::UnknownCompression(number) => {
                write!(out, "is a Darshan log with compression {number}, which no Darshan writes")
            }
            Fault::NoRecords => out.write_str("is a text of darshan-parser without the counters of any file"),
        }
    }
}

impl Fault {
    /// Returns advice: what the user can do about the fault.
    pub fn hint(&self) -> &'static str {
        match self {
            Fault::Unreadable(_) => "check that the file exists and can be read",
            Fault::Empty => {
                "the job was killed before Darshan wrote its log, or the disk was full: run again"
            }
            Fault::NotDarshan => {
                "give iodock a log of Darshan 3 (*.darshan), or the text of darshan-parser LOG"
            }
            Fault::HeaderCut | Fault::HeaderDamaged | Fault::UnknownCompression(_) => {
                "copy the log again, as a binary file"
            }
            Fault::OldFormat(_) => {
                "convert it to text with the darshan-parser of that Darshan, and import the text"
            }
            Fault::NoRecords => {
                "write the text with darshan-parser LOG, without --total, --perf or --file alone"
            }
        }
    }
}

/// The error for a file that could not be read at all.
#[derive(Debug)]
pub struct Error {
    pub path: PathBuf,
    pub fault: Fault,
}

impl Error {
    pub(crate) fn new(path: &Path, fault: Fault) -> Error {
        Error { path: path.to_owned(), fault }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.fault)
    }
}

impl std::error::Error for Error {}
