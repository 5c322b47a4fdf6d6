//! Finds the device under a file system. It determines whether a read that bypasses the page cache also
//! bypasses all other memory of this machine.
//!
//! The sources are proc_pid_mountinfo(5), and Documentation/ABI in Linux for /sys/dev/block, `slaves`,
//! `loop/backing_file`, `loop/dio` and NVMe's `transport`.

use iodock_counters::mountinfo;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Under {
    /// Hardware, or the servers of a network file system.
    #[default]
    Devices,
    /// A device whose data are in this machine's memory, and the reason.
    Memory(String),
    /// A device that may keep data in this machine's memory, and the reason.
    Perhaps(String),
}

/// Files and folders to examine. Tests use other ones.
pub struct Roots {
    pub sys: PathBuf,
    pub mountinfo: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { sys: "/sys".into(), mountinfo: "/proc/self/mountinfo".into() }
    }
}

const MOST_LEVELS: u32 = 16;
const IN_MEMORY: [&str; 3] = ["zram", "ram", "nullb"];
/// Names of devices that a process or a server provides. The server may be this machine.
const SERVED: [&str; 6] = ["nbd", "rbd", "drbd", "ublkb", "etherd", "zd"];
const OVERLAYS: [&str; 4] = ["overlay", "aufs", "ecryptfs", "unionfs"];

struct Mount {
    point: PathBuf,
    device: String,
    fs_type: String,
    source: String,
    options: String,
}

impl Roots {
    /// Returns the device under the file system of `path`.
    pub fn under(&self, path: &Path) -> Under {
        self.under_file(path, 0)
    }

    fn under_file(&self, path: &Path, level: u32) -> Under {
        let Ok(status) = fs::metadata(path) else {
            return Under::Perhaps(format!("{} can't be looked at", path.display()));
        };
        let (major, minor) = (libc::major(status.dev()), libc::minor(status.dev()));
        let device = format!("{major}:{minor}");
        if let Some(mount) = self.mount_of(path, &device) {
            if let Some(found) = of_type(&mount) {
                return found;
            }
            // Btrfs and others have their own device numbers. For them the source of the mount is the device.
            if major == 0 {
                let source = fs::metadata(&mount.source).ok().filter(|one| one.file_type().is_block_device());
                return source.map_or(Under::Devices, |one| {
                    self.under_device(
                        &format!("{}:{}", libc::major(one.rdev()), libc::minor(one.rdev())),
                        level,
                    )
                });
            }
        }
        if major == 0 {
            return Under::Devices;
        }
        self.under_device(&device, level)
    }

    fn mount_of(&self, path: &Path, device: &str) -> Option<Mount> {
        let path = path.canonicalize().ok()?;
        let text = fs::read(&self.mountinfo).ok()?;
        let mounts: Vec<Mount> = text
            .split(|&byte| byte == b'\n')
            .filter_map(mount_in)
            .filter(|mount| path.starts_with(&mount.point))
            .collect();
        let of_device = |mount: &&Mount| mount.device == device;
        let depth = |mount: &&Mount| mount.point.components().count();
        let exact = mounts.iter().filter(of_device).max_by_key(depth);
        let at = exact.or_else(|| mounts.iter().max_by_key(depth))?.point.clone();
        let is_exact = mounts.iter().any(|mount| mount.device == device);
        // A later mount hides an earlier one at the same mount point.
        mounts.into_iter().rfind(|mount| mount.point == at && (!is_exact || mount.device == device))
    }

    /// Examines the device with the numbers `MAJOR:MINOR`.
    fn under_device(&self, device: &str, level: u32) -> Under {
        let folder = self.sys.join("dev/block").join(device);
        let Ok(mut folder) = folder.canonicalize() else {
            return Under::Perhaps(format!("the kernel does not show what device {device} is"));
        };
        if folder.join("partition").exists() {
            folder.pop();
        }
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if level >= MOST_LEVELS {
            return Under::Perhaps(format!("{name} lies at the end of a long stack of devices"));
        }
        if is_numbered(&name, "loop") {
            return self.under_loop(&folder, &name, level);
        }
        if IN_MEMORY.iter().any(|kind| is_numbered(&name, kind)) || model_is_debug(&folder) {
            return Under::Memory(format!("{name} keeps its data in this machine's memory"));
        }
        if SERVED.iter().any(|kind| name.starts_with(kind)) {
            return Under::Perhaps(format!(
                "{name} is served by a process or a server with a cache of its own"
            ));
        }
        if let Some(transport) = transport_of(&folder) {
            return Under::Perhaps(format!("{name} is reached by {transport}, maybe on this machine"));
        }
        self.under_slaves(&folder, &name, level)
    }

    fn under_loop(&self, folder: &Path, name: &str, level: u32) -> Under {
        let Some(backing) = read(&folder.join("loop/backing_file")) else {
            return Under::Perhaps(format!("the kernel does not show which file {name} is"));
        };
        if read(&folder.join("loop/dio")).as_deref() != Some("1") {
            return Under::Perhaps(format!("{name} reads {backing} through this machine's page cache"));
        }
        match self.under_file(Path::new(&backing), level + 1) {
            Under::Perhaps(why) => Under::Perhaps(format!("{name} is the file {backing}: {why}")),
            other => other,
        }
    }

