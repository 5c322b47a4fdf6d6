//! Reads logs of perf trace (`perf trace -o LOG COMMAND`) of Linux kernels 3.17 to 6.x.
//!
//! Source of the format: tools/perf/builtin-trace.c of Linux. perf prints a line when a call ends, with the
//! time at which the call began. If another thread's line comes in between, the first part ends with `...`
//! and the second begins with `... [continued]: name()`. Arguments have names, and perf leaves out those that
//! are 0. Only a perf that was built with BPF (or uses the probe vfs_getname) shows file names. perf looks up
//! the names after descriptors (`3</tmp/a>`) when it prints the line, which may be too late. The reader
//! therefore uses them only for descriptors whose open call is not in the log.

mod arguments;
mod line;
mod names;
mod order;
mod reader;
mod stack;
#[cfg(test)]
mod tests;

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
use iodock_event::SourceError;
use line::{read, Body};
use reader::PerfTraceReader;

/// Number of lines at the beginning of the log that are examined.
const LOOKED_AT: usize = 400;

/// The format as listed in [`crate::FORMATS`].
pub struct PerfTrace;

impl LogFormat for PerfTrace {
    fn name(&self) -> &'static str {
        "perf-trace"
    }

    fn confidence(&self, head: &Head<'_>) -> u8 {
        let found = evidence(head.bytes);
        match (found.calls, found.summary) {
            (0, 0) => 0,
            (0, _) => 70,
            (calls, _) => (60 + 38 * calls / found.lines.max(1)) as u8,
        }
    }

    fn owns(&self, line: &[u8]) -> bool {
        is_own_line(line)
    }

    fn open(&self, input: Input, options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        let found = evidence(input.head());
        if found.calls == 0 && found.summary > 0 {
            return Err(only_summary(&input));
        }
        let reader = PerfTraceReader { file: std::sync::Arc::clone(input.file()) };
        Ok(Box::new(crate::start(self.name(), reader, input, options)))
    }
}

#[derive(Default)]
struct Evidence {
    calls: usize,
    summary: usize,
    lines: usize,
}

fn evidence(head: &[u8]) -> Evidence {
    let mut found = Evidence::default();
    for line in head.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).take(LOOKED_AT) {
        found.lines += 1;
        if is_own_line(line.trim_ascii_end()) {
            found.calls += 1;
        } else {
            found.summary += usize::from(line.trim_ascii() == b"Summary of events:");
        }
    }
    found
}

fn is_own_line(line: &[u8]) -> bool {
    matches!(read(line), Some((_, Body::Call(_) | Body::Begun(_) | Body::Continued(_))))
}

fn only_summary(input: &Input) -> SourceError {
    SourceError {
        file: input.file().to_string(),
        line: Some(1),
        message: "is the summary of perf trace -s: it holds counts, and no calls".into(),
        hint: "run perf trace without -s, or with -S, which writes the calls too".into(),
    }
}
