//! Finds the meaning of a log's columns from its head, because truss does not print it.

use super::line::{body, Body, Call, Ending};
use super::prefix::{base_stamp, prefix, Prefix};
use rustc_hash::FxHashMap;

/// A column of seconds before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// `-d`: time since the base time stamp.
    Stamp,
    /// `-D`: time since the thread's previous event. For the first event it is the time since the base.
    Delta,
    /// `-E`: system CPU time in the call.
    SystemTime,
}

/// The layout of a log's lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Base time stamp, in 1/10,000 s since the epoch.
    pub base: Option<i64>,
    pub columns: Vec<Column>,
}

impl Layout {
    /// Returns the position of a column, if the log has it.
    pub fn position(&self, column: Column) -> Option<usize> {
        self.columns.iter().position(|&other| other == column)
    }

    /// Finds the layout from the beginning of a log.
    pub fn find(head: &[u8]) -> Layout {
        let lines = || head.split(|&byte| byte == b'\n');
        let base = lines().find_map(base_stamp);
        let rows: Vec<Prefix> = lines().map(prefix).filter(|prefix| prefix.columns > 0).collect();
        let count = most_common_count(&rows);
        let rows: Vec<Prefix> = rows.into_iter().filter(|row| row.columns == count).collect();
        Layout { base, columns: columns(&rows, count, base.is_some()) }
    }
}

fn most_common_count(rows: &[Prefix]) -> usize {
    (1..=3).max_by_key(|&count| rows.iter().filter(|row| row.columns == count).count()).unwrap_or(0)
}

fn columns(rows: &[Prefix], count: usize, has_base: bool) -> Vec<Column> {
    use Column::{Delta, Stamp, SystemTime};
    if rows.is_empty() {
        return Vec::new();
    }
    let stamped = has_base || never_falls(rows);
    match (count, stamped) {
        (3, _) => vec![Stamp, Delta, SystemTime],
        (2, true) if second_is_difference(rows) => vec![Stamp, Delta],
        (2, true) => vec![Stamp, SystemTime],
        (2, false) => vec![Delta, SystemTime],
        (_, true) => vec![Stamp],
        (_, false) if mostly_set(rows) => vec![Delta],
        (_, false) => vec![SystemTime],
    }
}

/// Returns whether the first column never decreases, as time stamps do. Lines of two threads may be
/// exchanged, which allows for slight decreases.
fn never_falls(rows: &[Prefix]) -> bool {
    const CROSSING: i64 = 20;
    let falls = rows.windows(2).filter(|pair| pair[1].stamps[0] + CROSSING < pair[0].stamps[0]).count();
    let steps = rows.windows(2).filter(|pair| pair[1].stamps[0] < pair[0].stamps[0]).count();
    let grows = rows.first().zip(rows.last()).is_some_and(|(first, last)| last.stamps[0] > first.stamps[0]);
    falls == 0 && grows && steps * 4 <= rows.len()
}

/// Returns whether the second column is the growth of the first since the thread's previous line.
fn second_is_difference(rows: &[Prefix]) -> bool {
    let mut last: FxHashMap<(Option<u32>, Option<u32>), i64> = FxHashMap::default();
    let (mut fits, mut moved, mut all) = (0, 0, 0);
    for row in rows {
        if let Some(before) = last.insert((row.pid, row.lwp), row.stamps[0]) {
            let grew = row.stamps[0] - before;
            all += 1;
            moved += usize::from(grew > 1);
            fits += usize::from((row.stamps[1] - grew).abs() <= 1);
        }
    }
    moved > 0 && fits * 10 >= all * 9
}

/// Returns whether most values are not 0. Time passes between any two events, but most calls use no
/// measurable CPU time.
fn mostly_set(rows: &[Prefix]) -> bool {
    rows.iter().filter(|row| row.stamps[0] != 0).count() * 2 >= rows.len()
}

/// Number of lines in the head that support this format, and of lines that contradict it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    /// Number of calls.
    pub calls: usize,
    /// Number of calls and other lines in a form that only Solaris's truss prints.
    pub own: usize,
    /// Number of lines in a form that only other tracers print.
    pub foreign: usize,
    /// Number of lines of the table that `-c` prints.
    pub table: usize,
    pub lines: usize,
}

