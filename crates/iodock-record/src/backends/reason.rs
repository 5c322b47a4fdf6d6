//! Reasons for choosing a back end.

/// Reason for choosing a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user requested it.
    Asked,
    /// It is the cheapest back end that can record this program.
    Cheapest,
    /// The cheapest can't be used on this machine.
    Machine,
    /// The cheapest could not start: its buffers can't be created.
    NoBuffers,
    /// The program loads no library.
    Static,
    /// The program makes its calls without libc.
    Go,
    /// A program for another machine than x86-64 with 64 bits.
    Foreign,
    /// The program has its own C library.
    OtherLibc,
    /// The program gains privileges, and then loads no foreign libraries.
    Privileged,
    /// The program, or one of its initial libraries, makes system calls directly.
    OwnCalls,
    /// It starts without any C library.
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
