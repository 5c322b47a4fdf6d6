//! Parses /proc/pressure/* and a cgroup's *.pressure (Linux Documentation/accounting/psi.rst).

use crate::numbers::{whole, words};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line<'a> {
    /// Either `some` (at least one task waited) or `full` (all tasks that could run waited).
    pub who: &'a [u8],
    /// Share of the last ten seconds in which tasks waited, in percent. It is `None` if the file contains no
    /// valid number.
    pub average_10s_percent: Option<f64>,
    /// Waiting time since boot, in microseconds.
    pub total_us: u64,
}

pub fn line(text: &[u8]) -> Option<Line<'_>> {
    let mut fields = words(text);
    let who = fields.next()?;
    let (mut average, mut total) = (None, None);
    for field in fields {
        if let Some(value) = field.strip_prefix(b"avg10=") {
            average = crate::numbers::finite(value);
        } else if let Some(value) = field.strip_prefix(b"total=") {
            total = whole(value);
        }
    }
    Some(Line { who, average_10s_percent: average, total_us: total? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_of_a_pressure_file_are_read() {
        let some = line(b"some avg10=1.25 avg60=0.00 avg300=0.00 total=81253").expect("a line");
        assert_eq!((some.who, some.average_10s_percent, some.total_us), (&b"some"[..], Some(1.25), 81253));
        assert_eq!(line(b"full avg10=0.00 avg60=0.00"), None);
        for average in ["NaN", "inf", "-inf", "x"] {
            let text = format!("some avg10={average} total=5");
            let some = line(text.as_bytes()).expect("a line");
            assert_eq!((some.average_10s_percent, some.total_us), (None, 5));
        }
    }
}
