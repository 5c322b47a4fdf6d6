//! Reads the table of `strace -c`: counts by call, without single calls.
//!
//! Source of the format: count.c of strace 4.5 to 7. `-U` selects the columns, and `-S` the order of the
//! rows. The table does not show the meaning of `seconds`: it is the system CPU time or, with `-w`, the time
//! inside the calls. There are therefore two formats, of which only the first is recognised automatically.

mod columns;
mod reader;
mod rows;
#[cfg(test)]
mod tests;

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
pub(crate) use columns::{is_header, is_rule};
use iodock_event::SourceError;
use reader::TableSource;
pub(crate) use rows::is_row;

/// Number of lines at the beginning of the log that are examined.
const LOOKED_AT: usize = 1000;

/// The format as listed in [`crate::FORMATS`].
pub struct StraceTable {
    /// Whether the table was made with `-w`.
    pub wall_clock: bool,
}

impl LogFormat for StraceTable {
    fn name(&self) -> &'static str {
        if self.wall_clock {
            "strace-c-w"
        } else {
            "strace-c"
        }
    }

    fn confidence(&self, head: &Head<'_>) -> u8 {
        let lines: Vec<&[u8]> =
            head.bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).take(LOOKED_AT).collect();
        let headed = lines.windows(2).any(|pair| is_header(pair[0]) && is_rule(pair[1]));
        // A log that ends with a table (`-C`) also contains the calls, so another format reads it.
        let calls = lines.iter().any(|line| crate::strace::is_own_line(line));
        if headed && !calls && !self.wall_clock {
            95
        } else {
            0
        }
    }

    fn owns(&self, line: &[u8]) -> bool {
        is_header(line.trim_ascii()) || is_rule(line) || is_row(line)
    }

    fn open(&self, input: Input, _: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        Ok(Box::new(TableSource::read(self.name(), self.wall_clock, input)?))
    }
}
