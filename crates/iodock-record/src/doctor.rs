//! Reports what this machine allows, and the consequences.

use crate::error::Refusal;
use std::fs;

/// One property that determines what can be recorded here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub name: String,
    /// Value as the system reports it. Empty if it does not exist.
    pub value: String,
    /// Consequence of the value for a user.
    pub consequence: String,
}

fn fact(name: &str, value: Option<String>, consequence: &str) -> Fact {
    Fact { name: name.into(), value: value.unwrap_or_default(), consequence: consequence.into() }
}

fn setting(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

fn status(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_string()))
}

/// Returns whether this process may trace processes of other users. CAP_SYS_PTRACE is bit 19.
fn can_trace_any() -> bool {
    let capabilities = status("CapEff").and_then(|text| u64::from_str_radix(&text, 16).ok());
    capabilities.is_some_and(|bits| bits & 1 << 19 != 0)
}

/// Returns the reason why no program can be traced here, or `None` if programs can be traced.
pub fn ptrace_refusal() -> Option<Refusal> {
    let scope = setting("/proc/sys/kernel/yama/ptrace_scope").and_then(|scope| scope.parse::<u32>().ok());
    match scope {
        Some(3) => Some(Refusal::new(
            "kernel.yama.ptrace_scope is 3: nobody may trace on this machine",
            "only an administrator can change that, by a setting and a reboot; strace is refused too",
        )),
        Some(2) if !can_trace_any() => Some(Refusal::new(
            "kernel.yama.ptrace_scope is 2: only an administrator may trace on this machine",
            "record as root, or ask for: sysctl kernel.yama.ptrace_scope=1",
        )),
        _ => None,
    }
}

fn bpf() -> Fact {
    match crate::backends::bpf::availability() {
        None => fact("bpf", Some("possible".into()), "--backend bpf records every call of every program"),
        Some(refusal) => fact("bpf", Some("not possible".into()), &refusal.message),
    }
}

/// Returns all facts that matter for recording on this machine.
pub fn doctor() -> Vec<Fact> {
    let scope = setting("/proc/sys/kernel/yama/ptrace_scope");
    let scope_means = match (scope.as_deref(), can_trace_any()) {
        (Some("3"), _) => "nothing can be recorded by ptrace",
        (Some("2"), false) => "only root can record",
        (Some("1"), false) => "programs can be started under recording; attaching with -p needs root",
        _ => "programs can be started under recording, and own processes attached to with -p",
    };
    let root = crate::program::is_root();
    let privileges = if root {
        "set-user-id programs keep their rights while recorded"
    } else {
        "set-user-id programs lose their rights while recorded"
    };
    vec![
        fact(
            "kernel",
            setting("/proc/sys/kernel/osrelease"),
            "recording by ptrace needs 4.8 or newer; 5.3 is faster",
        ),
        fact(
            "architecture",
            Some(std::env::consts::ARCH.into()),
            "live recording works on x86_64; logs can be imported anywhere",
        ),
        fact("user", Some(if root { "root" } else { "ordinary" }.into()), privileges),
        fact("kernel.yama.ptrace_scope", scope, scope_means),
        fact(
            "seccomp",
            status("Seccomp"),
            "0: no filter on iodock itself; 2: a container's filter, which may forbid ptrace",
        ),
        fact(
            "seccomp actions",
            setting("/proc/sys/kernel/seccomp/actions_avail"),
            "`trace` lets calls that are not recorded run at full speed",
        ),
        fact(
            "kernel.perf_event_paranoid",
            setting("/proc/sys/kernel/perf_event_paranoid"),
            "2 or less: page faults of own programs can be sampled",
        ),
        fact(
            "kernel.unprivileged_bpf_disabled",
            setting("/proc/sys/kernel/unprivileged_bpf_disabled"),
            "1 or 2: BPF needs root",
        ),
        bpf(),
        fact(
            "user.max_user_namespaces",
            setting("/proc/sys/user/max_user_namespaces"),
            "0: no containers of ordinary users",
        ),
    ]
}
