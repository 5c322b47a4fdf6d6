//! Reads the state of the kernel's RAID arrays: /proc/mdstat (md(4); drivers/md/md.c, md_seq_show).

use super::Reading;
use crate::events::{Seen, Sight};
use crate::lines::Faults;
use crate::sample::{printable, Entry, Names, Quantity};
use iodock_counters::numbers::{whole, words};

const SOURCE: &str = "md";

/// State of one array.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Array {
    pub name: String,
    pub is_active: bool,
    pub failed: Vec<String>,
    pub spare: u64,
    /// Number of members and of working members, such as `[10/9]`. `None` for arrays without redundancy.
    pub members: Option<(u64, u64)>,
    /// Text that shows which members work, such as `[UUU_UUUUUU]`.
    pub map: String,
    pub sync: Option<Sync>,
}

/// A resynchronisation that is running or waiting for another one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// Kind of operation: `recovery`, `resync`, `reshape`, `check`.
    pub what: String,
    /// Progress as text: `12.6 %`, or `delayed`.
    pub progress: String,
    /// Number of blocks of 1 KiB that are done, and total number.
    pub blocks: Option<(u64, u64)>,
    pub speed_kib: Option<u64>,
    /// Remaining time as the kernel prints it, such as `127.5min`.
    pub finish: String,
}

pub fn read(reading: &Reading) {
    let mut arrays = Vec::new();
    let faults = reading.lines(&reading.root().join("proc/mdstat"), |line, faults| {
        take(line, &mut arrays, faults);
    });
    let Some(faults) = faults else { return };
    reading.faults(SOURCE, faults);
    let mut names = Names::default();
    for array in &arrays {
        if let Some(entry) = entry(array, &mut names) {
            reading.entries(SOURCE, ("", &array.name), &names, [&entry]);
        }
        seen(array).into_iter().for_each(|seen| reading.see(seen));
    }
}

/// Parses all arrays of a file. Tests and tools use it.
pub fn arrays(content: &[u8]) -> (Vec<Array>, Faults) {
    let (mut arrays, mut faults) = (Vec::new(), Faults::default());
    // Reading from memory can't fail.
    let _ = crate::lines::each_line(&mut &content[..], &mut faults, |line, faults| {
        take(line, &mut arrays, faults)
    });
    (arrays, faults)
}

fn take(line: &[u8], arrays: &mut Vec<Array>, faults: &mut Faults) {
    if line.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
        if line.starts_with(b"Personalities")
            || line.starts_with(b"unused devices")
            || line.starts_with(b"read_ahead")
        {
            return;
        }
        match head(line) {
            Some(array) => arrays.push(array),
            None => faults.unreadable(),
        }
        return;
    }
    let line = line.trim_ascii();
    let Some(array) = arrays.last_mut() else { return };
    // This line looks like `136448 blocks super 1.2 [2/2] [UU]`.
    if words(line).nth(1) == Some(b"blocks") {
        members(line, array);
    } else if let Some(sync) = sync(line) {
        array.sync = Some(sync);
    }
}

/// Parses a line such as `md2 : active (read-only) raid5 sdl1[9](F) sdk1[8]`.
fn head(line: &[u8]) -> Option<Array> {
    let mut parts = words(line);
    let (name, colon, state) = (parts.next()?, parts.next()?, parts.next()?);
    if colon != b":" || !matches!(state, b"active" | b"inactive" | b"broken") {
        return None;
    }
    let mut array = Array { name: printable(name), is_active: state == b"active", ..Array::default() };
    for member in parts.filter(|part| part.contains(&b'[')) {
        let end = memchr::memchr(b'[', member)?;
        let has = |mark: &[u8]| member[end..].windows(mark.len()).any(|at| at == mark);
        if has(b"(F)") {
            array.failed.push(printable(&member[..end]));
        }
        array.spare += u64::from(has(b"(S)"));
    }
    array.failed.sort();
    Some(array)
}

/// Parses the part `[10/9] [UUU_UUUUUU]` of a line.
fn members(line: &[u8], array: &mut Array) {
    let inside =
        |word: &'_ [u8]| word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]")).map(<[u8]>::to_vec);
    for word in words(line).filter_map(inside) {
        let slash = memchr::memchr(b'/', &word);
        let numbers = slash.and_then(|at| Some((whole(&word[..at])?, whole(&word[at + 1..])?)));
        if let Some((all, used)) = numbers {
            array.members = Some((all, used));
        } else if !word.is_empty() && word.iter().all(|byte| b"U_".contains(byte)) {
            array.map = printable(&word);
        }
    }
}

