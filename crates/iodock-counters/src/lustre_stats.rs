//! Parses Lustre's `stats` files (llite, mds, md_stats): `NAME COUNT samples [UNIT] MIN MAX SUM SUMSQ`
//! (lprocfs_stats_seq_show). Units and the last columns differ between releases and between counters.

use crate::numbers::{whole, words};

/// Folders of Lustre's parameters. Some releases have them in /proc, newer ones in /sys/kernel/debug, and
/// FEFS has its own folder. One target may have files in several of these folders.
pub const PLACES: [&str; 4] = ["proc/fs/lustre", "sys/kernel/debug/lustre", "sys/fs/lustre", "proc/fs/fefs"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub name: &'a [u8],
    /// Number of occurrences.
    pub samples: u64,
    /// Unit as the file prints it, without brackets: `bytes`, `usecs`, `usec`, `reqs`, `regs` ...
    pub unit: &'a [u8],
    pub smallest: Option<u64>,
    pub largest: Option<u64>,
    /// Sum over all samples, in `unit`.
    pub sum: Option<u64>,
}

/// Parses one counter's line. Returns `None` for other lines, such as times and headers, and for damaged
/// numbers.
pub fn line(text: &[u8]) -> Option<Line<'_>> {
    let mut fields = words(text);
    let (name, samples) = (fields.next()?, whole(fields.next()?)?);
    (fields.next()? == b"samples").then_some(())?;
    let unit = fields.next()?.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut number = || fields.next().map_or(Some(None), |field| whole(field).map(Some));
    Some(Line { name, samples, unit, smallest: number()?, largest: number()?, sum: number()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_lines_of_several_lustre_releases_are_read() {
        let bytes =
            line(b"write_bytes    89467810 samples [bytes] 4096 1048576 93813797294080").expect("a line");
        assert_eq!((bytes.name, bytes.samples, bytes.unit), (&b"write_bytes"[..], 89467810, &b"bytes"[..]));
        assert_eq!(bytes.sum, Some(93813797294080));
        let open = line(b"open   136 samples [regs]").expect("a line");
        assert_eq!((open.samples, open.sum), (136, None));
        let timed =
            line(b"open  35955554 samples [usecs] 0 172939 3393651645 8836730033307").expect("a line");
        assert_eq!((timed.largest, timed.sum), (Some(172939), Some(3393651645)));
    }

    #[test]
    fn other_and_damaged_lines_give_no_counter() {
        assert_eq!(line(b"snapshot_time   1716295737.288815113 secs.nsecs"), None);
        assert_eq!(line(b"open 136 samples [usecs"), None);
        assert_eq!(line(b"open 136 samples [usecs] 0 x 5"), None);
        assert_eq!(line(b""), None);
    }
}
