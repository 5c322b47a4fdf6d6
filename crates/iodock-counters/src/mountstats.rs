//! Parses /proc/self/mountstats of NFS clients (Linux fs/nfs/super.c, net/sunrpc/stats.c).

use crate::numbers::{whole, words};

/// Numbers per operation. Kernels before Linux 5.3 print 8 of them, without the number of errors.
pub const OPERATION_NUMBERS: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Server and export, as `server:/export`.
    pub device: &'a [u8],
    /// Path of the mount point. The kernel writes its blanks as `\040`.
    pub mount_point: &'a [u8],
}

/// Numbers in the file's order: requests, transmissions, major timeouts, bytes sent, bytes received, queue,
/// response and total time in ms, errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    pub name: &'a [u8],
    pub numbers: [u64; OPERATION_NUMBERS],
    /// Whether this kernel counts errors.
    pub has_errors: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// First line of an NFS mount.
    Mount(Mount<'a>),
    /// First line of a mount of another type, with its mount point.
    OtherMount(&'a [u8]),
    /// First line of a mount, but damaged: the lines after it belong to no known mount.
    UnreadableMount,
    /// Six byte counts: read and written by programs through the cache, read and written by programs with
    /// O_DIRECT, read from and written to the server.
    Bytes([u64; 6]),
    Operation(Operation<'a>),
    /// Line that contains none of these numbers, such as options and events.
    Other,
    /// Line of bytes or of an operation that has too few numbers.
    Unreadable,
}

pub fn line(text: &[u8]) -> Line<'_> {
    if let Some(rest) = text.strip_prefix(b"device ") {
        return mount(rest).unwrap_or(Line::UnreadableMount);
    }
    if let Some(rest) = text.strip_prefix(b"no device mounted on ") {
        return Line::OtherMount(words(rest).next().unwrap_or_default());
    }
    let text = text.trim_ascii();
    let Some(colon) = text.iter().position(|&byte| byte == b':') else { return Line::Other };
    let (name, values) = (&text[..colon], &text[colon + 1..]);
    if name == b"bytes" {
        return match numbers::<6>(values) {
            (numbers, 6..) => Line::Bytes(numbers),
            _ => Line::Unreadable,
        };
    }
    if name.is_empty()
        || !name.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_' || byte.is_ascii_digit())
    {
        return Line::Other;
    }
    match numbers::<OPERATION_NUMBERS>(values) {
        (numbers, count @ 8..) => Line::Operation(Operation { name, numbers, has_errors: count > 8 }),
        _ => Line::Unreadable,
    }
}

/// Parses up to `N` numbers, and returns them with their count.
fn numbers<const N: usize>(text: &[u8]) -> ([u64; N], usize) {
    let mut values = [0; N];
    let mut count = 0;
    for value in words(text).map_while(whole) {
        if let Some(place) = values.get_mut(count) {
            *place = value;
        }
        count += 1;
    }
    (values, count)
}

fn mount(rest: &[u8]) -> Option<Line<'_>> {
    let mut fields = rest.split(|&byte| byte == b' ');
    let device = fields.next()?;
    (fields.next()? == b"mounted" && fields.next()? == b"on").then_some(())?;
    let mount_point = fields.next()?;
    (fields.next()? == b"with" && fields.next()? == b"fstype").then_some(())?;
    Some(match fields.next()? {
        b"nfs" | b"nfs4" => Line::Mount(Mount { device, mount_point }),
        b"" => return None,
        _ => Line::OtherMount(mount_point),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_with_bytes_and_operations_are_read() {
        let Line::Mount(mount) =
            line(b"device 10.0.0.1:/var/lib/a mounted on /var/lib/a with fstype nfs statvers=1.0")
        else {
            panic!("a mount")
        };
        assert_eq!((mount.device, mount.mount_point), (&b"10.0.0.1:/var/lib/a"[..], &b"/var/lib/a"[..]));
        assert_eq!(line(b"device proc mounted on /proc with fstype proc"), Line::OtherMount(b"/proc"));
        assert_eq!(
            line(b"device nfsd mounted on /proc/fs/nfsd with fstype nfsd"),
            Line::OtherMount(b"/proc/fs/nfsd")
        );
        assert_eq!(line(b"no device mounted on /x with fstype tmpfs"), Line::OtherMount(b"/x"));
        for damaged in
            ["device srv:/x mou?nted on /x with fstype nfs4", "device srv:/x mounted on", "device "]
        {
            assert_eq!(line(damaged.as_bytes()), Line::UnreadableMount, "{damaged}");
        }
        assert_eq!(line(b"\tbytes:  1 2 3 4 5 6 7 8"), Line::Bytes([1, 2, 3, 4, 5, 6]));
        assert_eq!(line(b"\tbytes:  1 2"), Line::Unreadable);
        assert_eq!(line(b"\tage:  1234"), Line::Other);
    }

    #[test]
    fn operations_of_old_and_new_kernels_are_read() {
        let Line::Operation(old) = line(b"   NULL: 1 1 0 44 24 0 0 0") else { panic!("an operation") };
        let Line::Operation(new) = line(b"   READ: 1 2 3 4 5 6 7 8 9") else { panic!("an operation") };
        assert!(!old.has_errors && new.has_errors);
        assert_eq!((new.name, new.numbers), (&b"READ"[..], [1, 2, 3, 4, 5, 6, 7, 8, 9]));
        assert_eq!(line(b"  READ: 1 2 3"), Line::Unreadable);
    }
}
