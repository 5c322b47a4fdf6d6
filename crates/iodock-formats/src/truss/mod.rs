//! truss of illumos and Solaris.

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
use iodock_event::SourceError;

/// The format.
pub struct Truss;

impl LogFormat for Truss {
    fn name(&self) -> &'static str {
        "truss"
    }

    fn confidence(&self, _head: &Head<'_>) -> u8 {
        0
    }

    fn open(&self, input: Input, _options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        Err(SourceError {
            file: input.file().to_string(),
            line: None,
            message: "truss logs can't be read yet".into(),
            hint: "give a log of strace".into(),
        })
    }
}
