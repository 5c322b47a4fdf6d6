//! Why nothing could be recorded, and what to do about it.

use std::fmt;

/// The machine or the system's settings don't allow it.
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
    /// No such program: the shell's status 127.
    NotFound(Refusal),
    /// There, but not to be executed: the shell's status 126.
    NotExecutable(Refusal),
    /// Recording it is not allowed or not possible here.
    Refused(Refusal),
    /// The store can't be made or written.
    Store(Refusal),
}

impl RecordError {
    pub fn refusal(&self) -> &Refusal {
        match self {
            RecordError::NotFound(refusal)
            | RecordError::NotExecutable(refusal)
            | RecordError::Refused(refusal)
            | RecordError::Store(refusal) => refusal,
        }
    }

    /// What to do, one sentence.
    pub fn hint(&self) -> &str {
        &self.refusal().hint
    }

    /// The exit status that a shell, env or nohup would give.
    pub fn exit_status(&self) -> i32 {
        match self {
            RecordError::NotFound(_) => 127,
            RecordError::NotExecutable(_) => 126,
            RecordError::Refused(_) | RecordError::Store(_) => 1,
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.refusal().message)
    }
}

impl std::error::Error for RecordError {}
