//! Calls bpf(2) with the few commands that loading needs, as linux/bpf.h defines them.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const BTF_LOAD: libc::c_int = 18;
const MAP_FREEZE: libc::c_int = 22;
const PROG_TYPE_TRACING: u32 = 26;
const TRACE_RAW_TP: u32 = 23;
/// Flag of a map that the kernel's programs may only read.
pub const F_RDONLY_PROG: u32 = 1 << 7;
/// Flag of a map that a process can map into its memory.
pub const F_MMAPABLE: u32 = 1 << 10;
/// Number of attempts to load a program if a signal interrupts the load.
const TRIES: usize = 5;

/// Argument structures of bpf(2), which contain only plain numbers.
trait Arguments {}

fn bpf<A: Arguments>(command: libc::c_int, arguments: &A) -> io::Result<libc::c_long> {
    // SAFETY: the kernel gets the structure's true size, and all pointers in it are valid during the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, arguments, size_of::<A>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn opened(result: libc::c_long) -> OwnedFd {
    // SAFETY: the descriptor is new and has no other owner.
    unsafe { OwnedFd::from_raw_fd(result as libc::c_int) }
}

/// Returns a name in the kernel's form: at most 15 bytes and a zero.
fn short(name: &str) -> [u8; 16] {
    let mut short = [0; 16];
    name.bytes().take(15).zip(&mut short).for_each(|(byte, place)| *place = byte);
    short
}

/// Properties of a map.
#[derive(Clone, Copy)]
pub struct MapShape {
    pub kind: u32,
    pub key_size: u32,
    pub value_size: u32,
    pub entries: u32,
    pub flags: u32,
}

pub fn create_map(name: &str, shape: MapShape) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Create {
        shape: [u32; 5],
        inner_map: u32,
        numa_node: u32,
        name: [u8; 16],
    }
    impl Arguments for Create {}
    let MapShape { kind, key_size, value_size, entries, flags } = shape;
    let shape = [kind, key_size, value_size, entries, flags];
    let arguments = Create { shape, inner_map: 0, numa_node: 0, name: short(name) };
    bpf(MAP_CREATE, &arguments).map(opened)
}

/// Sets the only element of an array map to `value`, and makes the map read-only.
pub fn fill_map(map: BorrowedFd, value: &[u8]) -> io::Result<()> {
    #[repr(C)]
    struct Update {
        map: u64,
        key: *const u32,
        value: *const u8,
        flags: u64,
    }
    impl Arguments for Update {}
    #[repr(C)]
    struct Freeze {
        map: u32,
    }
    impl Arguments for Freeze {}
    let number = map.as_raw_fd() as u32;
    let arguments = Update { map: u64::from(number), key: &0, value: value.as_ptr(), flags: 0 };
    bpf(MAP_UPDATE_ELEM, &arguments)?;
    bpf(MAP_FREEZE, &Freeze { map: number }).map(drop)
}

/// Passes the type descriptions (BTF) of the programs to the kernel.
pub fn load_types(types: &[u8]) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Load {
        types: *const u8,
        log: u64,
        size: u32,
        log_size: u32,
        log_level: u32,
    }
    impl Arguments for Load {}
    let arguments =
        Load { types: types.as_ptr(), log: 0, size: types.len() as u32, log_size: 0, log_level: 0 };
    bpf(BTF_LOAD, &arguments).map(opened)
}

/// A BPF program for a tracepoint, as the kernel loads it.
pub struct TracepointProgram<'a> {
    pub name: &'a str,
    /// Address of the instructions, each of 8 bytes.
    pub instructions: *const u8,
    pub count: usize,
    pub license: &'a CStr,
    pub types: BorrowedFd<'a>,
    /// Types of the program's functions (struct bpf_func_info), each of `function_size` bytes.
    pub functions: &'a [u8],
    pub function_size: usize,
    /// Number of the tracepoint's type among the kernel's types.
    pub tracepoint: u32,
}

/// Reason why the kernel rejected a program, and the verifier's message, which is empty if the program was
/// not verified.
pub struct NotTaken {
    pub error: io::Error,
    pub verdict: String,
}

/// Size in bytes of the memory for the verifier's log. Of a longer log, newer kernels keep the end.
const LOG_BYTES: usize = 1 << 20;

pub fn load_program(program: &TracepointProgram) -> Result<OwnedFd, NotTaken> {
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        instructions: *const u8,
        license: *const libc::c_char,
        log_level: u32,
        log_bytes: u32,
        log: *mut u8,
        kernel_version: u32,
        flags: u32,
        name: [u8; 16],
        device: u32,
        attach_type: u32,
        types: u32,
        function_size: u32,
        functions: *const u8,
        function_count: u32,
        line_size: u32,
        lines: u64,
        line_count: u32,
        tracepoint: u32,
    }
    impl Arguments for Load {}
    let mut arguments = Load {
        kind: PROG_TYPE_TRACING,
        count: program.count as u32,
        instructions: program.instructions,
        license: program.license.as_ptr(),
        log_level: 0,
        log_bytes: 0,
        log: std::ptr::null_mut(),
        kernel_version: 0,
        flags: 0,
        name: short(program.name),
        device: 0,
        attach_type: TRACE_RAW_TP,
        types: program.types.as_raw_fd() as u32,
        function_size: program.function_size as u32,
        functions: program.functions.as_ptr(),
        function_count: (program.functions.len() / program.function_size.max(1)) as u32,
        line_size: 0,
        lines: 0,
        line_count: 0,
        tracepoint: program.tracepoint,
    };
    let mut result = bpf(PROG_LOAD, &arguments);
    for _ in 1..TRIES {
        match &result {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => result = bpf(PROG_LOAD, &arguments),
            _ => break,
        }
    }
    result.map(opened).map_err(|error| {
        // The log is requested only after a first failure, because it slows the verifier down.
        let mut log = vec![0u8; LOG_BYTES];
        (arguments.log_level, arguments.log_bytes, arguments.log) = (1, LOG_BYTES as u32, log.as_mut_ptr());
        // The kernel rejects the program again, or reports that the log is too long.
        drop(bpf(PROG_LOAD, &arguments).map(opened));
        NotTaken { error, verdict: verdict(&log) }
    })
}

/// Returns the last line of the verifier's log that is not a statistic.
fn verdict(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log.split(|&byte| byte == 0).next().unwrap_or_default());
    let is_sum = |line: &str| line.starts_with("processed ") || line.starts_with("verification time ");
    text.lines().map(str::trim).rfind(|line| !line.is_empty() && !is_sum(line)).unwrap_or_default().to_owned()
}

/// Attaches the program. It stays attached until the returned descriptor is dropped.
pub fn attach(program: BorrowedFd) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Open {
        name: u64,
        program: u64,
    }
    impl Arguments for Open {}
    let arguments = Open { name: 0, program: program.as_raw_fd() as u64 };
    bpf(RAW_TRACEPOINT_OPEN, &arguments).map(opened)
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn the_error_is_the_verifiers_last_line_with_a_reason() {
        let log =
            b"0: (95) exit\nR0 !read_ok\nverification time 5 usec\nprocessed 1 insns (limit 1000000)\n\0\0";
        assert_eq!(verdict(log), "R0 !read_ok");
        assert_eq!(verdict(&[0; 16]), "");
    }
}
