//! Reads logs of truss of illumos and Solaris (`truss -aefldE -vall -rall -wall`, and any of its options).
//!
//! Source of the format: truss(1) and usr/src/cmd/truss of illumos. truss prints a line when a call *ends*,
//! so its time stamp is that of the end. The column of `-E` is system CPU time, never elapsed time.

mod arguments;
mod continuation;
mod layout;
mod line;
mod lives;
mod prefix;
mod reader;
mod settle;
mod values;

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
use iodock_event::SourceError;
pub(crate) use layout::is_own_line;
use layout::{evidence, Evidence, Layout};
use reader::TrussReader;

/// The format as listed in [`crate::FORMATS`].
pub struct Truss;

impl LogFormat for Truss {
    fn name(&self) -> &'static str {
        "truss"
    }

    fn confidence(&self, head: &Head<'_>) -> u8 {
        confidence(&evidence(head.bytes))
    }

    fn owns(&self, line: &[u8]) -> bool {
        is_own_line(line)
    }

    fn open(&self, input: Input, options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        let found = evidence(input.head());
        if found.table > 0 && found.calls == 0 {
            return Err(only_table(&input));
        }
        let layout = Layout::find(input.head());
        let reader = TrussReader::new(layout, std::sync::Arc::clone(input.file()));
        Ok(Box::new(crate::start(self.name(), reader, input, options)))
    }
}

/// Returns the confidence that the log is one of this truss. Lines that only truss prints count most; calls that other tracers could also have
/// printed count less.
fn confidence(found: &Evidence) -> u8 {
    let spoken = found.calls + found.foreign;
    if found.table > 0 && spoken == 0 {
        return 60;
    }
    if found.own == 0 || found.foreign > found.own {
        return if found.calls > 0 && found.foreign == 0 { 15 } else { 0 };
    }
    let share = found.own.min(spoken.max(1)) * 100 / spoken.max(1);
    (45 + share / 2).min(95) as u8
}

fn only_table(input: &Input) -> SourceError {
    SourceError {
        file: input.file().to_string(),
        line: Some(1),
        message: "is the table of truss -c: it holds counts, and no calls".into(),
        hint: "record again without -c: truss -aefldE -vall -o run.truss COMMAND".into(),
    }
}

#[cfg(test)]
mod tests;
