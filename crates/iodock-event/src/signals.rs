//! Names of signals.

const NAMES: [&str; 32] = [
    "",
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Returns the name as strace prints it, such as `SIGTERM` or `SIGRT_3`.
pub fn name(signal: i32) -> String {
    match NAMES.get(signal as usize) {
        Some(name) if !name.is_empty() => (*name).to_string(),
        _ if (32..=64).contains(&signal) => format!("SIGRT_{}", signal - 32),
        _ => format!("SIG{signal}"),
    }
}
