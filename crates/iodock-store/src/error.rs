//! Errors of a store, each with the path and a hint.

use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum StoreError {
    /// The path exists already and must not be replaced.
    Exists {
        path: PathBuf,
    },
    /// The path exists but is not a store, so iodock neither reads nor replaces it.
    NotAStore {
        path: PathBuf,
        why: String,
    },
    /// There is no store at the path.
    Missing {
        path: PathBuf,
    },
    /// A newer iodock wrote the store.
    Newer {
        path: PathBuf,
        schema: u64,
        writer: String,
    },
    /// A file of the store is missing, cut or unreadable.
    Damaged {
        path: PathBuf,
        what: String,
    },
    /// The disk is full. `written` is the number of bytes of the store that it could hold.
    Full {
        path: PathBuf,
        written: u64,
        quota: bool,
    },
    Denied {
        path: PathBuf,
    },
    ReadOnly {
        path: PathBuf,
    },
    Io {
        path: PathBuf,
        source: io::Error,
    },
    /// The Parquet encoder returned an error.
    Encoder {
        path: PathBuf,
        source: ParquetError,
    },
}

impl StoreError {
    pub fn path(&self) -> &Path {
        match self {
            StoreError::Exists { path }
            | StoreError::NotAStore { path, .. }
            | StoreError::Missing { path }
            | StoreError::Newer { path, .. }
            | StoreError::Damaged { path, .. }
            | StoreError::Full { path, .. }
            | StoreError::Denied { path }
            | StoreError::ReadOnly { path }
            | StoreError::Io { path, .. }
            | StoreError::Encoder { path, .. } => path,
        }
    }

    /// Returns the hint: what the user can do about the error.
    pub fn hint(&self) -> String {
        match self {
            StoreError::Exists { .. } => "give another name with -o, or replace it: --force".into(),
            StoreError::NotAStore { .. } => "give another name with -o".into(),
            StoreError::Missing { .. } => "create one with iodock import LOG or iodock record CMD".into(),
            StoreError::Newer { writer, .. } => format!("open it with {writer} or newer"),
            StoreError::Damaged { .. } => "import or record again into a new store".into(),
            StoreError::Full { quota: false, .. } => "free space, or give a folder with more: -o PATH".into(),
            StoreError::Full { quota: true, .. } => {
                "your quota is used up; give another place: -o PATH".into()
            }
            StoreError::Denied { .. } => "give a folder in which you may write: -o PATH".into(),
            StoreError::ReadOnly { .. } => "the file system is read-only; give another place: -o PATH".into(),
            StoreError::Io { .. } => {
                "check the folder and its file system, or give another folder: -o PATH".into()
            }
            StoreError::Encoder { .. } => "this is a defect of iodock; please report it".into(),
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error, written: u64) -> StoreError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull => StoreError::Full { path, written, quota: false },
            io::ErrorKind::QuotaExceeded => StoreError::Full { path, written, quota: true },
            io::ErrorKind::PermissionDenied => StoreError::Denied { path },
            io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path },
            _ => StoreError::Io { path, source },
        }
    }

    /// Converts an error of the Parquet encoder, which may contain an error of the operating system.
    pub(crate) fn parquet(path: &Path, source: ParquetError, written: u64) -> StoreError {
        match source {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(inner) => StoreError::io(path, *inner, written),
                Err(inner) => {
                    StoreError::Encoder { path: path.into(), source: ParquetError::External(inner) }
                }
            },
            source => StoreError::Encoder { path: path.into(), source },
        }
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.path().display())?;
        match self {
            StoreError::Exists { .. } => write!(f, "exists already"),
            StoreError::NotAStore { why, .. } => write!(f, "{why}"),
            StoreError::Missing { .. } => write!(f, "no such store"),
            StoreError::Newer { schema, writer, .. } => {
                write!(f, "written by a newer iodock ({writer}, schema {schema})")
            }
            StoreError::Damaged { what, .. } => write!(f, "{what}"),
            StoreError::Full { written, .. } => {
                write!(
                    f,
                    "no space left: the store needs more than the {} MB that were written",
                    written.div_ceil(1_000_000)
                )
            }
            StoreError::Denied { .. } => write!(f, "permission denied"),
            StoreError::ReadOnly { .. } => write!(f, "read-only file system"),
            StoreError::Io { source, .. } => write!(f, "{source}"),
            StoreError::Encoder { source, .. } => write!(f, "cannot be encoded: {source}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { source, .. } => Some(source),
            StoreError::Encoder { source, .. } => Some(source),
            _ => None,
        }
    }
}
