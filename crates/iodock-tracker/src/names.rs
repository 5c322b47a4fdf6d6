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
    /// Whether each file was mapped, indexed by file id. The vector grows when needed.
    mapped: Vec<bool>,
    pub mapped_count: u64,
    /// Special files (such as FIFOs) whose name was removed. A file that is created there later is a
    /// different one.
    removed: FxHashSet<u32>,
}

pub const SHARED: u16 = iodock_event::tables::NO_INDEX;

impl Names {
    /// Returns the file with this name, and adds it if it is new. A relative name, or the name of an object
    /// without a path, is different from an absolute path with the same text.
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

    /// Sets the kind of a file that a link-following call showed.
    pub fn set_kind(&mut self, file: u32, kind: FileKind) {
        if let Some(entry) = self.entry(file).filter(|entry| entry.kind.has_path()) {
            // Sockets in the file system have a path, so they keep a kind with a path.
            entry.kind = if kind.has_path() { kind } else { FileKind::File };
            if kind == FileKind::Fifo {
                // Bytes only pass through a FIFO, so it has no size.
                entry.size = UNKNOWN;
            }
        }
        self.removed.remove(&file);
    }

    pub fn is_fifo(&self, file: u32) -> bool {
        self.table.entries.get(file as usize).is_some_and(|entry| entry.kind == FileKind::Fifo)
    }

    /// Records that the name was removed. The file keeps its kind until another file takes the name.
    pub fn remove(&mut self, file: u32) {
        let kind = self.entry(file).map(|entry| entry.kind);
        if kind.is_some_and(|kind| !matches!(kind, FileKind::File | FileKind::Regular)) {
            self.removed.insert(file);
        }
    }

    /// Records that an open call may have created the file. `fresh`: there was no file before.
    pub fn created(&mut self, file: u32, fresh: bool) {
        if self.removed.remove(&file) || fresh {
            if let Some(entry) = self.entry(file) {
                if !matches!(entry.kind, FileKind::File | FileKind::Regular) && entry.kind.has_path() {
                    (entry.kind, entry.size) = (FileKind::Regular, 0);
                }
            }
        }
    }

    /// Records that a call which does not follow links showed a symbolic link. The properties of the target
    /// are kept, because reads and writes reach the target.
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

    /// Raises the file's size to at least `end`, after a write that ended there.
    pub fn written_up_to(&mut self, file: u32, end: i64) {
        if let Some(entry) = self.entry(file).filter(|entry| entry.kind != FileKind::Fifo) {
            // [`UNKNOWN`] is smaller than every size, so the maximum is `end` if the size was unknown.
            entry.size = entry.size.max(end);
        }
    }

    /// Adds `bytes` to a known size, after an append.
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
