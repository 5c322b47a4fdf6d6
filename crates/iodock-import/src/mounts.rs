//! Finds the mount of each file.

use iodock_event::{FileTable, Mount, MountPoint, NONE};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashMap};

/// Fills in the mount of each file: the one with the longest mount point above the file's name. Ignores a
/// mount point that has different file systems on different hosts.
pub fn place_files(files: &mut FileTable, mounts: &[(String, Mount)]) {
    // On the same host, the last mount at a point hides earlier ones.
    let mut types: BTreeMap<&str, HashMap<&str, &str>> = BTreeMap::new();
    for (host, mount) in mounts {
        types.entry(&mount.mount_point).or_default().insert(host, &mount.fs_type);
    }
    let mut points: FxHashMap<&[u8], Option<u32>> = FxHashMap::default();
    for (point, hosts) in types {
        let mut types = hosts.values();
        let first = types.next().copied().unwrap_or_default();
        let agreed = types.all(|other| *other == first).then(|| {
            files.mounts.push(MountPoint { mount_point: point.into(), fs_type: first.into() });
            (files.mounts.len() - 1) as u32
        });
        points.insert(point.as_bytes(), agreed);
    }
    for (file, entry) in files.entries.iter_mut().enumerate() {
        let name = files.names.get(file as u32);
        if entry.kind.has_path() && !entry.relative && name.first() == Some(&b'/') {
            entry.mount = mount_above(&points, name).unwrap_or(NONE);
        }
    }
}

fn mount_above(points: &FxHashMap<&[u8], Option<u32>>, name: &[u8]) -> Option<u32> {
    let mut above = name;
    loop {
        if let Some(&mount) = points.get(above) {
            return mount;
        }
        match above.iter().rposition(|&byte| byte == b'/') {
            Some(0) if above.len() > 1 => above = b"/",
            Some(0) | None => return None,
            Some(at) => above = &above[..at],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iodock_event::{FileEntry, FileKind};

    fn mount(host: &str, mount_point: &str, fs_type: &str) -> (String, Mount) {
        let (mount_point, fs_type) = (mount_point.into(), fs_type.into());
        (host.into(), Mount { mount_point, fs_type, ..Mount::default() })
    }

    #[test]
    fn the_longest_matching_mount_point_is_used() {
        let mut files = FileTable::default();
        for name in ["/a", "/scratch/x/y", "/scratchpad", "/tmp/z", "pipe"] {
            let kind = if name == "pipe" { FileKind::Pipe } else { FileKind::File };
            files.push(name.as_bytes(), FileEntry::new(kind));
        }
        let mounts = [
            mount("h1", "/", "ext4"),
            mount("h1", "/scratch", "autofs"),
            mount("h1", "/scratch", "lustre"),
            mount("h2", "/scratch", "lustre"),
            mount("h1", "/tmp", "xfs"),
            mount("h2", "/tmp", "tmpfs"),
        ];
        place_files(&mut files, &mounts);
        let found: Vec<_> = (0..5).map(|file| files.row(file).fs_type.map(str::to_string)).collect();
        let text = |name: &str| Some(name.to_string());
        assert_eq!(found, [text("ext4"), text("lustre"), text("ext4"), None, None]);
    }
}
