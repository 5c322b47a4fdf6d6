//! Errors of recording, each with what to do about it.

use std::{fmt, io};

/// A reason why the machine or the system's settings do not allow recording, and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
    pub hint: String,
}

impl Refusal {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Refusal { message: message.into(), hint: hint.into() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// There is no such program. A shell returns status 127.
    NotFound(Refusal),
    /// The file exists but can't be executed. A shell returns status 126.
    NotExecutable(Refusal),
    /// Recording the program is not allowed or not possible here.
    Refused(Refusal),
    /// The store can't be created or written.
    Store(Refusal),
    /// An existing store can't be moved. The program can still run without being recorded.
    InTheWay(Refusal),
}

impl RecordError {
    pub fn refusal(&self) -> &Refusal {
        match self {
            RecordError::NotFound(refusal)
            | RecordError::NotExecutable(refusal)
            | RecordError::Refused(refusal)
            | RecordError::Store(refusal)
            | RecordError::InTheWay(refusal) => refusal,
        }
    }

    /// Returns what to do about the error, in one sentence.
    pub fn hint(&self) -> &str {
        &self.refusal().hint
    }

    /// Returns the exit status that a shell, env or nohup would return.
    pub fn exit_status(&self) -> i32 {
        match self {
            RecordError::NotFound(_) => 127,
            RecordError::NotExecutable(_) => 126,
            RecordError::Refused(_) | RecordError::Store(_) | RecordError::InTheWay(_) => 1,
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.refusal().message)
    }
}

impl std::error::Error for RecordError {}

/// Returns the error for a program that can't be started, as in a shell.
pub fn launch_error(name: &str, error: &io::Error) -> RecordError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => RecordError::NotFound(Refusal::new(
            format!("{name}: no such program"),
            "check the name, PATH, and the interpreter in the script's first line",
        )),
        Some(libc::E2BIG) => RecordError::NotExecutable(Refusal::new(
            format!("{name}: can't be executed: {}", plain(error)),
            "the arguments and environment are too large, perhaps with the variables that rewrite adds: see ulimit -s, or choose --backend ptrace",
        )),
        Some(libc::ETXTBSY) => RecordError::NotExecutable(Refusal::new(
            format!("{name}: can't be executed: {}", plain(error)),
            "another program has the file open for writing: wait until it is complete",
        )),
        _ => RecordError::NotExecutable(Refusal::new(
            format!("{name}: can't be executed: {}", plain(error)),
            "check that it is a program that you may execute (chmod +x)",
        )),
    }
}

/// Returns the text of the error without "(os error N)".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
