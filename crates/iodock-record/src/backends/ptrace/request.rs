//! Wraps the ptrace requests in functions with types. See ptrace(2).

use std::{io, mem, ptr};

pub const EVENT_STOP: i32 = 128;
const GET_SYSCALL_INFO: libc::c_uint = 0x420e;

/// `struct ptrace_syscall_info` of the kernel, with the longest member of its union.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CallInfo {
    pub op: u8,
    _pad: [u8; 3],
    pub arch: u32,
    pub ip: u64,
    pub sp: u64,
    /// At the beginning of a call its number, at the end its result.
    pub number: u64,
    pub arguments: [u64; 6],
    _more: [u64; 2],
}

pub const OP_ENTRY: u8 = 1;
pub const OP_EXIT: u8 = 2;

/// Options for following all descendants, and for distinguishing stops at calls from SIGTRAP.
pub const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

fn request(request: libc::c_uint, tid: u32, address: usize, data: usize) -> io::Result<libc::c_long> {
    // SAFETY: only the functions below make requests that write memory, and they pass valid pointers.
    match unsafe { libc::ptrace(request as _, tid as libc::pid_t, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

pub fn seize(tid: u32, options: i32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, options as usize).map(drop)
}

pub fn interrupt(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0).map(drop)
}

pub fn detach(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, signal as usize).map(drop)
}

/// Keeps a thread in its group stop, until the tracer is notified of the stop's end.
pub fn listen(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0).map(drop)
}

/// Continues a thread to the next event.
#[inline]
pub fn resume(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize).map(drop)
}

/// Continues a thread to the beginning or end of the next call.
#[inline]
pub fn resume_to_call(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize).map(drop)
}

pub fn event_message(tid: u32) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, ptr::addr_of_mut!(message) as usize)?;
    Ok(message)
}

/// Returns the child that the stopped thread has created. Returns `None` if the thread was killed in between:
/// the message is then that of its end.
pub fn child_made(tid: u32, event: i32) -> Option<u32> {
    let child = event_message(tid).ok().filter(|&child| child != 0)? as u32;
    // SAFETY: zeroes are a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    request(libc::PTRACE_GETSIGINFO, tid, 0, ptr::addr_of_mut!(info) as usize).ok()?;
    (info.si_code >> 8 == event).then_some(child)
}

#[inline]
pub fn call_info(tid: u32) -> io::Result<CallInfo> {
    let mut info = CallInfo::default();
    match request(GET_SYSCALL_INFO, tid, mem::size_of::<CallInfo>(), ptr::addr_of_mut!(info) as usize) {
        Ok(_) => Ok(info),
        // Kernels before Linux 5.3 do not know this request.
        Err(error) if error.raw_os_error() == Some(libc::EIO) => call_info_from_registers(tid),
        Err(error) => Err(error),
    }
}

fn call_info_from_registers(tid: u32) -> io::Result<CallInfo> {
    // SAFETY: zeroes are a valid user_regs_struct.
    let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
    request(libc::PTRACE_GETREGS, tid, 0, ptr::addr_of_mut!(registers) as usize)?;
    // This value is the code segment of 32-bit programs.
    let arch = if registers.cs == 0x23 { 0 } else { super::recorded::AUDIT_ARCH };
    // At the beginning of a call, the kernel has stored -ENOSYS in the result register.
    let at_entry = registers.rax as i64 == -i64::from(libc::ENOSYS);
    let number = if at_entry { registers.orig_rax } else { registers.rax };
    let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
    let op = if at_entry { OP_ENTRY } else { OP_EXIT };
    Ok(CallInfo { op, arch, ip: registers.rip, sp: registers.rsp, number, arguments, ..CallInfo::default() })
}

/// Returns the call's result register. Use it at the end of a call.
#[inline]
pub fn result(tid: u32) -> io::Result<i64> {
    peek_register(tid, mem::offset_of!(libc::user_regs_struct, rax))
}

#[inline]
fn peek_register(tid: u32, offset: usize) -> io::Result<i64> {
    // A value of -1 differs from an error only by errno, which is therefore set to 0 before.
    // SAFETY: errno belongs to this thread, and the request writes no memory of this process.
    unsafe {
        *libc::__errno_location() = 0;
        let value = libc::ptrace(libc::PTRACE_PEEKUSER, tid as libc::pid_t, offset, 0);
        if value == -1 && *libc::__errno_location() != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(value)
    }
}

/// `struct ptrace_peeksiginfo_args` of the kernel.
#[repr(C)]
struct PeekSignals {
    from: u64,
    flags: u32,
    most: i32,
}

const PEEKED_SIGNALS: usize = 32;
const PEEK_SIGNALS: libc::c_uint = 0x4209;
/// Code of the SIGSYS that a seccomp filter sends for a refused call.
const SYS_SECCOMP: i32 = 1;

/// Returns whether a seccomp filter answered the thread's call with SIGSYS. The kernel then stores the call's
/// number in the result register. Use it at the end of a call.
pub fn is_trapped(tid: u32) -> bool {
    let wanted = PeekSignals { from: 0, flags: 0, most: PEEKED_SIGNALS as i32 };
    // SAFETY: zeroes are a valid siginfo_t.
    let mut found: [libc::siginfo_t; PEEKED_SIGNALS] = unsafe { mem::zeroed() };
    let (wanted, to) = (ptr::addr_of!(wanted) as usize, ptr::addr_of_mut!(found) as usize);
    let count = request(PEEK_SIGNALS, tid, wanted, to).unwrap_or(0);
    let refused = |info: &libc::siginfo_t| info.si_signo == libc::SIGSYS && info.si_code == SYS_SECCOMP;
    found.iter().take(count as usize).any(refused)
}

/// Returns the stack pointer.
pub fn stack_pointer(tid: u32) -> io::Result<u64> {
    peek_register(tid, mem::offset_of!(libc::user_regs_struct, rsp)).map(|value| value as u64)
}

/// Sets the result of a call. Use it at the end of a call.
pub fn set_result(tid: u32, value: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEUSER, tid, mem::offset_of!(libc::user_regs_struct, rax), value as usize)
        .map(drop)
}

/// Sets a call's first argument. Use it at the beginning of a call.
pub fn set_first_argument(tid: u32, value: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEUSER, tid, mem::offset_of!(libc::user_regs_struct, rdi), value as usize)
        .map(drop)
}

pub fn peek(tid: u32, address: u64) -> io::Result<u64> {
    // SAFETY: errno belongs to this thread, and the request writes no memory of this process.
    unsafe {
        *libc::__errno_location() = 0;
        let value = libc::ptrace(libc::PTRACE_PEEKDATA, tid as libc::pid_t, address, 0);
        if value == -1 && *libc::__errno_location() != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(value as u64)
    }
}

pub fn poke(tid: u32, address: u64, value: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEDATA, tid, address as usize, value as usize).map(drop)
}
