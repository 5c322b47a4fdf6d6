//! May programs be loaded into this kernel by this process?

use crate::error::Refusal;
use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// Bits of CapEff (capabilities(7)).
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;
/// Where a kernel that is built with CONFIG_DEBUG_INFO_BTF describes its types.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The first process id namespace has this inode on every kernel (PROC_PID_INIT_INO).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;
const INSTEAD: &str = "choose --backend rewrite or ptrace";

/// Why not, as far as that can be known without trying.
pub fn refusal() -> Option<Refusal> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !has_rights(&status) {
        return Some(Refusal::new(
            "recording by bpf needs root, or CAP_BPF and CAP_PERFMON",
            format!("record as root (sudo iodock record ...), or {INSTEAD}"),
        ));
    }
    if !Path::new(KERNEL_TYPES).exists() {
        return Some(Refusal::new(
            format!("this kernel does not describe its types ({KERNEL_TYPES} is missing), which bpf needs"),
            format!("a kernel with CONFIG_DEBUG_INFO_BTF has it; {INSTEAD}"),
        ));
    }
    let inode = fs::metadata("/proc/self/ns/pid").map(|status| status.ino());
    if inode.is_ok_and(|inode| inode != FIRST_NAMESPACE) {
        return Some(Refusal::new(
            "bpf sees the machine's own process ids, and this container has others",
            format!("record from outside of the container, or {INSTEAD}"),
        ));
    }
    None
}

fn has_rights(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    bits & CAP_SYS_ADMIN != 0 || bits & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON
}

/// What the kernel said when it was tried.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn load_refusal(error: &iodock_bpf::programs::LoadError) -> Refusal {
    let hint = match error.errno {
        Some(libc::EPERM | libc::EACCES) => "a container's filter or kernel lockdown forbids it",
        Some(libc::ENOMEM | libc::E2BIG) => "there is no memory for the buffers",
        _ => "Linux 5.12 or newer is needed",
    };
    Refusal::new(format!("bpf: {error}"), format!("{hint}; {INSTEAD}"))
}

#[cfg(test)]
mod tests {
    use super::has_rights;

    #[test]
    fn both_rights_or_the_old_one_for_both() {
        assert!(has_rights("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(has_rights("CapEff:\t000000c000000000\n"));
        assert!(has_rights("CapEff:\t0000000000200000\n"));
        assert!(!has_rights("CapEff:\t0000008000000000\n"));
        assert!(!has_rights("CapEff:\t0000000000000000\n"));
        assert!(!has_rights("CapPrm:\t000001ffffffffff\n"));
    }
}
