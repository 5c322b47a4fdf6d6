//! Matches files of the page cache to file ids. The page cache identifies files by device and inode, not by
//! name.

use crate::names::SHARED;
use crate::paths;
use crate::tasks::key;
use crate::Tracker;
use iodock_event::{Batch, FileIdentity, FileKind, Identity, NONE, UNKNOWN};
use rustc_hash::{FxHashMap, FxHashSet};

/// Files by their identity in the page cache.
#[derive(Debug, Default)]
pub struct Identities {
    /// File ids by space and identity. The kernel can reuse an inode for another file, so each entry has the
    /// time from which it holds.
    files: FxHashMap<(u16, FileIdentity), Vec<(i64, u32)>>,
    /// Files whose name is unknown.
    unnamed: FxHashSet<u32>,
}

impl Identities {
    /// Returns the file that had the identity at `time`; the earliest known file if `time` precedes all
    /// entries.
    pub fn at(&self, space: u16, file: FileIdentity, time: i64) -> Option<u32> {
        let told = self.files.get(&(space, file))?;
        let before = told.iter().filter(|(since, _)| *since <= time);
        before.max_by_key(|(since, _)| *since).or(told.first()).map(|&(_, file)| file)
    }

    pub fn is_unnamed(&self, file: u32) -> bool {
        self.unnamed.contains(&file)
    }

    fn add(&mut self, space: u16, identity: &Identity, file: u32) {
        let told = self.files.entry((space, identity.file)).or_default();
        if told.last().is_none_or(|&(_, known)| known != file) {
            told.push((identity.time, file));
        }
    }
}

impl Tracker {
    pub(crate) fn identity(&mut self, space: u16, batch: &Batch, identity: &Identity) {
        match self.file_told(space, batch, identity) {
            NONE => drop(self.identities.files.entry((space, identity.file)).or_default()),
            file => self.identities.add(space, identity, file),
        }
    }

    /// Finds the file by the task's descriptor or, if it has none, by name.
    fn file_told(&mut self, space: u16, batch: &Batch, identity: &Identity) -> u32 {
        let Some(live) = self.tasks.find(key(space, identity.tid)) else {
            return self.file_named(None, batch, identity);
        };
        let table = self.tasks.live[live].table;
        if let Some(slot) = (identity.fd >= 0).then(|| self.tasks.tables[table].get(identity.fd)).flatten() {
            return self.descriptions.get(slot).file;
        }
        let directory = self.tasks.places[self.tasks.live[live].place].directory;
        self.file_named((directory != NONE).then_some(directory), batch, identity)
    }

    fn file_named(&mut self, directory: Option<u32>, batch: &Batch, identity: &Identity) -> u32 {
        let name = batch.text(identity.name);
        if name.is_empty() {
            return NONE;
        }
        let base = directory.map(|directory| self.names.name(directory));
        paths::resolve(&mut self.scratch, base, None, name);
        let relative = self.scratch.first() != Some(&b'/');
        self.names.file(SHARED, FileKind::File, relative, &self.scratch)
    }

    /// Returns all identities when tracking is complete. A file without a name gets a name that shows its
    /// device and inode.
    pub fn take_identities(&mut self) -> Identities {
        let mut found = std::mem::take(&mut self.identities);
        let mut without: Vec<(u16, FileIdentity)> =
            found.files.iter().filter(|(_, told)| told.is_empty()).map(|(&which, _)| which).collect();
        without.sort_unstable();
        for (space, identity) in without {
            let FileIdentity { inode, .. } = identity;
            let name = format!("inode {inode} of device {}:{}", identity.major(), identity.minor());
            let host = self.tasks.spaces[usize::from(space)].host;
            let file = self.names.file(host, FileKind::Unknown, false, name.as_bytes());
            found.unnamed.insert(file);
            found.files.insert((space, identity), vec![(UNKNOWN, file)]);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SpaceOptions, TrackerOptions};
    use iodock_event::{EventColumns, Record};

    fn tracked(told: &[(i64, FileIdentity, &str)]) -> (Identities, Vec<String>) {
        let space = SpaceOptions { working_directory: Some(b"/work".to_vec()), ..SpaceOptions::default() };
        let mut tracker = Tracker::new(TrackerOptions { spaces: vec![space] });
        let mut batch = Batch::default();
        for &(time, file, name) in told {
            let mut identity = Identity::of(file, 7, time);
            if !name.is_empty() {
                identity.name = batch.push_text(name.as_bytes());
            }
            batch.records.push(Record::Identity(identity));
        }
        tracker.track(0, &batch, &mut EventColumns::default());
        let found = tracker.take_identities();
        let files = tracker.finish().tables.files;
        let names = (0..files.len() as u32).map(|file| files.row(file).name.into_owned()).collect();
        (found, names)
    }

    #[test]
    fn a_reused_inode_is_another_file() {
        let file = FileIdentity::new(8, 1, 42);
        let (found, names) = tracked(&[(100, file, "/a"), (200, file, "/b"), (300, file, "/b")]);
        let at = |time| found.at(0, file, time).map(|file| names[file as usize].as_str());
        assert_eq!([at(50), at(150), at(200), at(400)], ["/a", "/a", "/b", "/b"].map(Some));
        assert_eq!(found.at(1, file, 100), None);
    }

    #[test]
    fn an_unnamed_file_gets_a_name_from_known_facts() {
        let (first, second) = (FileIdentity::new(259, 1, 42), FileIdentity::new(259, 1, 43));
        let (found, names) = tracked(&[(100, first, ""), (100, second, ""), (150, second, "/late")]);
        let of = |file| found.at(0, file, 120).expect("told");
        assert_eq!(names[of(first) as usize], "inode 42 of device 259:1");
        assert_eq!(names[of(second) as usize], "/late");
        assert!(found.is_unnamed(of(first)) && !found.is_unnamed(of(second)));
    }
}
