//! Stores tables of call sites from one recording to the next, because the search in libc takes 20 ms, which
//! is longer than many recorded programs run. The user's cache folder has one file for each build id. If a
//! table can't be stored, the next recording searches again.

use crate::elf;
use crate::format::Shape;
use crate::mapping::Mapping;
use crate::own;
use crate::own_calls::OwnCalls;
use crate::shapes::Shapes;
use crate::sites;
use crate::table::Table;
use crate::texts::Texts;
use crate::trampolines::{self, Text};
use crate::unused;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Version of stored files. It is incremented with every change of the search, of the tables' format, and of
/// how a text is built.
const VERSION: u32 = 7;

/// A library with system-call sites to patch.
pub struct Library {
    pub file: Mapping,
    pub table: Table,
    /// The library's code segment, patched with jumps. If `None`, each process writes the jumps itself.
    pub text: Option<Text>,
    /// Set if the text is stored in a separate file. Otherwise the text becomes a part of the session's file.
    pub kept: Option<Kept>,
}

/// A patched text that is stored in its own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub texts: Texts,
    pub number: u64,
    /// Identifies the text's file.
    pub identity: u64,
}

/// Stored site tables of libraries.
pub struct Cache {
    folder: Option<PathBuf>,
    texts: Option<Texts>,
}

impl Cache {
    /// Returns a cache in the user's cache folder. If there is no such folder, nothing is stored.
    pub fn of_user() -> Cache {
        let named = std::env::var_os("XDG_CACHE_HOME").filter(|path| path.as_bytes().first() == Some(&b'/'));
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        let base = named.map(PathBuf::from).or_else(home).filter(|base| base.is_absolute());
        let cache = Cache::at(base.map(|base| base.join("iodock")));
        let texts = Texts::of_user(cache.folder.as_deref());
        cache.with_texts(texts)
    }

    /// Sets where texts are stored. If `None`, they become a part of the session's file.
    pub fn with_texts(self, texts: Option<Texts>) -> Cache {
        Cache { texts, ..self }
    }

    /// Returns a cache in `base`, whose texts become a part of the session's file.
    pub fn at(base: Option<PathBuf>) -> Cache {
        // The folder's name contains a hash of the shapes, because a table is valid only for the calls that
        // were recorded when it was created.
        let folder = base.map(|base| base.join(format!("sites-{VERSION}-{:016x}", hash(shapes()))));
        Cache { folder, texts: None }
    }

    /// Removes unused files from the cache and from the folder of texts.
    pub fn remove_unused(&self) {
        let folders = [self.folder.as_deref(), self.texts.as_ref().map(Texts::folder)];
        let bases: BTreeSet<&Path> = folders.into_iter().flatten().filter_map(Path::parent).collect();
        for base in bases {
            unused::remove(base, SystemTime::now());
        }
    }

    /// Returns the library at `path`; `None` if it has no sites to patch.
    pub fn library(&self, path: &Path) -> Option<Library> {
        let file = Mapping::of(&File::open(path).ok()?).ok()?;
        let elf = elf::parse(&file).filter(|elf| !elf.build_id.is_empty())?;
        let table = self.table(&file, elf.build_id)?;
        let text = trampolines::text(&elf, &table);
        let kept = text.as_ref().and_then(|text| self.keep_text(&file, &table, text));
        Some(Library { file, table, text, kept })
    }

    /// Stores the text in its own file; `None` if that fails.
    fn keep_text(&self, file: &Mapping, table: &Table, text: &Text) -> Option<Kept> {
        let texts = self.texts.clone()?;
        // The text's number is a checksum of the library's identity and of its table.
        let number = checksum(&[&file.state().to_le_bytes()[..], &table.bytes()].concat()).max(1);
        let identity = texts.keep(number, text.bytes as usize, || text.image(file, table)).ok()?;
        Some(Kept { texts, number, identity })
    }

    fn table(&self, file: &[u8], build_id: &[u8]) -> Option<Table> {
        let name: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let kept = self.folder.as_ref().map(|folder| folder.join(name));
        if let Some(table) = kept.as_ref().and_then(|kept| read(kept, build_id)) {
            return Some(table);
        }
        let table = trampolines::assemble(&sites::find(file, shapes())?);
        if let Some(kept) = kept {
            // The only effect of a failure is that the next recording starts 20 ms later.
            let _ = keep(&kept, &table.bytes());
        }
        Some(table)
    }
}

impl Cache {
    /// Returns the calls that the code in the file at `path` makes without libc. They are stored under the
    /// file's inode, length and time, because reading all files that a program loads takes longer than many
    /// programs.
    pub fn own_calls(&self, path: &Path) -> OwnCalls {
        let Ok(about) = fs::metadata(path) else { return OwnCalls::default() };
        let state = [about.dev(), about.ino(), about.len(), about.mtime() as u64, about.mtime_nsec() as u64];
        let sum = checksum(&state.map(u64::to_le_bytes).concat());
        let kept = self.folder.as_ref().map(|folder| folder.join(format!("own-{sum:016x}")));
        if let Some(table) = kept.as_ref().and_then(|kept| fs::read(kept).ok()).filter(|kept| kept.len() == 9)
        {
            return OwnCalls::from_byte(table[0]);
        }
        let own = File::open(path).and_then(|file| Mapping::of(&file));
        let own = own.map_or(OwnCalls::default(), |file| OwnCalls::of(&file));
        if let Some(kept) = kept {
            // The only effect of a failure is that the next recording reads the file again.
            let _ = keep(&kept, &[own.byte()]);
        }
        own
    }
}

fn shapes() -> &'static [Shape] {
    &Shapes::of_this_machine().by_number
}

/// Returns the FNV-1a hash of the shapes.
fn hash(shapes: &[Shape]) -> u64 {
    let bytes = shapes.iter().flat_map(Shape::bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Reads a table; `None` unless it is complete, because its bytes determine what is written over a program's
/// instructions.
fn read(path: &Path, build_id: &[u8]) -> Option<Table> {
    let mut kept = Vec::new();
    own::open(path).ok()?.read_to_end(&mut kept).ok()?;
    let (bytes, sum) = kept.split_at_checked(kept.len().checked_sub(8)?)?;
    let table = Table::parse(bytes).filter(|_| checksum(bytes).to_le_bytes() == *sum)?;
    (table.build_id == build_id).then_some(table)
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Writes the file under another name first, so that no reader sees an incomplete file.
fn keep(path: &Path, table: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let new = path.with_extension(std::process::id().to_string());
    let _ = fs::remove_file(&new);
    let mut file = own::create(&new)?;
    file.write_all(table)?;
    file.write_all(&checksum(table).to_le_bytes())?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_cached_table_is_created_again() {
        let Some(libc) =
            crate::session::paths().into_iter().find(|path| path.to_string_lossy().contains("libc."))
        else {
            return;
        };
        let base = std::env::temp_dir().join(format!("iodock-sites-{}", std::process::id()));
        let cache = Cache::at(Some(base.clone()));
        let table = || cache.library(&libc).expect("it has sites").table;
        let found = table();
        let kept = fs::read_dir(cache.folder.as_ref().expect("a folder")).expect("made").flatten().next();
        let kept = kept.expect("a table").path();
        assert!(found.sites.len() > 100);
        assert_eq!(table(), found);
        let mut damaged = fs::read(&kept).expect("kept");
        damaged[100] ^= 1;
        fs::write(&kept, damaged).expect("written");
        assert_eq!(table(), found);
        fs::remove_dir_all(&base).expect("removed");
    }
}