    /// Examines the components of a device such as device mapper or md, and returns the worst result.
    fn under_slaves(&self, folder: &Path, name: &str, level: u32) -> Under {
        let entries = fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
        let slaves: Vec<String> = entries.filter_map(|one| read(&one.path().join("dev"))).collect();
        if slaves.is_empty() && folder.parent().is_some_and(|parent| parent.ends_with("virtual/block")) {
            return Under::Perhaps(format!("what {name} consists of is not known"));
        }
        let found: Vec<Under> = slaves.iter().map(|one| self.under_device(one, level + 1)).collect();
        let in_memory = found.iter().filter(|one| matches!(one, Under::Memory(_))).count();
        if in_memory > 0 && in_memory == found.len() {
            return found.into_iter().next().unwrap_or_default();
        }
        let worse = found.into_iter().find_map(|one| match one {
            Under::Devices => None,
            Under::Memory(why) | Under::Perhaps(why) => Some(why),
        });
        worse.map_or(Under::Devices, |why| Under::Perhaps(format!("{name} consists of others: {why}")))
    }
}

/// Returns the caching that the type of the file system implies.
fn of_type(mount: &Mount) -> Option<Under> {
    let kind = mount.fs_type.as_str();
    let option = |name: &str| {
        mount.options.split(',').find_map(|one| one.strip_prefix(name).and_then(|one| one.strip_prefix('=')))
    };
    if OVERLAYS.contains(&kind) {
        return Some(Under::Perhaps(format!("{kind} lies on another file system, which may be in memory")));
    }
    if kind == "virtiofs" || kind == "9p" || kind == "vboxsf" {
        return Some(Under::Perhaps(format!("{kind} is a folder of the host, which has a cache of its own")));
    }
    if kind == "zfs" {
        return Some(Under::Perhaps("ZFS may read from its ARC with O_DIRECT, too".into()));
    }
    if kind == "fuse" || kind.starts_with("fuse.") || kind == "fuseblk" {
        return Some(Under::Perhaps(format!("a process on this machine serves {kind}")));
    }
    if kind.starts_with("nfs") || kind == "cifs" || kind == "smb3" {
        let server = option("addr")?;
        let is_here = server.starts_with("127.") || server == "::1" || option("clientaddr") == Some(server);
        return is_here.then(|| Under::Perhaps(format!("the server of this {kind} is this machine")));
    }
    None
}

fn mount_in(line: &[u8]) -> Option<Mount> {
    let found = mountinfo::line(line)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(Mount {
        point: PathBuf::from(OsString::from_vec(mountinfo::unescaped(found.point))),
        device: text(found.device),
        fs_type: text(found.fs_type),
        source: text(&mountinfo::unescaped(found.source)),
        options: text(found.super_options),
    })
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned();
    (!text.is_empty()).then_some(text)
}

fn is_numbered(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|rest| rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit()))
}

/// Returns whether the disk is scsi_debug, the kernel's test disk, which keeps its data in memory.
fn model_is_debug(folder: &Path) -> bool {
    read(&folder.join("device/model")).is_some_and(|model| model.trim() == "scsi_debug")
}

