//! Finds names of files whose pages were loaded, but which no recorded process opened or mapped by a call.
//! These are programs and libraries that the kernel maps, files that were open or mapped before, and the data
//! of a file system itself on its device.

use super::round::Unnamed;
use iodock_event::FileIdentity;
use std::fs;

/// Returns the file's name, if it can be determined now.
pub fn find(of: &Unnamed) -> Option<Vec<u8>> {
    if of.of_device {
        return device(of.file);
    }
    // If the process has ended already, the maps of the recorder still contain files that every process maps,
    // such as the dynamic linker.
    let lists = [format!("/proc/{}/maps", of.pid), "/proc/self/maps".to_owned()];
    lists.iter().find_map(|list| mapped(&fs::read(list).ok()?, of.file))
}

/// Returns the name of a device, from a line such as `DEVNAME=vda1` in /sys.
fn device(file: FileIdentity) -> Option<Vec<u8>> {
    let says = fs::read_to_string(format!("/sys/dev/block/{}:{}/uevent", file.major(), file.minor())).ok()?;
    let name = says.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(format!("/dev/{name}").into_bytes())
}

/// Returns the files that `pid` has mapped now, each once.
pub fn mapped_by(pid: u32) -> Vec<(FileIdentity, Vec<u8>)> {
    let list = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut found: Vec<_> = list.split(|&byte| byte == b'\n').filter_map(line).collect();
    found.sort();
    found.dedup_by_key(|(file, _)| *file);
    found
}

fn mapped(list: &[u8], file: FileIdentity) -> Option<Vec<u8>> {
    let mut lines = list.split(|&byte| byte == b'\n').filter_map(line);
    lines.find(|(found, _)| *found == file).map(|(_, name)| name)
}

/// Parses a line of /proc/PID/maps: `7f00-7f10 r-xp 00001000 08:01 42     /usr/bin/x`.
fn line(text: &[u8]) -> Option<(FileIdentity, Vec<u8>)> {
    let mut fields = text.splitn(6, |&byte| byte == b' ').skip(3);
    let (device, inode, name) = (fields.next()?, fields.next()?, fields.next()?.trim_ascii_start());
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let (major, minor) = std::str::from_utf8(device).ok()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let inode = std::str::from_utf8(inode).ok()?.parse().ok()?;
    let file = FileIdentity::new(number(major)?, number(minor)?, inode);
    name.starts_with(b"/").then(|| (file, name.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_among_maps_by_device_and_inode() {
        let list = b"7f0000001000-7f0000003000 r--p 00002000 08:01 42      /data/a b (deleted)\n\
            7f0000004000-7f0000005000 r--p 00000000 103:01 4242    /data/c\n7ff0-7ff1 rw-p 0 00:00 0 \n";
        let file = FileIdentity::new;
        assert_eq!(mapped(list, file(8, 1, 42)), Some(b"/data/a b".to_vec()));
        assert_eq!(mapped(list, file(0x103, 1, 4242)), Some(b"/data/c".to_vec()));
        assert_eq!(mapped(list, file(8, 1, 2)), None);
        assert_eq!(mapped(list, file(0, 0, 0)), None);
    }

    #[test]
    fn this_process_has_its_own_program_mapped() {
        let own = fs::read_link("/proc/self/exe").expect("there");
        let found = mapped_by(std::process::id());
        assert!(found.iter().any(|(_, name)| own.as_os_str().as_encoded_bytes() == name));
    }
}
