//! The side tables of a store: files, tasks, commands. One arena holds all names, and rows are assembled only
//! when they are read, so a million rows need little memory.

use crate::{FileKind, Stacks, TaskOrigin, NONE, UNKNOWN};
use std::borrow::Cow;
use std::fmt::Write;

/// All results of the tracker except events.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    pub files: FileTable,
    /// The tasks, indexed by utid.
    pub tasks: Vec<TaskRow>,
    /// Time that each task spent in I/O calls, indexed by utid; empty if not known.
    pub task_io: Vec<TaskIo>,
    pub commands: CommandTable,
    /// The call stacks, as far as the source shows them.
    pub stacks: Stacks,
    /// Host names that [`TaskRow::host`] and [`FileEntry::host`] point at.
    pub hosts: Vec<String>,
    /// Signal names that [`TaskRow::exit_signal`] points at.
    pub signals: Vec<String>,
}

impl Tables {
    pub fn host(&self, index: u16) -> Option<&str> {
        self.hosts.get(index as usize).map(String::as_str)
    }
    pub fn signal(&self, index: u16) -> Option<&str> {
        self.signals.get(index as usize).map(String::as_str)
    }
}

/// Marks a missing host or signal.
pub const NO_INDEX: u16 = u16::MAX;

/// Byte strings stored one after the other. The id of a string is its index in the order of addition.
#[derive(Clone, Debug)]
pub struct ByteArena {
    bytes: Vec<u8>,
    /// The start of each string, and the end of the last one.
    bounds: Vec<u64>,
}

impl Default for ByteArena {
    fn default() -> Self {
        ByteArena { bytes: Vec::new(), bounds: vec![0] }
    }
}

impl ByteArena {
    pub fn push(&mut self, bytes: &[u8]) -> u32 {
        self.bytes.extend_from_slice(bytes);
        self.bounds.push(self.bytes.len() as u64);
        (self.bounds.len() - 2) as u32
    }
    /// Returns the string with this id; empty for an id that was never assigned.
    pub fn get(&self, id: u32) -> &[u8] {
        match self.bounds.get(id as usize + 1) {
            Some(&end) => &self.bytes[self.bounds[id as usize] as usize..end as usize],
            None => &[],
        }
    }
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of bytes of memory that the strings and their bounds use.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.bounds.len() * 8
    }
}

/// The properties of a file except its name.
#[derive(Clone, Copy, Debug)]
pub struct FileEntry {
    /// Last size of the file that a call showed, bytes; [`UNKNOWN`] if no call showed it.
    pub size: i64,
    /// Index into [`FileTable::patterns`]; [`NONE`] if the file's pattern is its own name.
    pub pattern: u32,
    /// Index into [`FileTable::mounts`]; [`NONE`] if the mount is not known.
    pub mount: u32,
    /// Index into [`Tables::hosts`]; [`NO_INDEX`] if there is one host only, or the host is not known.
    pub host: u16,
    pub kind: FileKind,
    /// Whether the name is relative, because the working directory is not known.
    pub relative: bool,
}

impl FileEntry {
    pub fn new(kind: FileKind) -> Self {
        FileEntry { size: UNKNOWN, pattern: NONE, mount: NONE, host: NO_INDEX, kind, relative: false }
    }
}

/// The mount that a file is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint {
    pub mount_point: String,
    pub fs_type: String,
}

/// The files, indexed by file id.
#[derive(Clone, Debug, Default)]
pub struct FileTable {
    /// The names as bytes, indexed by file id.
    pub names: ByteArena,
    pub entries: Vec<FileEntry>,
    pub patterns: Vec<String>,
    pub mounts: Vec<MountPoint>,
}

/// A row of the files table, ready to be stored.
#[derive(Clone, Debug)]
pub struct FileRow<'a> {
    /// The name as text. Each byte that is not UTF-8 appears as `\xNN`.
    pub name: Cow<'a, str>,
    /// The name as bytes; `None` if it equals `name`.
    pub name_raw: Option<&'a [u8]>,
    pub kind: FileKind,
    pub relative: bool,
    pub mount_point: Option<&'a str>,
    pub fs_type: Option<&'a str>,
    /// Size of the file, bytes; [`UNKNOWN`] if not known.
    pub size: i64,
    pub host: u16,
    pattern: Option<&'a str>,
}

impl FileRow<'_> {
    /// Returns the name up to the last `/`, which is `/` itself for names in the root; empty if the name has
    /// no `/`.
    pub fn folder(&self) -> &str {
        if !self.kind.has_path() {
            return "";
        }
        match self.name.rfind('/') {
            Some(0) => "/",
            Some(at) => &self.name[..at],
            None => "",
        }
    }

    /// Returns the text after the last dot of the last component; empty if there is none. A leading dot
    /// (`.bashrc`) does not start an ending.
    pub fn ending(&self) -> &str {
        if !self.kind.has_path() {
            return "";
        }
        let base = &self.name[self.name.rfind('/').map_or(0, |at| at + 1)..];
        match base.rfind('.') {
            Some(at) if at > 0 => &base[at + 1..],
            _ => "",
        }
    }

    /// Returns the name with its varying part replaced by `*`.
    pub fn pattern(&self) -> &str {
        self.pattern.unwrap_or(&self.name)
    }
}

