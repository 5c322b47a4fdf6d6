//! Reads logs of FreeBSD's truss (`truss -f -H -a -d -D -o LOG COMMAND`, and other options with one line per
//! call).
//!
//! Source of the format: usr.bin/truss of FreeBSD 5 to 14 (syscalls.c, setup.c, main.c) and truss(1). truss
//! prints a line when a call ends. `-d` shows that time, in seconds since truss started. `-D` shows the
//! duration of the call (from its beginning to its end, although truss(1) describes it differently). truss
//! prints file names without escapes, so a name that contains `",` looks like two.

mod arguments;
mod errors;
mod line;
mod reader;
mod settle;
#[cfg(test)]
mod tests;

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
use iodock_event::SourceError;
use line::{body, prefix, Body, Ending};
use reader::{Columns, FreebsdTrussReader};
use std::sync::Arc;

/// Number of lines at the beginning of the log that are examined.
const LOOKED_AT: usize = 400;

/// The format as listed in [`crate::FORMATS`].
pub struct FreebsdTruss;

impl LogFormat for FreebsdTruss {
    fn name(&self) -> &'static str {
        "freebsd-truss"
    }

    fn confidence(&self, head: &Head<'_>) -> u8 {
        let found = Evidence::of(head.bytes);
        match (found.own, found.table) {
            (0, false) => 0,
            (0, true) => 70,
            (own, _) => (55 + 43 * own / found.lines.max(own)) as u8,
        }
    }

    fn owns(&self, line: &[u8]) -> bool {
        is_own_line(line)
    }

    fn open(&self, input: Input, options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        let found = Evidence::of(input.head());
        if found.own == 0 && found.table {
            return Err(only_table(&input));
        }
        let columns = Columns::find(input.head());
        let reader = FreebsdTrussReader { columns, file: Arc::clone(input.file()) };
        Ok(Box::new(crate::start(self.name(), reader, input, options)))
    }
}

#[derive(Default)]
struct Evidence {
    /// Number of lines that only FreeBSD's truss prints.
    own: usize,
    table: bool,
    lines: usize,
}

impl Evidence {
    fn of(head: &[u8]) -> Evidence {
        let mut found = Evidence::default();
        for line in head.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).take(LOOKED_AT) {
            let line = line.trim_ascii_end();
            found.lines += 1;
            found.own += usize::from(is_own_line(line));
            found.table |= is_title(line);
        }
        found
    }
}

/// Returns whether the line is the header of the table of `-c`. Its columns are wider than those of other
/// versions of truss.
fn is_title(line: &[u8]) -> bool {
    line.starts_with(b"syscall                     seconds   calls  errors")
}

/// Returns whether this call has a form that only FreeBSD's truss prints.
pub(crate) fn is_own_line(line: &[u8]) -> bool {
    match body(&line[prefix(line).body..]) {
        Body::Call(call) => !matches!(call.ending, Ending::Nothing),
        Body::Exited(_) => true,
        _ => false,
    }
}

fn only_table(input: &Input) -> SourceError {
    SourceError {
        file: input.file().to_string(),
        line: Some(1),
        message: "is the table of truss -c: it holds counts, and no calls".into(),
        hint: "record again without -c: truss -f -H -a -d -D -o run.truss COMMAND".into(),
    }
}
