//! Parses /proc/self/mountinfo (proc_pid_mountinfo(5)): mounts and their device numbers.
//!
//! Mounts with the same device number share their counters. Examples are bind mounts, and exports of one
//! server that the kernel treats as one. Only the device number shows this. Device names of such mounts may
//! differ, and so do two readings of one counter.

use crate::numbers::{whole, words};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Major and minor device number.
pub type Device = (u64, u64);

/// One mount's line. Names are escaped as in the kernel's file (see [`unescaped`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Device number in the form `MAJOR:MINOR`.
    pub device: &'a [u8],
    pub point: &'a [u8],
    pub options: &'a [u8],
    pub fs_type: &'a [u8],
    /// The mounted device, or the server and its export.
    pub source: &'a [u8],
    /// Options of the file system, in addition to those of the mount. Lines of old kernels lack them.
    pub super_options: &'a [u8],
}

/// Parses a line such as `36 35 0:42 / /mnt rw,noatime shared:1 - nfs4 server:/x rw`. Returns `None` if it
/// has another form.
pub fn line(text: &[u8]) -> Option<Mount<'_>> {
    let dash = text.windows(3).position(|part| part == b" - ")?;
    let (mut own, mut of_type) = (words(&text[..dash]).skip(2), words(&text[dash + 3..]));
    Some(Mount {
        device: own.next()?,
        point: own.nth(1)?,
        options: own.next()?,
        fs_type: of_type.next()?,
        source: of_type.next()?,
        super_options: of_type.next().unwrap_or_default(),
    })
}

/// Decodes the kernel's escapes in a name, such as `\040` for a blank.
pub fn unescaped(name: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(name.len()), name);
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| byte == b'\\');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        out.push(code.unwrap_or(byte));
        rest = &after[if code.is_some() { 3 } else { 0 }..];
    }
    out
}

/// Parses the `MAJOR:MINOR` of a [`Mount`].
pub fn number(device: &[u8]) -> Option<Device> {
    let colon = device.iter().position(|&byte| byte == b':')?;
    Some((whole(&device[..colon])?, whole(&device[colon + 1..])?))
}

/// Detects mounts whose counters already appeared at another mount point. Call [`Devices::meet`] in the order
/// of mountstats, which is also the order of mountinfo: if several mounts cover one mount point, the first
/// line belongs to the first mount.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    by_mount_point: BTreeMap<Vec<u8>, VecDeque<Device>>,
    met: BTreeSet<Device>,
}

/// Result of [`Devices::meet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    First,
    /// The counters of this mount already appeared at another mount point.
    Again,
    /// The mountinfo file does not contain the mount.
    Unknown,
}

impl Devices {
    /// Reads a complete mountinfo file.
    pub fn read(mountinfo: &[u8]) -> Self {
        let mut devices = Devices::default();
        mountinfo.split(|&byte| byte == b'\n').for_each(|line| devices.add(line));
        devices
    }

    /// Adds the mount of one line. Lines in another form are ignored, and [`Devices::meet`] returns `Unknown`
    /// for their mounts.
    pub fn add(&mut self, text: &[u8]) {
        let known = line(text).and_then(|mount| Some((number(mount.device)?, mount.point)));
        if let Some((device, point)) = known {
            self.by_mount_point.entry(point.to_vec()).or_default().push_back(device);
        }
    }

    pub fn meet(&mut self, mount_point: &[u8]) -> Meeting {
        let devices = self.by_mount_point.get_mut(mount_point);
        match devices.and_then(VecDeque::pop_front) {
            Some(device) if self.met.insert(device) => Meeting::First,
            Some(_) => Meeting::Again,
            None => Meeting::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mountinfo_line_is_read_and_its_escapes_resolved() {
        let text = b"36 35 98:0 / /mnt\\040a rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue";
        let mount = line(text).expect("a mount");
        assert_eq!((mount.device, mount.fs_type), (&b"98:0"[..], &b"ext4"[..]));
        assert_eq!((mount.source, mount.options), (&b"/dev/sda1"[..], &b"rw,noatime"[..]));
        assert_eq!(mount.super_options, b"rw,errors=continue");
        assert_eq!(unescaped(mount.point), b"/mnt a");
        assert_eq!(unescaped(br"/a\040b\134\9"), br"/a b\\9");
        let fuse = b"45 27 0:39 / /mnt rw shared:1 master:2 - fuse mfs\\04310.0.0.1:9421 rw,user_id=0";
        assert_eq!(line(fuse).map(|mount| unescaped(mount.source)), Some(b"mfs#10.0.0.1:9421".to_vec()));
        for cut in [&b""[..], b"36 35 98:0 / /mnt rw", b"36 35 98:0 / /mnt rw - ext4", b"36 35 - a b c"] {
            assert_eq!(line(cut), None);
        }
    }

    #[test]
    fn each_device_is_listed_once() {
        let text = b"36 35 0:42 / /mnt\\040a rw - nfs4 srv:/x rw\n37 35 0:42 / /bind rw - nfs4 srv:/x rw\n\
            junk\n38 35 0:43 / /mnt\\040a rw shared:1 - nfs4 srv:/x rw\n";
        let mut devices = Devices::read(text);
        assert_eq!(devices.meet(b"/mnt\\040a"), Meeting::First);
        assert_eq!(devices.meet(b"/bind"), Meeting::Again);
        assert_eq!(devices.meet(b"/mnt\\040a"), Meeting::First, "mounted over the other");
        assert_eq!(devices.meet(b"/mnt\\040a"), Meeting::Unknown);
    }
}
