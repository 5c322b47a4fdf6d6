//! Errors of reading and folding events.

use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum FoldError {
    /// The caller cancelled the fold.
    Cancelled,
    /// A file is damaged, or not in iodock's format.
    Unreadable { path: PathBuf, what: String },
    /// The tables other than events are not in iodock's format.
    Foreign { what: String },
}

impl FoldError {
    pub(crate) fn unreadable(path: &Path, what: impl std::fmt::Display) -> FoldError {
        FoldError::Unreadable { path: path.into(), what: what.to_string() }
    }
}

impl std::fmt::Display for FoldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FoldError::Cancelled => write!(f, "stopped"),
            FoldError::Foreign { what } => write!(f, "{what}"),
            FoldError::Unreadable { path, what } => write!(f, "{}: {what}", path.display()),
        }
    }
}

impl std::error::Error for FoldError {}
