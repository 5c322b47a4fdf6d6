//! Reasons for choosing a back end.

/// Reason for choosing a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user requested this back end.
    Asked,
    /// The back end is the cheapest one that can record this program.
    Cheapest,
    /// The cheapest back end can't be used on this machine.
    Machine,
    /// The cheapest back end could not start, because its buffers can't be created.
    NoBuffers,
    /// The program is static, so that it loads no library.
    Static,
    /// The program makes its calls without libc.
    Go,
    /// The program is for another machine than x86-64 with 64 bits.
    Foreign,
    /// The program has its own C library.
    OtherLibc,
    /// The program gains privileges when it is executed, and then loads no foreign libraries.
    Privileged,
    /// The program, or one of its initial libraries, makes system calls directly.
    OwnCalls,
    /// The program starts without any C library.
    NoLibc,
    /// The processes are running already.
    Running,
}

impl Reason {
    /// Returns the name of the reason in the manifest, under `captured.why`.
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