/// Examines the first lines.
pub fn evidence(head: &[u8]) -> Evidence {
    const LOOKED_AT: usize = 400;
    let mut found = Evidence::default();
    // The last line may be incomplete, unless it is the only one.
    for line in head.split(|&byte| byte == b'\n').take(LOOKED_AT).filter(|line| !line.is_empty()) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        found.lines += 1;
        if is_foreign(line) {
            found.foreign += 1;
            continue;
        }
        let start = prefix(line);
        match body(&line[start.body..], start.indented, start.columns > 0) {
            Body::Call(call) => {
                found.calls += 1;
                found.own += usize::from(is_own(line, &start, &call));
            }
            Body::Signal { .. } | Body::Killed => found.own += 1,
            Body::Known if base_stamp(line).is_some() => found.own += 1,
            Body::Known if line.starts_with(b"syscall ") => found.table += 1,
            _ => {}
        }
    }
    found
}

/// Returns whether this call has the form that Solaris's truss prints.
pub fn is_own_line(line: &[u8]) -> bool {
    let start = prefix(line);
    match body(&line[start.body..], start.indented, start.columns > 0) {
        Body::Call(call) => !is_foreign(line) && is_own(line, &start, &call),
        _ => false,
    }
}

/// Returns whether only Solaris's truss prints such a line: result after tabs, `Err#`, four decimals,
/// hexadecimal numbers in capitals.
fn is_own(line: &[u8], start: &Prefix, call: &Call<'_>) -> bool {
    let remark = matches!(
        call.ending,
        Ending::Error { .. } | Ending::Sleeping | Ending::AsChild(_) | Ending::AsThread | Ending::Executed
    );
    let tabbed = memchr::memmem::find(line, b")\t").is_some();
    let capitals = call.arguments.windows(10).any(|word| {
        word.starts_with(b"0x")
            && word[2..].iter().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte))
    });
    remark || tabbed || capitals || start.columns > 0 || start.lwp.is_some()
}

/// Returns whether the line has a form of strace, truss of FreeBSD or AIX, ltrace or another tracer that
/// truss of Solaris does not print.
fn is_foreign(line: &[u8]) -> bool {
    const MARKS: &[&[u8]] = &[
        b" = -1 E",
        b"<unfinished ...>",
        b" resumed>",
        b"+++ exited with",
        b"+++ killed by",
        b"--- SIG",
        b" ERR#",
        b"\tERR#",
        b" (0x",
        b"argc: ",
    ];
    MARKS.iter().any(|mark| memchr::memmem::find(line, mark).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Column::{Delta, Stamp, SystemTime};

    fn found(head: &str) -> Vec<Column> {
        Layout::find(head.as_bytes()).columns
    }

    #[test]
    fn the_layout_of_columns_is_recognised() {
        let base = "Base time stamp:  1699999990.0017  [ Tue Nov 14 22:13:10 UTC 2023 ]\n";
        assert_eq!(found("close(3)\t= 0\n"), vec![]);
        assert_eq!(found(&format!("{base} 0.0001\tclose(3)\t= 0\n")), vec![Stamp]);
        assert_eq!(
            found(&format!("{base} 0.0001\t 0.0000\tf()\t= 0\n 0.5000\t 0.0001\tf()\t= 0\n")),
            vec![Stamp, SystemTime]
        );
        assert_eq!(
            found(&format!("{base} 0.0001\t 0.0001\tf()\t= 0\n 0.5000\t 0.4999\tf()\t= 0\n")),
            vec![Stamp, Delta]
        );
        assert_eq!(found(" 0.1\tx\n 0.0001\t 0.0001\t 0.0000\tf()\t= 0\n"), vec![Stamp, Delta, SystemTime]);
        assert_eq!(found(" 0.0001\tf()\t= 0\n 0.5000\tf()\t= 0\n 0.7000\tf()\t= 0\n"), vec![Stamp]);
        assert_eq!(found(" 0.0001\tf()\t= 0\n 0.5000\tf()\t= 0\n 0.1000\tf()\t= 0\n"), vec![Delta]);
        assert_eq!(found(" 0.0000\tf()\t= 0\n 0.0500\tf()\t= 0\n 0.0000\tf()\t= 0\n"), vec![SystemTime]);
    }
}
