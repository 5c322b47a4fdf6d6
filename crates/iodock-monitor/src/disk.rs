//! Writes files that are complete or absent, even after a power failure.

use crate::error::MonitorError;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Replaces a file's content.
///
/// # Errors
/// Fails if the file system fails. The old content then remains.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), MonitorError> {
    let draft = path.with_extension("draft");
    let write = || {
        let mut file = File::create(&draft)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().map_err(MonitorError::io(path))?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Makes the names in the folder survive a power failure.
///
/// # Errors
/// Fails if the file system fails.
pub fn sync_folder(folder: &Path) -> Result<(), MonitorError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(MonitorError::io(folder))
}

/// Creates a folder and its parents.
///
/// # Errors
/// Fails if the file system fails.
pub fn make_folder(folder: &Path) -> Result<(), MonitorError> {
    fs::create_dir_all(folder).map_err(MonitorError::io(folder))
}
