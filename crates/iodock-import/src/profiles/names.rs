//! The files of a Darshan log, numbered as in a store.

use crate::mounts::place_files;
use iodock_darshan::{Log, Module};
use iodock_event::{FileEntry, FileKind, FileTable, Mount};
use rustc_hash::FxHashMap;

/// The files, by the numbers of Darshan's records.
#[derive(Default)]
pub struct Files {
    pub table: FileTable,
    numbers: FxHashMap<u64, u32>,
}

impl Files {
    /// Returns the files of all records in the log, in the order of the records.
    pub fn of(log: &Log) -> Files {
        let mut files = Files::default();
        for counted in &log.counted {
            let is_inner = matches!(counted.module, Module::H5D | Module::PNETCDF_VAR);
            for record in counted.records() {
                files.add(record.id(), is_inner, log);
                if let Some(file) = record.file() {
                    files.add(file, false, log);
                }
            }
        }
        let traced = log.traced.iter().flat_map(|traced| &traced.files).map(|file| file.id);
        for id in log.lustre.iter().map(|file| file.id).chain(traced) {
            files.add(id, false, log);
        }
        let mounts: Vec<_> = mounts_of(log).into_iter().map(|mount| (String::new(), mount)).collect();
        place_files(&mut files.table, &mounts);
        iodock_tracker::fill_patterns(&mut files.table);
        files
    }

    pub fn number(&self, id: u64) -> u32 {
        // `Files::of` has added the numbers of all records.
        self.numbers.get(&id).copied().unwrap_or(iodock_event::NONE)
    }

    fn add(&mut self, id: u64, is_inner: bool, log: &Log) {
        let table = &mut self.table;
        self.numbers.entry(id).or_insert_with(|| match log.names.bytes(id) {
            Some(name) => table.push(name, entry(name, is_inner)),
            None => table.push(format!("darshan:{id:016x}").as_bytes(), FileEntry::new(FileKind::Unknown)),
        });
    }
}

/// Makes the entry of a record. Data sets and variables are not files, nor are `<STDIN>`, `<STDOUT>` and
/// `<STDERR>`.
fn entry(name: &[u8], is_inner: bool) -> FileEntry {
    if is_inner {
        return FileEntry::new(FileKind::Other);
    }
    if name.starts_with(b"<STD") {
        return FileEntry::new(FileKind::Standard);
    }
    FileEntry { relative: name.first() != Some(&b'/'), ..FileEntry::new(FileKind::File) }
}

/// Returns the file systems that were mounted during the job. Darshan does not record the mounted devices.
pub fn mounts_of(log: &Log) -> Vec<Mount> {
    let told = log.job.iter().flat_map(|job| &job.mounts);
    let mount = |one: &iodock_darshan::Mount| Mount {
        mount_point: one.path.clone(),
        fs_type: one.file_system.clone(),
        source: String::new(),
        options: String::new(),
    };
    told.map(mount).collect()
}
