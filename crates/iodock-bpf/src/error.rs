//! Why programs can't be loaded.

use std::{fmt, io};

/// An operation that the kernel refused.
#[derive(Debug)]
pub struct LoadError {
    pub what: &'static str,
    pub why: String,
    pub errno: Option<i32>,
}

const BY_VERIFIER: &str = "the kernel's verifier refuses the programs";

impl LoadError {
    /// The verifier examined the programs and rejected them as unsafe.
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

/// The innermost of an error's causes: the kernel's own message.
pub fn failed(what: &'static str, error: &(dyn std::error::Error + 'static)) -> LoadError {
    let (mut innermost, mut errno) = (error, None);
    loop {
        errno = innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error).or(errno);
        match innermost.source() {
            Some(source) => innermost = source,
            None => break,
        }
    }
    // The verifier explains its decision line by line; its last line comes after.
    let why = innermost.to_string();
    let why = why.lines().next().unwrap_or_default().to_owned();
    LoadError { what, why, errno }
}
