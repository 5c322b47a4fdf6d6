//! Why a back end was taken.

/// Why a back end was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user named it.
    Asked,
    /// It is the cheapest, and sees this program.
    Cheapest,
    /// The cheapest can't be used on this machine.
    Machine,
    /// The cheapest could not begin: its buffers can't be made.
    NoBuffers,
    /// The program loads no library.
    Static,
    /// A program that makes its calls itself, past libc.
    Go,
    /// A program for another machine than x86-64 with 64 bits.
    Foreign,
    /// The program has a C library of its own.
    OtherLibc,
    /// The program gains privileges, and loads no library of others then.
    Privileged,
    /// The program, or a library that it begins with, makes system calls itself.
    OwnCalls,
    /// It begins without any C library.
    NoLibc,
    /// Processes that run already.
    Running,
}

impl Reason {
    /// As in the manifest, `captured.why`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Asked => "asked",
            Reason::Cheapest => "cheapest",
            Reason::Machine => "machine",
            Reason::NoBuffers => "no-buffers",
            Reason::Static => "static",
            Reason::Go => "go",
            Reason::Foreign => "foreign",
            Reason::OtherLibc => "other-libc",
            Reason::Privileged => "privileged",
            Reason::OwnCalls => "own-calls",
            Reason::NoLibc => "no-libc",
            Reason::Running => "running",
        }
    }
}
