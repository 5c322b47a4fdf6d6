//! Reads logs of ltrace (Linux) with system calls (`ltrace -S -f -tt -T -o LOG COMMAND`), versions 0.7 to
//! 0.8.
//!
//! Source of the format: output.c, handle_event.c and lens_default.c of ltrace 0.7.3 and 0.7.91, and logs of
//! 0.7.3. ltrace prints system calls as `SYS_read(...)`, since 0.7.91 as `read@SYS(...)`. All other calls are
//! library calls, which the reader skips. A line begins with the start of its call and ends with the result,
//! unless another line came in between. Errors are negative results, as the kernel returns them. For calls
//! that ltrace's configuration does not describe, ltrace prints four arguments as numbers, so it shows file
//! names as addresses. Quotation marks in strings are not escaped.

mod arguments;
mod head;
mod line;
mod names;
mod reader;
mod settle;
mod stamps;
#[cfg(test)]
mod tests;

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
use head::Survey;
use iodock_event::SourceError;
use reader::LtraceReader;
use std::sync::Arc;

/// The format as listed in [`crate::FORMATS`].
pub struct Ltrace;

impl LogFormat for Ltrace {
    fn name(&self) -> &'static str {
        "ltrace"
    }

    fn confidence(&self, head: &Head<'_>) -> u8 {
        Survey::of(head.bytes).confidence()
    }

    fn owns(&self, line: &[u8]) -> bool {
        line::is_system_call(line)
    }

    fn open(&self, input: Input, options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        let survey = Survey::of(input.head());
        match (survey.system, survey.table, survey.library) {
            (0, Some(line), _) => return Err(only_table(&input, line)),
            (0, None, 1..) => return Err(no_system_calls(&input)),
            _ => {}
        }
        let reader = LtraceReader { layout: survey.layout(), file: Arc::clone(input.file()) };
        Ok(Box::new(crate::start(self.name(), reader, input, options)))
    }
}

fn only_table(input: &Input, line: u64) -> SourceError {
    SourceError {
        file: input.file().to_string(),
        line: Some(line),
        message: "is the table of ltrace -c: it holds counts, and no calls".into(),
        hint: "record again without -c: ltrace -S -f -tt -T -o run.log COMMAND".into(),
    }
}

fn no_system_calls(input: &Input) -> SourceError {
    SourceError {
        file: input.file().to_string(),
        line: Some(1),
        message: "is an ltrace log of library calls: it begins without a system call".into(),
        hint: "record again with -S: ltrace -S -f -tt -T -o run.log COMMAND; if system calls stand far behind, take them out: grep SYS LOG | iodock import - -o run.iodock".into(),
    }
}
