//! Checks whether this process may load programs into this kernel.

use crate::error::Refusal;
use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// Bits of CapEff in /proc/self/status (capabilities(7)).
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;
/// File with the types of a kernel that is built with CONFIG_DEBUG_INFO_BTF.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Inode of the first pid namespace, which is the same on every kernel (PROC_PID_INIT_INO).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;
const INSTEAD: &str = "choose --backend rewrite or ptrace";

/// Returns the reason why programs may not be loaded, as far as it is known without trying.
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

/// Returns whether the kernel accepts a minimal program. A container's filter or lockdown may forbid it
/// although the capabilities suffice, and kernels before Linux 5.12 reject some of the recorder's programs.
pub fn is_let_in() -> bool {
    is_new_enough(&crate::places::kernel()) && loads_a_program()
}

fn is_new_enough(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(12))
}

/// Loads the program `r0 = 0; exit` for a raw tracepoint (see bpf(2)), and returns whether the kernel
/// accepted it.
fn loads_a_program() -> bool {
    const PROG_LOAD: libc::c_long = 5;
    const RAW_TRACEPOINT: u32 = 17;
    #[repr(C)]
    struct Load {
        kind: u32,
        instructions: u32,
        code: *const u64,
        license: *const libc::c_char,
        rest: [u64; 3],
    }
    let code = [0xb7_u64, 0x95];
    let load = Load {
        kind: RAW_TRACEPOINT,
        instructions: code.len() as u32,
        code: code.as_ptr(),
        license: c"GPL".as_ptr(),
        rest: [0; 3],
    };
    // SAFETY: the kernel reads the structure and the memory that it points to. The new descriptor has no
    // other owner.
    unsafe {
        let program = libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw const load, size_of::<Load>());
        program >= 0 && libc::close(program as libc::c_int) == 0
    }
}

fn has_rights(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    bits & CAP_SYS_ADMIN != 0 || bits & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON
}

/// Converts the kernel's error when programs were loaded to a message with a hint.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn load_refusal(error: &iodock_bpf::error::LoadError) -> Refusal {
    let hint = match error.errno {
        Some(libc::EMFILE | libc::ENFILE) => "more files must be open at once than is allowed (ulimit -n)",
        _ if error.is_of_verifier() => {
            "not of this kernel's version, it seems: please report that line and `uname -r`"
        }
        Some(libc::EPERM | libc::EACCES) => "a container's filter or kernel lockdown forbids it",
        Some(libc::ENOMEM | libc::E2BIG) => "there is no memory for the buffers",
        _ => "Linux 5.12 or newer is needed",
    };
    Refusal::new(format!("bpf: {error}"), format!("{hint}; {INSTEAD}"))
}

#[cfg(test)]
mod tests {
    use super::{has_rights, is_new_enough};

    #[test]
    fn kernel_versions_are_parsed() {
        assert!(is_new_enough("5.12.0") && is_new_enough("6.1.0-13-amd64") && is_new_enough("10.0"));
        assert!(!is_new_enough("5.4.0-generic") && !is_new_enough("4.18.0-553.el8") && !is_new_enough(""));
    }

    #[test]
    fn bpf_needs_both_new_capabilities_or_the_old_one() {
        assert!(has_rights("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(has_rights("CapEff:\t000000c000000000\n"));
        assert!(has_rights("CapEff:\t0000000000200000\n"));
        assert!(!has_rights("CapEff:\t0000008000000000\n"));
        assert!(!has_rights("CapEff:\t0000000000000000\n"));
        assert!(!has_rights("CapPrm:\t000001ffffffffff\n"));
    }
}
