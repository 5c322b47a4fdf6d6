//! Opens a spool's folder: locks it for one agent, reads its id, and finds the files of the previous agent.

use super::segment::{read, Frames, Segment};
use iodock_samples::batch::SpoolId;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Largest size of a file in bytes. iodock does not write longer ones.
const LONGEST_SEGMENT: u64 = 256 << 20;

#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    pub id: SpoolId,
    /// Files of frames, the oldest first.
    pub segments: VecDeque<Segment>,
    pub state: Saved,
    /// Number of damaged or cut frames that no earlier agent has counted.
    pub damaged: u64,
    /// Lock on the folder, held until the agent ends.
    pub lock: File,
}

/// Saved numbers that frames do not contain. If they are lost or outdated, the agent sends some batches
/// twice, and its count of lost batches is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    pub kept: u64,
    pub lost: u64,
    pub next: u64,
    /// For each segment, by the number of its first frame: how many of its damaged places `lost` includes
    /// already.
    pub damaged: BTreeMap<u64, u64>,
}

impl Folder {
    /// Opens the folder, and creates it if necessary.
    ///
    /// # Errors
    /// Fails if the folder cannot be created or written, if other users may write to it, or if another agent
    /// uses it.
    pub fn open(path: &Path) -> io::Result<Folder> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if fs::metadata(path)?.mode() & 0o022 != 0 {
            return Err(io::Error::other("others may write to it"));
        }
        let lock = file(&path.join("lock"), OpenOptions::new().create(true).truncate(false))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other("another agent uses it"),
            TryLockError::Error(error) => error,
        })?;
        let id = id(path)?;
        let state = Saved::read(path);
        let (segments, damaged) = segments(path, &state)?;
        Ok(Folder { path: path.into(), id, segments, state, damaged, lock })
    }

    /// Returns the number of the next batch, which was never used before.
    pub fn next(&self) -> u64 {
        let used = self.segments.iter().map(|segment| segment.last.max(segment.first.saturating_sub(1)));
        let used = used.max().unwrap_or(0).max(self.state.kept);
        (used + 1).max(self.state.next)
    }
}

fn file(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    how.read(true).write(true).mode(0o600).open(path)
}

/// Reads the id, or creates it the first time. It identifies the sender to the collector.
fn id(folder: &Path) -> io::Result<SpoolId> {
    let path = folder.join("id");
    let known = fs::read(&path).ok().and_then(|text| parse_id(&text));
    if let Some(id) = known {
        return Ok(id);
    }
    let mut id = SpoolId::default();
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    let text: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    replace(&path, format!("{text}\n").as_bytes())?;
    File::open(folder)?.sync_all()?;
    Ok(id)
}

fn parse_id(text: &[u8]) -> Option<SpoolId> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(u128::to_be_bytes)
}

/// Replaces a file in one step and syncs it to the disk.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let written = file(&new, OpenOptions::new().create(true).truncate(true))
        .and_then(|mut file| file.write_all(text).and_then(|()| file.sync_data()));
    written.and_then(|()| fs::rename(&new, path))
}

fn segments(folder: &Path, saved: &Saved) -> io::Result<(VecDeque<Segment>, u64)> {
    let (mut found, mut damaged) = (Vec::new(), 0);
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(first) = name.to_str().and_then(Segment::named) else { continue };
        let (segment, torn) = scan(folder, first)?;
        // A damaged place stays in its file until the collector has stored the whole file.
        let counted = saved.damaged.get(&first).copied().unwrap_or(0);
        // If the collector has the last frame of the file, it also has all earlier ones, so nothing is lost.
        let is_kept = segment.frames > 0 && segment.last <= saved.kept;
        damaged += if is_kept { 0 } else { segment.damaged.saturating_sub(counted) };
        damaged += u64::from(torn);
        found.push(segment);
    }
    found.sort_by_key(|segment: &Segment| segment.first);
    // Segments without frames are kept, too, because numbering continues at the number in their name.
    Ok((found.into(), damaged))
}

