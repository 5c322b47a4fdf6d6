//! /proc/self/mountinfo (proc_pid_mountinfo(5)): which device number a mount point has.
//!
//! Mounts of one device number share their counters: bind mounts, and exports of one server that the kernel
//! keeps as one. Only this number tells it: a device's name does not, and two readings of one counter differ.

use crate::numbers::{whole, words};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Major and minor number.
pub type Device = (u64, u64);

/// `36 35 0:42 / /mnt rw,noatime shared:1 - nfs4 server:/x rw`: device and mount point, escaped as in mountstats.
pub fn line(text: &[u8]) -> Option<(Device, &[u8])> {
    let mut fields = words(text).skip(2);
    let device = fields.next()?;
    let colon = device.iter().position(|&byte| byte == b':')?;
    let device = (whole(&device[..colon])?, whole(&device[colon + 1..])?);
    Some((device, fields.nth(1)?))
}

/// What is mounted, escaped: it follows the type behind ` - `.
pub fn source(text: &[u8]) -> Option<&[u8]> {
    let mut fields = words(text).skip(6).skip_while(|field| *field != b"-");
    fields.nth(2)
}

/// Whether a mount's counters are shown for the first time. Asked in the order of mountstats, which is that of
/// mountinfo: of mounts on top of each other the first line is the first's.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    by_mount_point: BTreeMap<Vec<u8>, VecDeque<Device>>,
    met: BTreeSet<Device>,
}

/// See [`Devices::meet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    First,
    /// Its counters were shown at another mount point.
    Again,
    /// mountinfo does not have this mount.
    Unknown,
}

impl Devices {
    /// All of the file.
    pub fn read(mountinfo: &[u8]) -> Self {
        let mut devices = Devices::default();
        mountinfo.split(|&byte| byte == b'\n').for_each(|line| devices.add(line));
        devices
    }

    /// One line of it; others are passed over, as each of them is a mount that is not known then.
    pub fn add(&mut self, text: &[u8]) {
        if let Some((device, point)) = line(text) {
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
    fn what_is_mounted() {
        let fuse =
            b"45 27 0:39 / /mnt rw,relatime shared:1 master:2 - fuse mfs\\04310.0.0.1:9421 rw,user_id=0";
        assert_eq!(source(fuse), Some(&b"mfs\\04310.0.0.1:9421"[..]));
        assert_eq!(source(b"45 27 0:39 / /mnt rw - fuse"), None);
        assert_eq!(source(b"45 27 0:39 / /mnt rw fuse mfs rw"), None);
    }

    #[test]
    fn each_device_is_met_once() {
        let text = b"36 35 0:42 / /mnt\\040a rw - nfs4 srv:/x rw\n37 35 0:42 / /bind rw - nfs4 srv:/x rw\n\
            junk\n38 35 0:43 / /mnt\\040a rw shared:1 - nfs4 srv:/x rw\n";
        let mut devices = Devices::read(text);
        assert_eq!(devices.meet(b"/mnt\\040a"), Meeting::First);
        assert_eq!(devices.meet(b"/bind"), Meeting::Again);
        assert_eq!(devices.meet(b"/mnt\\040a"), Meeting::First, "mounted over the other");
        assert_eq!(devices.meet(b"/mnt\\040a"), Meeting::Unknown);
    }
}
