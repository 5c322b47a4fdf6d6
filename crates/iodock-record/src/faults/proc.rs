//! Reads a process's memory maps from /proc.

use iodock_event::{FileMap, UNKNOWN};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;

/// Number of bytes of a map that are searched for present pages. The rest is ignored.
const MOST_BYTES: u64 = 64 << 30;
/// Bit of an entry in /proc/PID/pagemap: the page is in memory. Every user may read this bit for own
/// processes.
const PRESENT: u64 = 1 << 63;

/// A line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub start: u64,
    pub length: u64,
    pub offset: u64,
    /// Protection (PROT_READ ...) in the form of mmap(2).
    pub protection: u64,
    pub path: Vec<u8>,
}

impl Line {
    /// Returns whether this is the map of a file and contains this address.
    pub fn is_of_a_file_at(&self, address: u64) -> bool {
        self.path.first() == Some(&b'/')
            && address.checked_sub(self.start).is_some_and(|within| within < self.length)
    }

    pub fn into_map(self, pid: u32) -> FileMap {
        let Line { start, length, offset, path, .. } = self;
        FileMap { pid, time: UNKNOWN, start, length, offset, path }
    }
}

/// Returns all maps of a process or thread. The list is empty if it has ended.
pub fn maps(pid: u32) -> Vec<Line> {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.split(|&byte| byte == b'\n').filter_map(line).collect()
}

/// Parses a line such as `7f00-7f10 r-xp 00001000 08:01 42     /usr/bin/x`.
fn line(text: &[u8]) -> Option<Line> {
    let mut fields = text.splitn(6, |&byte| byte == b' ');
    let number = |field: &[u8]| u64::from_str_radix(std::str::from_utf8(field).ok()?, 16).ok();
    let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
    let (start, end) = (number(range.next()?)?, number(range.next()?)?);
    let access = fields.next()?;
    let offset = number(fields.next()?)?;
    let path = fields.nth(2).unwrap_or_default().trim_ascii_start().to_vec();
    let protection = b"rwx"
        .iter()
        .zip([libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC])
        .filter(|(letter, _)| access.contains(letter));
    let protection = protection.fold(0, |sum, (_, bit)| sum | bit as u64);
    Some(Line { start, length: end.checked_sub(start)?, offset, protection, path })
}

/// Returns the name of the file that a descriptor refers to.
pub fn descriptor(pid: u32, fd: i32) -> Vec<u8> {
    let target = fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    target.map(|target| OsString::from(target).into_vec()).unwrap_or_default()
}

/// Returns the addresses of the pages of `map` that are in the process's memory.
pub fn present(pid: u32, map: &Line, page: u64) -> Vec<u64> {
    let Ok(entries) = File::open(format!("/proc/{pid}/pagemap")) else { return Vec::new() };
    let (first, pages) = (map.start / page, map.length.min(MOST_BYTES) / page);
    let mut found = Vec::new();
    let mut bytes = vec![0u8; 1 << 16];
    let mut at = 0;
    while at < pages {
        let wanted = usize::min(bytes.len(), (pages - at) as usize * 8);
        let got = entries.read_at(&mut bytes[..wanted], (first + at) * 8).unwrap_or(0) / 8;
        if got == 0 {
            break;
        }
        for (index, entry) in bytes[..got * 8].chunks_exact(8).enumerate() {
            let entry = entry.try_into().map_or(0, u64::from_ne_bytes);
            if entry & PRESENT != 0 {
                found.push((first + at + index as u64) * page);
            }
        }
        at += got as u64;
    }
    found
}

/// Returns the numbers of the processors that are online, from a text such as `0-3,8`.
pub fn processors() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    });
    let found: Vec<i32> = ranges.flatten().collect();
    if found.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        return (0..count as i32).collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_may_have_blanks_in_its_name() {
        let text = b"7f0000001000-7f0000003000 r--p 00002000 08:01 42      /data/a b";
        let wanted = Line {
            start: 0x7f00_0000_1000,
            length: 0x2000,
            offset: 0x2000,
            protection: 1,
            path: b"/data/a b".to_vec(),
        };
        assert_eq!(line(text), Some(wanted));
        assert_eq!(line(b"7f00-7f10 rw-p 00000000 00:00 0 ").map(|line| line.path), Some(Vec::new()));
        assert_eq!(line(b""), None);
    }

    #[test]
    fn this_process_has_its_own_code_mapped() {
        let pid = std::process::id();
        let code = maps(pid).into_iter().find(|map| map.protection & libc::PROT_EXEC as u64 != 0);
        let code = code.expect("a process runs code");
        assert!(!present(pid, &code, 4096).is_empty());
        assert!(!processors().is_empty());
    }
}
