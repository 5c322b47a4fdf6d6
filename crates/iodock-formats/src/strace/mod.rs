//! Reads logs of strace, versions 4 to 6, made with any options that keep one line per call.
//!
//! A line is parsed from left to right ([`prefix`], [`line`], [`arguments`], [`ending`]), so a name may
//! contain any text, even text that looks like a result. Sources of the format: the manual page and the
//! output of the versions in Debian 8 to 13.

mod arguments;
mod broken;
mod eights;
mod ending;
mod first;
mod frames;
mod join;
mod lexer;
mod line;
mod names;
mod prefix;
mod reader;
mod refused;
mod settle;
mod structures;
mod survey;
#[cfg(test)]
mod tests;
mod threads;
mod times;
mod untagged;
mod values;

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
pub(crate) use arguments::OTHER_COMMAND;
use iodock_event::SourceError;
pub(crate) use names::known_call;
use reader::StraceReader;
use std::sync::{Arc, Mutex};
pub(crate) use survey::is_own_line;
use survey::Survey;
use untagged::Untagged;

/// Number of bytes that are searched for the first `[pid N]`. On a terminal strace shows no thread until
/// there are two, so only later lines show the process of the first lines.
const LONG_HEAD: usize = 16 << 20;
/// Number of bytes after the first `[pid N]` that are searched for the other threads.
const TAGGED_HEAD: usize = 2 << 20;

/// The format as listed in [`crate::FORMATS`].
pub struct Strace;

impl LogFormat for Strace {
    fn name(&self) -> &'static str {
        "strace"
    }

    fn confidence(&self, head: &Head<'_>) -> u8 {
        Survey::of(head.bytes).confidence()
    }

    fn owns(&self, line: &[u8]) -> bool {
        is_own_line(line)
    }

    fn open(&self, mut input: Input, options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        let mut survey = Survey::of(input.head());
        if survey.calls == 0 && survey.tables > 2 {
            return Err(only_a_summary(&input));
        }
        let named = options.tid_from_name && survey::tid_in_name(input.file()).is_some();
        if survey.is_bare() && !named {
            input.extend_head(LONG_HEAD);
            survey.find_first_thread(input.head());
        } else if survey.is_tagged() {
            input.extend_head(TAGGED_HEAD);
            survey.find_first_thread(input.head());
        }
        let head = Head { bytes: input.head(), file: input.file() };
        let layout = survey.layout(&head, options.tid_from_name);
        let untagged = survey.first_owner().map(|first| Mutex::new(Untagged::new(first)));
        let reader = StraceReader { layout, untagged, file: Arc::clone(input.file()) };
        Ok(Box::new(crate::start(self.name(), reader, input, options)))
    }
}

/// Returns the length in bytes of strace's own columns at the beginning of `text`: thread, time, number of
/// the call.
pub(crate) fn column_length(text: &[u8]) -> usize {
    let mut lexer = lexer::Lexer::new(text);
    prefix::read(&mut lexer);
    lexer.at
}

/// Returns whether the line shows its thread.
pub(crate) fn shows_thread(line: &[u8]) -> bool {
    prefix::read(&mut lexer::Lexer::new(line)).tid.is_some()
}

/// Returns whether this is a line of strace that is neither a call nor an event.
pub(crate) fn is_noise_line(line: &[u8]) -> bool {
    matches!(line::read(line).1, line::Kind::Noise | line::Kind::Row)
}

/// Parses the whole text as a number, decimal or `0x`.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let mut lexer = lexer::Lexer::new(text);
    lexer.integer().filter(|_| lexer.at_end())
}

fn only_a_summary(input: &Input) -> SourceError {
    SourceError {
        file: input.file().to_string(),
        line: Some(1),
        message: "is only strace's summary table: it holds no calls".into(),
        hint: "leave out --format: it is read as strace-c, of counts; for more re-run strace without -c, or with -C, which writes the calls too".into(),
    }
}
