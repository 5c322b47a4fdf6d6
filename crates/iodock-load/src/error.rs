//! Errors of a check-up, and what to do about them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// Kind of an error. Programs act on the kind, and people read the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// There is no room: bytes, inodes or quota.
    NoSpace,
    /// A stop was requested.
    Stopped,
    /// The tree contains foreign files, or belongs to a check-up that may still run.
    Taken,
    /// The plan cannot be executed.
    Plan,
    /// Another error of the operating system.
    System,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadError {
    pub kind: Kind,
    pub message: String,
    pub hint: String,
}

impl LoadError {
    pub fn new(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        LoadError { kind, message: message.into(), hint: hint.into() }
    }

    /// Builds the error of a failed system call. `what` names the file.
    pub fn system(what: impl fmt::Display, error: &io::Error) -> Self {
        let code = error.raw_os_error().unwrap_or(0);
        if code == libc::ENOSPC || code == libc::EDQUOT {
            let (lacking, hint) = if code == libc::EDQUOT {
                let hint = "free space, request more, or take a smaller class; quota -s or the file system's own tool shows the quota";
                ("your quota is used up", hint)
            } else {
                let hint = "free space, or take a smaller class; df -h and df -i show free space";
                ("no space or no inodes left", hint)
            };
            return LoadError::new(Kind::NoSpace, format!("{what}: {lacking}"), hint);
        }
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        LoadError::new(Kind::System, format!("{what}: {text}"), "choose a folder that you may write to")
    }

    pub fn stopped(why: &str) -> Self {
        LoadError::new(Kind::Stopped, why, "")
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}
