//! strace, versions 4 to 6.

use crate::{Chunk, Head, Input, Lines, LogFormat, LogReader, LogSource, ReadOptions};
use iodock_event::{Clock, SourceError};

/// The format.
pub struct Strace;

impl LogFormat for Strace {
    fn name(&self) -> &'static str {
        "strace"
    }

    fn confidence(&self, _head: &Head<'_>) -> u8 {
        0
    }

    fn open(&self, input: Input, options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        Ok(Box::new(crate::start(self.name(), StraceReader, input, options)))
    }
}

struct StraceReader;

impl LogReader for StraceReader {
    type Notes = ();
    type State = ();

    fn clock(&self) -> Clock {
        Clock::None
    }
    fn parse(&self, _lines: &Lines<'_>, _chunk: &mut Chunk<()>) {}
    fn settle(&self, _state: &mut (), _chunk: &mut Chunk<()>) {}
    fn finish(&self, _state: &mut (), _chunk: &mut Chunk<()>) {}
}
