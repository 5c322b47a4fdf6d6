//! Formats that are recognised only to say clearly that they are not read.

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
use iodock_event::SourceError;

/// AIX truss.
pub struct AixTruss;
/// FreeBSD truss.
pub struct BsdTruss;

impl LogFormat for AixTruss {
    fn name(&self) -> &'static str {
        "aix-truss"
    }

    fn confidence(&self, _head: &Head<'_>) -> u8 {
        0
    }

    fn open(&self, input: Input, _options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        Err(refusal(&input, "AIX"))
    }
}

impl LogFormat for BsdTruss {
    fn name(&self) -> &'static str {
        "freebsd-truss"
    }

    fn confidence(&self, _head: &Head<'_>) -> u8 {
        0
    }

    fn open(&self, input: Input, _options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        Err(refusal(&input, "FreeBSD"))
    }
}

fn refusal(input: &Input, system: &str) -> SourceError {
    SourceError {
        file: input.file().to_string(),
        line: Some(1),
        message: format!("is a truss log of {system}, which iodock does not read"),
        hint: "iodock reads logs of strace (Linux) and truss (illumos, Solaris)".into(),
    }
}