/// Returns how a remote disk is connected. None for a disk in this machine.
fn transport_of(folder: &Path) -> Option<String> {
    let path = folder.to_string_lossy();
    if path.contains("/session") {
        return Some("iSCSI".into());
    }
    if path.contains("tcm_loop") {
        return Some("a SCSI target".into());
    }
    let transport = read(&folder.join("device/transport"))?;
    (transport != "pcie" && transport != "apple-nvme").then(|| format!("NVMe over {transport}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A simulated /sys with block devices, and an empty mountinfo.
    struct Machine(Roots, PathBuf);

    impl Machine {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("iodock-under-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            fs::create_dir_all(root.join("sys/dev/block")).unwrap();
            fs::write(root.join("mountinfo"), "").unwrap();
            Machine(Roots { sys: root.join("sys"), mountinfo: root.join("mountinfo") }, root)
        }

        fn device(&self, number: &str, place: &str, files: &[(&str, &str)], slaves: &[&str]) -> &Self {
            let folder = self.0.sys.join("devices").join(place);
            fs::create_dir_all(folder.join("slaves")).unwrap();
            fs::write(folder.join("dev"), format!("{number}\n")).unwrap();
            for (name, content) in files {
                fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
                fs::write(folder.join(name), format!("{content}\n")).unwrap();
            }
            for slave in slaves {
                let target = self.0.sys.join("dev/block").join(slave).canonicalize().unwrap();
                symlink(target, folder.join("slaves").join(slave.replace(':', "-"))).unwrap();
            }
            symlink(&folder, self.0.sys.join("dev/block").join(number)).unwrap();
            self
        }

        fn under(&self, device: &str) -> Under {
            self.0.under_device(device, 0)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.1);
        }
    }

    fn is_perhaps(found: &Under, words: &str) -> bool {
        matches!(found, Under::Perhaps(why) if why.contains(words))
    }

    #[test]
    fn disks_and_their_partitions_are_hardware() {
        let machine = Machine::new("disks");
        machine.device("8:0", "pci0/sda", &[], &[]).device(
            "8:1",
            "pci0/sda/sda1",
            &[("partition", "1")],
            &[],
        );
        machine.device("259:0", "pci0/nvme0n1", &[("device/transport", "pcie")], &[]);
        for device in ["8:0", "8:1", "259:0"] {
            assert_eq!(machine.under(device), Under::Devices, "{device}");
        }
    }

    #[test]
    fn a_loop_device_is_cached_like_its_file() {
        let machine = Machine::new("loop");
        let file = machine.1.join("image");
        fs::write(&file, "").unwrap();
        let name = file.to_str().unwrap();
        machine.device("7:0", "virtual/block/loop0", &[("loop/backing_file", name), ("loop/dio", "0")], &[]);
        machine.device(
            "7:1",
            "virtual/block/loop1",
            &[("loop/backing_file", "/gone"), ("loop/dio", "1")],
            &[],
        );
        machine.device("7:2", "virtual/block/loop2", &[], &[]);
        machine.device("7:3", "virtual/block/loop3", &[("loop/backing_file", name)], &[]);
        assert!(is_perhaps(&machine.under("7:0"), "page cache"));
        assert!(is_perhaps(&machine.under("7:1"), "can't be looked at"));
        assert!(is_perhaps(&machine.under("7:2"), "does not show"));
        assert!(is_perhaps(&machine.under("7:3"), "page cache"));
        // This loop device uses direct I/O, and its file is on a disk.
        let status = fs::metadata(&file).unwrap().dev();
        let disk = format!("{}:{}", libc::major(status), libc::minor(status));
        if libc::major(status) != 0 {
            machine.device(&disk, "pci0/sdz", &[], &[]);
            machine.device(
                "7:4",
                "virtual/block/loop4",
                &[("loop/backing_file", name), ("loop/dio", "1")],
                &[],
            );
            assert_eq!(machine.under("7:4"), Under::Devices);
        }
    }

    #[test]
    fn a_stack_of_devices_is_judged_by_its_most_cached_part() {
        let machine = Machine::new("stack");
        machine.device("8:0", "pci0/sda", &[], &[]);
        machine.device("7:0", "virtual/block/loop0", &[("loop/backing_file", "/i"), ("loop/dio", "0")], &[]);
        machine.device("252:0", "virtual/block/dm-0", &[], &["8:0"]);
        machine.device("9:0", "virtual/block/md0", &[], &["252:0", "7:0"]);
        machine.device("252:1", "virtual/block/dm-1", &[], &[]);
        machine.device("253:0", "virtual/block/zram0", &[], &[]);
        machine.device("252:2", "virtual/block/dm-2", &[], &["253:0"]);
        assert_eq!(machine.under("252:0"), Under::Devices);
        assert!(is_perhaps(&machine.under("9:0"), "loop0"));
        assert!(is_perhaps(&machine.under("252:1"), "not known"));
        assert!(matches!(machine.under("252:2"), Under::Memory(_)));
    }

    #[test]
    fn network_storage_is_not_called_hardware() {
        let machine = Machine::new("served");
        machine.device("43:0", "virtual/block/nbd0", &[], &[]);
        machine.device("250:0", "virtual/block/rbd0", &[], &[]);
        machine.device("259:1", "pci0/nvme1n1", &[("device/transport", "tcp")], &[]);
        machine.device("8:16", "platform/host2/session1/target/sdb", &[], &[]);
        machine.device("300:0", "virtual/block/unheard0", &[], &[]);
        for device in ["43:0", "250:0", "259:1", "8:16", "300:0", "99:99"] {
            assert!(matches!(machine.under(device), Under::Perhaps(_)), "{device}");
        }
        machine.device("8:32", "pseudo_0/sdc", &[("device/model", "scsi_debug      ")], &[]);
        assert!(matches!(machine.under("8:32"), Under::Memory(_)));
    }

    #[test]
    fn some_types_of_file_systems_determine_their_cache() {
        let of = |line: &str| of_type(&mount_in(line.as_bytes()).unwrap());
        for line in [
            "30 1 0:50 / /a rw - overlay overlay rw,upperdir=/u",
            "30 1 0:50 / /a rw - virtiofs share rw",
            "30 1 0:50 / /a rw - 9p share rw",
            "30 1 0:50 / /a rw shared:1 - fuse.sshfs host:/ rw",
            "30 1 0:50 / /a rw - nfs4 localhost:/x rw,clientaddr=127.0.0.1,addr=127.0.0.1",
            "30 1 0:50 / /a rw - nfs4 me:/x rw,clientaddr=10.0.0.1,addr=10.0.0.1",
        ] {
            assert!(matches!(of(line), Some(Under::Perhaps(_))), "{line}");
        }
        assert_eq!(of("30 1 0:50 / /a rw - nfs4 s:/x rw,clientaddr=10.0.0.1,addr=10.0.0.2"), None);
        assert_eq!(of("30 1 0:50 / /a rw - lustre 10.0.0.1@tcp:/x rw"), None);
    }
}
