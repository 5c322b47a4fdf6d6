//! Parses the columns before the call: process and lwp (`28115/7:`), and up to three columns of seconds.

/// The beginning of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// Process id. truss shows it with `-f` or for several processes.
    pub pid: Option<u32>,
    /// Thread (lwp). truss shows it with `-l` or for several threads.
    pub lwp: Option<u32>,
    /// Values of the columns in 1/10,000 s. Only the first `columns` of them are set.
    pub stamps: [i64; 3],
    pub columns: usize,
    /// Position of the text after the prefix and its white space.
    pub body: usize,
    /// Whether the line has more white space than the prefix needs. truss indents lines that belong to the
    /// line above.
    pub indented: bool,
}

/// Parses the prefix of `line`.
#[inline]
pub fn prefix(line: &[u8]) -> Prefix {
    let mut prefix = Prefix::default();
    let mut at = owner(line, &mut prefix);
    let owned = at > 0;
    // One or two tabs follow the process and thread (or spaces, if another tool replaced the tabs).
    if owned {
        at += usize::from(line.get(at) == Some(&b'\t'));
        if prefix.pid.is_some() && prefix.lwp.is_some() && at < 9 {
            at += usize::from(line.get(at) == Some(&b'\t'));
        }
    }
    let unindented = at;
    while prefix.columns < 3 {
        let start = skip_blanks(line, at);
        let Some((value, end)) = column(line, start) else { break };
        prefix.stamps[prefix.columns] = value;
        prefix.columns += 1;
        at = end + 1;
    }
    prefix.body = skip_blanks(line, at);
    prefix.indented = prefix.body > at.max(unindented);
    prefix
}

/// Returns the length of `PID:`, `PID/LWP:` or `/LWP:`, each with `@THREAD` if truss traces library calls.
#[inline]
fn owner(line: &[u8], prefix: &mut Prefix) -> usize {
    let (pid, mut at) = digits(line, 0);
    let mut lwp = None;
    if line.get(at) == Some(&b'/') {
        let (number, end) = digits(line, at + 1);
        if number.is_none() {
            return 0;
        }
        (lwp, at) = (number, end);
        if line.get(at) == Some(&b'@') {
            at = digits(line, at + 1).1;
        }
    }
    let ends = line.get(at) == Some(&b':') && matches!(line.get(at + 1), Some(b'\t' | b' ') | None);
    if !ends || (pid.is_none() && lwp.is_none()) {
        return 0;
    }
    (prefix.pid, prefix.lwp) = (pid, lwp);
    at + 1
}

/// Parses the decimal digits from `at` on as a 32-bit number. Also returns the position after them.
#[inline]
fn digits(line: &[u8], mut at: usize) -> (Option<u32>, usize) {
    let start = at;
    let mut value = 0u64;
    while let Some(digit @ b'0'..=b'9') = line.get(at) {
        value = (value * 10 + u64::from(digit - b'0')).min(u64::from(u32::MAX) + 1);
        at += 1;
    }
    let number = u32::try_from(value).ok().filter(|_| at > start);
    (number, at)
}

#[inline]
fn skip_blanks(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Parses a column such as `12.3456` followed by a blank. truss prints four decimals. The bytes of a buffer
/// cannot look like this, because truss prints a space before a point there.
#[inline]
fn column(line: &[u8], start: usize) -> Option<(i64, usize)> {
    let negative = line.get(start) == Some(&b'-');
    let (seconds, point) = digits(line, start + usize::from(negative));
    let seconds = i64::from(seconds?);
    if line.get(point) != Some(&b'.') {
        return None;
    }
    let (fraction, end) = digits(line, point + 1);
    if end != point + 5 || !matches!(line.get(end), Some(b' ' | b'\t')) {
        return None;
    }
    let value = seconds * 10_000 + i64::from(fraction?);
    Some((if negative { -value } else { value }, end))
}

/// Parses the time in the `Base time stamp:` line, in 1/10,000 s since the epoch.
pub fn base_stamp(line: &[u8]) -> Option<i64> {
    let rest = line.strip_prefix(b"Base time stamp:")?;
    let start = skip_blanks(rest, 0);
    column(rest, start).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Option<u32>, Option<u32>, Vec<i64>, &str, bool) {
        let p = prefix(line.as_bytes());
        (p.pid, p.lwp, p.stamps[..p.columns].to_vec(), &line[p.body..], p.indented)
    }

    #[test]
    fn every_layout_of_leading_columns_is_read() {
        assert_eq!(
            read("28115/7:\t 0.0086\t 0.0001\tread(8"),
            (Some(28115), Some(7), vec![86, 1], "read(8", false)
        );
        assert_eq!(read("7/1:\t\tread(8"), (Some(7), Some(1), vec![], "read(8", false));
        assert_eq!(read("6428:    0.0037 open("), (Some(6428), None, vec![37], "open(", false));
        assert_eq!(read("/12:\t10000.0000\tx("), (None, Some(12), vec![100_000_000], "x(", false));
        assert_eq!(read("/1@1:\t-> libc:f"), (None, Some(1), vec![], "-> libc:f", false));
        assert_eq!(read(" 0.0001\tclose(3"), (None, None, vec![1], "close(3", false));
        assert_eq!(read("-1.9999\tclose(3"), (None, None, vec![-19999], "close(3", false));
        assert_eq!(read("close(3"), (None, None, vec![], "close(3", false));
        assert_eq!(read("28115/7:\t   T h e"), (Some(28115), Some(7), vec![], "T h e", true));
        assert_eq!(read("\tfd=8"), (None, None, vec![], "fd=8", true));
        assert_eq!(read("99999999999: x"), (None, None, vec![], "99999999999: x", false));
        assert_eq!(read(""), (None, None, vec![], "", false));
    }

    #[test]
    fn the_base_time_stamp_is_read() {
        assert_eq!(base_stamp(b"Base time stamp:  1699999990.0017  [ Tue"), Some(16_999_999_900_017));
        assert_eq!(base_stamp(b"Base time stamp:  x"), None);
    }
}