/// Parses a line such as `[=>....]  recovery =  12.6% (37043392/292945152) finish=127.5min speed=33440K/sec`
/// or `resync=DELAYED`.
fn sync(line: &[u8]) -> Option<Sync> {
    let begin = ["recovery", "resync", "reshape", "check", "repair"]
        .into_iter()
        .find_map(|what| memchr::memmem::find(line, what.as_bytes()).map(|at| (what, at + what.len())));
    let (what, at) = begin?;
    let rest = line[at..].trim_ascii_start().strip_prefix(b"=")?;
    let progress = words(rest).next()?;
    let mut sync = Sync { what: what.into(), ..Sync::default() };
    sync.progress = match progress.strip_suffix(b"%") {
        Some(share) => format!("{} %", printable(share)),
        None => printable(progress).to_ascii_lowercase(),
    };
    for word in words(rest).skip(1) {
        if let Some(finish) = word.strip_prefix(b"finish=") {
            sync.finish = printable(finish);
        } else if let Some(speed) = word.strip_prefix(b"speed=") {
            sync.speed_kib = speed.strip_suffix(b"K/sec").and_then(whole);
        } else if let Some(blocks) = word.strip_prefix(b"(").and_then(|word| word.strip_suffix(b")")) {
            let slash = memchr::memchr(b'/', blocks)?;
            sync.blocks = Some((whole(&blocks[..slash])?, whole(&blocks[slash + 1..])?));
        }
    }
    Some(sync)
}

fn entry(array: &Array, names: &mut Names) -> Option<Entry> {
    let mut entry = Entry::default();
    let mut level =
        |name: &str, value: u64| entry.push(names.intern(name.as_bytes())?, Quantity::Level, value);
    level("active", u64::from(array.is_active))?;
    if let Some((all, used)) = array.members {
        level("members", all)?;
        level("members_in_use", used)?;
    }
    level("members_failed", array.failed.len() as u64)?;
    level("members_spare", array.spare)?;
    level("syncing", u64::from(array.sync.is_some()))?;
    if let Some((done, all)) = array.sync.as_ref().and_then(|sync| sync.blocks) {
        level("sync_done_kib", done)?;
        level("sync_all_kib", all)?;
    }
    if let Some(speed) = array.sync.as_ref().and_then(|sync| sync.speed_kib) {
        level("sync_kib_per_second", speed)?;
    }
    Some(entry)
}

fn seen(array: &Array) -> [Seen; 2] {
    let of = |aspect, sight| Seen {
        source: SOURCE,
        file_system: String::new(),
        target: array.name.clone(),
        aspect,
        sight,
    };
    [of("members", health(array)), of("sync", activity(array))]
}

fn health(array: &Array) -> Sight {
    let (kind, text) = match array.members {
        _ if !array.is_active => ("array-inactive", "it is not running".to_owned()),
        Some((all, used)) if used < all => {
            ("array-degraded", format!("{used} of {all} members in use [{}]{}", array.map, failed(array)))
        }
        Some((all, _)) => ("array-whole", format!("all {all} members are in use{}", failed(array))),
        None => ("array-whole", "it is running".to_owned()),
    };
    Sight::State { level: text.clone(), kind, text, is_told_at_first: kind != "array-whole" }
}

fn failed(array: &Array) -> String {
    if array.failed.is_empty() {
        String::new()
    } else {
        format!("; failed: {}", array.failed.join(", "))
    }
}

/// Returns the running operation as a state. It excludes the progress, whose changes are not events.
fn activity(array: &Array) -> Sight {
    match &array.sync {
        Some(sync) => {
            let left = if sync.finish.is_empty() { String::new() } else { format!(", {} left", sync.finish) };
            let text = format!("{}: {}{left}", sync.what, sync.progress);
            Sight::State { level: sync.what.clone(), kind: "rebuild-begun", text, is_told_at_first: true }
        }
        None => Sight::State {
            level: String::new(),
            kind: "rebuild-ended",
            text: "nothing is resynchronised any more".into(),
            is_told_at_first: false,
        },
    }
}
