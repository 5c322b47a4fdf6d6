//! Declares the parts of the kernel's interface to perf events that the recorder needs: `perf_event_open(2)`,
//! include/uapi/linux/perf_event.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const TYPE_SOFTWARE: u32 = 1;

/// Events that the kernel counts itself, without hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Event {
    /// Page faults whose page was in memory.
    MinorFaults = 5,
    /// Page faults that waited for their page.
    MajorFaults = 6,
    /// An event that never happens. Its descriptor is used for a ring buffer.
    Dummy = 9,
}

// Bits of `sample_type`: the fields of a sample. They follow in the order of the bits, except that the
// identifier comes first.
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ADDR: u64 = 1 << 3;
const SAMPLE_IDENTIFIER: u64 = 1 << 16;

// Bits of the field `flags`.
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const MMAP_DATA: u64 = 1 << 17;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;

const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_ID: libc::c_ulong = 0x8008_2407;

/// `struct perf_event_attr` as in Linux 4.1 (112 bytes). Newer kernels assume 0 for the other fields.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

fn open(attributes: &Attributes, tid: libc::pid_t, cpu: i32) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads `size` bytes of the structure, and the new descriptor has no other owner.
    unsafe {
        let group: libc::c_int = -1;
        let fd =
            libc::syscall(libc::SYS_perf_event_open, attributes, tid, cpu, group, FLAG_FD_CLOEXEC) as i32;
        if fd < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }
}

fn attributes(event: Event, flags: u64) -> Attributes {
    Attributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: event as u64,
        sample_period: 1,
        sample_type: SAMPLE_IDENTIFIER | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR,
        flags: flags | EXCLUDE_HYPERVISOR | SAMPLE_ID_ALL | USE_CLOCKID,
        clock_id: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

/// Opens an event that only provides a CPU's ring buffer. It wakes a poll when `watermark` bytes are in the
/// buffer.
pub fn open_ring(cpu: i32, watermark: u32) -> io::Result<OwnedFd> {
    let flags = DISABLED | WATERMARK | EXCLUDE_KERNEL;
    open(&Attributes { wakeup_watermark: watermark, ..attributes(Event::Dummy, flags) }, 0, cpu)
}

/// Opens the event of page faults of a thread and of all its later descendants, while they run on `cpu`. The
/// event is not enabled yet. The event of minor faults also reports maps, beginnings, execs and ends of
/// tasks. With `in_kernel`, it includes faults inside system calls, such as a write(2) from a mapping.
pub fn open_faults(event: Event, tid: u32, cpu: i32, in_kernel: bool) -> io::Result<OwnedFd> {
    let mut flags = DISABLED | INHERIT;
    if event == Event::MinorFaults {
        flags |= MMAP | MMAP2 | MMAP_DATA | COMM | COMM_EXEC | TASK;
    }
    if !in_kernel {
        flags |= EXCLUDE_KERNEL;
    }
    open(&attributes(event, flags), tid as libc::pid_t, cpu)
}

fn control(event: &OwnedFd, request: libc::c_ulong, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: the argument of these requests is a plain number.
    match unsafe { libc::ioctl(event.as_raw_fd(), request, argument) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Redirects an event's records to the ring buffer of another event.
pub fn send_to(event: &OwnedFd, ring: &OwnedFd) -> io::Result<()> {
    control(event, IOC_SET_OUTPUT, ring.as_raw_fd())
}

/// Enables an event, including in all tasks that inherited it.
pub fn enable(event: &OwnedFd) -> io::Result<()> {
    control(event, IOC_ENABLE, 0)
}

/// Returns the number by which samples refer to the event.
pub fn id(event: &OwnedFd) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: the kernel writes 8 bytes, which is the size of `id`.
    match unsafe { libc::ioctl(event.as_raw_fd(), IOC_ID, &mut id) } {
        0 => Ok(id),
        _ => Err(io::Error::last_os_error()),
    }
}