impl FileTable {
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    pub fn push(&mut self, name: &[u8], entry: FileEntry) -> u32 {
        self.entries.push(entry);
        self.names.push(name)
    }
    /// Returns the row of `file`. Panics if `file` is not below `len()`.
    pub fn row(&self, file: u32) -> FileRow<'_> {
        let entry = self.entries[file as usize];
        let raw = self.names.get(file);
        let name = shown(raw);
        let name_raw = matches!(name, Cow::Owned(_)).then_some(raw);
        let mount = self.mounts.get(entry.mount as usize);
        FileRow {
            name,
            name_raw,
            kind: entry.kind,
            relative: entry.relative,
            mount_point: mount.map(|mount| mount.mount_point.as_str()),
            fs_type: mount.map(|mount| mount.fs_type.as_str()),
            size: entry.size,
            host: entry.host,
            pattern: self.patterns.get(entry.pattern as usize).map(String::as_str),
        }
    }
}

/// Returns bytes as text, with each byte that is not UTF-8 as `\xNN`.
pub fn shown(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Cow::Owned(text)
}

/// One task: a process or thread.
#[derive(Clone, Copy, Debug)]
pub struct TaskRow {
    pub upid: u32,
    /// Index into [`Tables::hosts`], or [`NO_INDEX`] if the host is not known.
    pub host: u16,
    /// Index into [`Tables::signals`], or [`NO_INDEX`] if no signal ended the task.
    pub exit_signal: u16,
    /// MPI rank; `None` if not known.
    pub rank: Option<i32>,
    pub pid: i32,
    pub tid: i32,
    pub generation: i32,
    /// utid of the creator; [`NONE`] if the creator is not known.
    pub parent_utid: u32,
    /// Thread id (tid) of the task that created this one.
    pub parent_pid: Option<i32>,
    pub how: TaskOrigin,
    pub core_dumped: bool,
    pub exit_code: Option<i32>,
    /// Start and end time, ns; [`UNKNOWN`] if not known.
    pub start: i64,
    pub end: i64,
    /// User and system CPU time, ns; [`UNKNOWN`] unless the run was recorded live.
    pub cpu_user: i64,
    pub cpu_system: i64,
}

/// Time in ns that a task spent in I/O calls, [`UNKNOWN`] if not known. The times are plain sums, because a
/// task makes one call at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskIo {
    /// Time in calls that did not wait for another process, the network or a person.
    pub io: i64,
    /// Time in calls that waited for another process, the network or a person.
    pub waiting: i64,
}

/// Time in ns during which at least one task of the run was in an I/O call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoTime {
    pub any: i64,
    /// Time during which at least one task was in an I/O call that did not wait for another process, the
    /// network or a person.
    pub file: i64,
}

/// The successful execs in order.
#[derive(Clone, Debug, Default)]
pub struct CommandTable {
    entries: Vec<CommandEntry>,
    texts: ByteArena,
}

#[derive(Clone, Copy, Debug)]
struct CommandEntry {
    ts: i64,
    utid: u32,
    path: u32,
    argv: u32,
}

/// A row of the commands table, ready to be stored.
#[derive(Clone, Debug)]
pub struct CommandRow<'a> {
    pub utid: u32,
    /// Time of the exec, ns; [`UNKNOWN`] if not known.
    pub ts: i64,
    pub path: Cow<'a, str>,
    /// Arguments of the command; empty if the source does not show them.
    pub argv: Vec<Cow<'a, str>>,
}

impl CommandTable {
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Returns the task and the path of each exec, in order.
    pub fn paths(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.entries.iter().map(|entry| (entry.utid, self.texts.get(entry.path)))
    }
    /// Stores a text for [`CommandTable::push`] and returns its id. Callers can use the same id for equal
    /// texts.
    pub fn add_text(&mut self, text: &[u8]) -> u32 {
        self.texts.push(text)
    }
    pub fn text(&self, id: u32) -> &[u8] {
        self.texts.get(id)
    }
    /// Adds an exec. `path` and `argv` (NUL-separated) are ids of texts; `argv` is [`NONE`] if not known.
    pub fn push(&mut self, utid: u32, ts: i64, path: u32, argv: u32) {
        self.entries.push(CommandEntry { ts, utid, path, argv });
    }
    /// Returns the row at `index`. Panics if `index` is not below `len()`.
    pub fn row(&self, index: usize) -> CommandRow<'_> {
        let entry = self.entries[index];
        let argv = match entry.argv {
            NONE => Vec::new(),
            id => self.texts.get(id).split(|&byte| byte == 0).map(shown).collect(),
        };
        CommandRow { utid: entry.utid, ts: entry.ts, path: shown(self.texts.get(entry.path)), argv }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_utf8_are_escaped_and_kept() {
        let mut files = FileTable::default();
        files.push(b"/d/a\xffb.tar.gz", FileEntry::new(FileKind::File));
        files.push(b"/.bashrc", FileEntry::new(FileKind::File));
        let row = files.row(0);
        assert_eq!(row.name, "/d/a\\xffb.tar.gz");
        assert_eq!(row.name_raw, Some(&b"/d/a\xffb.tar.gz"[..]));
        assert_eq!((row.folder(), row.ending(), row.pattern()), ("/d", "gz", "/d/a\\xffb.tar.gz"));
        let row = files.row(1);
        assert_eq!((row.folder(), row.ending(), row.name_raw), ("/", "", None));
    }

    #[test]
    fn command_lines_are_split_into_arguments() {
        let mut commands = CommandTable::default();
        let path = commands.add_text(b"/bin/echo");
        let argv = commands.add_text(b"echo\0\0x");
        commands.push(3, 7, path, argv);
        commands.push(4, 8, path, NONE);
        assert_eq!(commands.row(0).argv, ["echo", "", "x"]);
        assert!(commands.row(1).argv.is_empty());
    }
}
