//! Maps file names to file ids.

use hashbrown::HashTable;
use iodock_event::{FileEntry, FileKind, FileTable, UNKNOWN};
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::Hasher;

/// Files by name. A name belongs to a scope: [`SHARED`] for all hosts, or one host with its own file system.
#[derive(Default)]
pub struct Names {
    pub table: FileTable,
    ids: HashTable<u32>,
    /// Was the file mapped? By file id, grown on demand.
    mapped: Vec<bool>,
    pub mapped_count: u64,
    /// Special files whose name was removed. A file created there later is a different one. There are few.
    removed: FxHashSet<u32>,
}

pub const SHARED: u16 = iodock_event::tables::NO_INDEX;

impl Names {
    /// The file with this name, which is created if it is new. The same name is a different file if it is
    /// relative or belongs to an object without a path.
    pub fn file(&mut self, scope: u16, kind: FileKind, relative: bool, name: &[u8]) -> u32 {
        let hash = hash(scope, kind.has_path(), name);
        let table = &self.table;
        let same = |&id: &u32| {
            let entry = &table.entries[id as usize];
            entry.host == scope
                && entry.relative == relative
                && entry.kind.has_path() == kind.has_path()
                && table.names.get(id) == name
        };
        if let Some(&id) = self.ids.find(hash, same) {
            return id;
        }
        let entry = FileEntry { host: scope, relative, ..FileEntry::new(kind) };
        let id = self.table.push(name, entry);
        let table = &self.table;
        let rehash = |&id: &u32| {
            let entry = &table.entries[id as usize];
            self::hash(entry.host, entry.kind.has_path(), table.names.get(id))
        };
        self.ids.insert_unique(hash, id, rehash);
        id
    }

    pub fn name(&self, file: u32) -> &[u8] {
        self.table.names.get(file)
    }

    fn entry(&mut self, file: u32) -> Option<&mut FileEntry> {
        self.table.entries.get_mut(file as usize)
    }

    /// A call that follows links showed the kind of the file.
    pub fn set_kind(&mut self, file: u32, kind: FileKind) {
        if let Some(entry) = self.entry(file).filter(|entry| entry.kind.has_path()) {
            // Sockets also have paths, but are kept as files with a path.
            entry.kind = if kind.has_path() { kind } else { FileKind::File };
            if kind == FileKind::Fifo {
                // Bytes pass through it, so it has no size.
                entry.size = UNKNOWN;
            }
        }
        self.removed.remove(&file);
    }

    pub fn is_fifo(&self, file: u32) -> bool {
        self.table.entries.get(file as usize).is_some_and(|entry| entry.kind == FileKind::Fifo)
    }

    /// The name was removed. The kind of the file is still shown until another file takes the name.
    pub fn remove(&mut self, file: u32) {
        let kind = self.entry(file).map(|entry| entry.kind);
        if kind.is_some_and(|kind| !matches!(kind, FileKind::File | FileKind::Regular)) {
            self.removed.insert(file);
        }
    }

    /// An open call may have created the file. `fresh`: there was none before.
    pub fn created(&mut self, file: u32, fresh: bool) {
        if self.removed.remove(&file) || fresh {
            if let Some(entry) = self.entry(file) {
                if !matches!(entry.kind, FileKind::File | FileKind::Regular) && entry.kind.has_path() {
                    (entry.kind, entry.size) = (FileKind::Regular, 0);
                }
            }
        }
    }

    /// A call that does not follow links showed a symbolic link. The target's properties are kept, since
    /// reads and writes reach the target.
    pub fn set_symlink(&mut self, file: u32) {
        if let Some(entry) = self.entry(file).filter(|entry| entry.kind == FileKind::File) {
            entry.kind = FileKind::Symlink;
        }
    }

    pub fn set_size(&mut self, file: u32, size: i64) {
        if let Some(entry) = self.entry(file).filter(|entry| entry.kind != FileKind::Fifo) {
            entry.size = size;
        }
    }

    /// A write ended at this offset.
    pub fn written_up_to(&mut self, file: u32, end: i64) {
        if let Some(entry) = self.entry(file).filter(|entry| entry.kind != FileKind::Fifo) {
            // UNKNOWN is smaller than every size.
            entry.size = entry.size.max(end);
        }
    }

    /// A write was appended at an unknown end.
    pub fn appended(&mut self, file: u32, bytes: i64) {
        if let Some(entry) = self.entry(file).filter(|entry| entry.size != UNKNOWN) {
            entry.size = entry.size.saturating_add(bytes);
        }
    }

    pub fn mark_mapped(&mut self, file: u32) {
        let index = file as usize;
        if index >= self.mapped.len() {
            self.mapped.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.mapped[index], true) {
            self.mapped_count += 1;
        }
    }
}

fn hash(scope: u16, has_path: bool, name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.write_u32(u32::from(scope) << 1 | u32::from(has_path));
    hasher.finish()
}

impl Names {
    pub fn into_table(self) -> FileTable {
        self.table
    }
}
