//! Errors of loading the kernel's programs.

use std::{fmt, io};

/// An operation that the kernel refused, with its reason.
#[derive(Debug)]
pub struct LoadError {
    pub what: &'static str,
    pub why: String,
    pub errno: Option<i32>,
}

const BY_VERIFIER: &str = "the kernel's verifier refuses the programs";

impl LoadError {
    /// Marks the error as a decision of the verifier, which examined the programs and rejected them as
    /// unsafe.
    pub(crate) fn by_verifier(self) -> LoadError {
        LoadError { what: BY_VERIFIER, ..self }
    }

    pub fn is_of_verifier(&self) -> bool {
        self.what == BY_VERIFIER
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// Builds an error from the innermost of the causes of `error`, which is the kernel's own message.
pub fn failed(what: &'static str, error: &(dyn std::error::Error + 'static)) -> LoadError {
    let (mut innermost, mut errno) = (error, None);
    loop {
        errno = innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error).or(errno);
        match innermost.source() {
            Some(source) => innermost = source,
            None => break,
        }
    }
    // The message may be followed by the lines of the verifier's log, so only its first line is used.
    let why = innermost.to_string();
    let why = why.lines().next().unwrap_or_default().to_owned();
    LoadError { what, why, errno }
}