/// Reads a segment. Also returns whether the file ended within a frame.
fn scan(folder: &Path, first: u64) -> io::Result<(Segment, bool)> {
    let mut segment = Segment::empty(first);
    let path = segment.path(folder);
    segment.bytes = fs::metadata(&path)?.len().min(LONGEST_SEGMENT);
    let bytes = read(&path, 0, segment.bytes)?;
    let mut frames = Frames::of(&bytes);
    for found in frames.by_ref() {
        segment.frames += 1;
        segment.last = segment.last.max(found.sequence);
    }
    let torn = frames.torn;
    segment.damaged = frames.damaged;
    if let Some(end) = torn {
        // The agent was killed while it wrote this frame, so the frame is cut off.
        segment.bytes = end as u64;
        file(&path, &mut OpenOptions::new())?.set_len(segment.bytes)?;
    }
    Ok((segment, torn.is_some()))
}

impl Saved {
    fn read(folder: &Path) -> Saved {
        let text = fs::read_to_string(folder.join("state")).unwrap_or_default();
        let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
        let mut number = || numbers.next();
        let mut saved = Saved {
            kept: number().unwrap_or_default(),
            lost: number().unwrap_or_default(),
            next: number().unwrap_or_default(),
            ..Saved::default()
        };
        while let (Some(first), Some(damaged)) = (number(), number()) {
            saved.damaged.insert(first, damaged);
        }
        saved
    }

    /// Writes the saved state. A write error is ignored, because most of it is also known from the frames.
    pub fn write(&self, folder: &Path) {
        let damaged = self.damaged.iter().map(|(first, damaged)| format!(" {first} {damaged}"));
        let damaged: String = damaged.collect();
        let text = format!("{} {} {}{damaged}\n", self.kept, self.lost, self.next);
        let _ = replace(&folder.join("state"), text.as_bytes());
    }
}

/// Saves a frame that the collector refused, for later examination. The number of such files is limited.
pub fn set_aside(folder: &Path, sequence: u64, frame: &[u8]) -> io::Result<()> {
    const MOST: usize = 16;
    let mut others: Vec<PathBuf> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"refused-")))
        .collect();
    others.sort();
    for old in others.iter().take((others.len() + 1).saturating_sub(MOST)) {
        fs::remove_file(old)?;
    }
    let path = folder.join(format!("refused-{sequence:020}.frame"));
    file(&path, OpenOptions::new().create(true).truncate(true))?.write_all(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iodock_samples::batch::Batch;
    use iodock_samples::frame;

    #[test]
    fn damage_that_was_already_counted_is_not_counted_again() {
        let folder = std::env::temp_dir().join(format!("iodock-spool-folder-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let encode = |sequence| frame::encode(&Batch { sequence, host: "h".into(), ..Batch::default() });
        let mut bytes: Vec<u8> = (1..4).filter_map(encode).flatten().collect();
        let second = bytes.len() / 3;
        bytes[second + 40..second + 44].fill(0xff);
        fs::write(Segment::empty(1).path(&folder), bytes).expect("written");
        let found = |state: &str| {
            fs::write(folder.join("state"), state).expect("written");
            let found = Folder::open(&folder).expect("a folder");
            (found.damaged, found.state.lost, found.next())
        };
        assert_eq!(found("0 0 4\n"), (1, 0, 4));
        assert_eq!(found(""), (1, 0, 4));
        assert_eq!(found("0 1 4 1 1\n"), (0, 1, 4));
        assert_eq!(found("0 9 4 7 1\n"), (1, 9, 4));
        assert_eq!(found("3 0 4\n"), (0, 0, 4));
        let saved = Saved { kept: 1, lost: 2, next: 3, damaged: [(1, 1), (7, 2)].into() };
        saved.write(&folder);
        assert_eq!(Saved::read(&folder), saved);
        fs::remove_dir_all(folder).expect("removed");
    }
}
