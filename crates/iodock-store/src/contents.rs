//! The contents of a written store, which the manifest lists.

use crate::table::Written;
use std::collections::BTreeMap;
use std::path::Path;

/// Number of rows of each table, and checksum of each file by its name in the store.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub rows: BTreeMap<String, u64>,
    pub checksums: BTreeMap<String, String>,
}

impl Contents {
    /// Adds a table that consists of one file of `store`.
    pub fn add_table(&mut self, name: &str, store: &Path, written: Written) {
        self.rows.insert(name.into(), written.rows);
        self.add_file(store, &written.path, written.checksum);
    }

    /// Adds one file of a table.
    pub fn add_file(&mut self, store: &Path, path: &Path, checksum: String) {
        let name = path.strip_prefix(store).unwrap_or(path);
        self.checksums.insert(name.display().to_string(), checksum);
    }

    pub fn extend(&mut self, other: Contents) {
        self.rows.extend(other.rows);
        self.checksums.extend(other.checksums);
    }
}
