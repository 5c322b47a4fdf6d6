//! Loading the programs and their maps.

use crate::calls::rounds::InCall;
use crate::format::{cpu, slot, CHUNK};
use crate::mapping::Mapping;
use crate::types;
use aya::maps::Map;
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader, VerifierLogLevel};
use std::sync::atomic::Ordering;
use std::{fmt, fs, io};

static OBJECT: &[u8] = aya::include_bytes_aligned!("../recorder.bpf.o");

/// Programs and their tracepoints, in the order in which they are attached: ends of calls before their
/// beginnings, so that no call is seen to begin whose end is missed.
const PROGRAMS: [(&str, &str); 5] = [
    ("on_fork", "sched_process_fork"),
    ("on_exec", "sched_process_exec"),
    ("on_end", "sched_process_exit"),
    ("on_exit", "sys_exit"),
    ("on_enter", "sys_enter"),
];

/// Those for requests inside io_uring, and how many arguments they expect of their tracepoints.
const REQUESTS: [(&str, &str, usize); 2] =
    [("on_complete", "io_uring_complete", 3), ("on_submit", "io_uring_submit_req", 1)];

/// Bytes of all CPUs' buffers, and of each at least and at most.
const ALL_BUFFERS: usize = 128 << 20;
const LEAST_BUFFER: usize = 1 << 20;
const MOST_BUFFER: usize = 16 << 20;
/// Tasks followed at a time.
const MOST_SLOTS: u32 = 1 << 16;

/// What `native/kernel.h` names: the structures, and their fields that are read.
#[rustfmt::skip]
const STRUCTURES: &[&str] = &[
    "pt_regs", "thread_info", "mm_struct", "sched_entity", "signal_struct", "task_struct", "linux_binprm",
    "io_cqe", "io_kiocb", "kiocb", "io_rw", "io_uring_cqe",
];
#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "r10", "r9", "r8", "dx", "si", "di", "orig_ax", "status", "arg_start", "arg_end", "sum_exec_runtime",
    "maxrss", "thread_info", "pid", "tgid", "exit_code", "mm", "files", "fs", "signal", "se", "utime", "stime",
    "filename", "interp", "flags", "opcode", "cqe", "fd", "kiocb", "ki_pos", "len", "res",
];

/// The tracepoints of [`PROGRAMS`] and [`REQUESTS`], as the kernel's types have them.
const TRACEPOINTS: &[&str] = &[
    "btf_trace_sched_process_fork",
    "btf_trace_sched_process_exec",
    "btf_trace_sched_process_exit",
    "btf_trace_sys_exit",
    "btf_trace_sys_enter",
    "btf_trace_io_uring_submit_req",
    "btf_trace_io_uring_complete",
];

const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The kernel's types as the loader wants them.
struct KernelTypes {
    structures: Btf,
    tracepoints: Btf,
    /// The tracepoints for requests are there, and as they are expected.
    shows_requests: bool,
}

impl KernelTypes {
    fn read() -> Result<KernelTypes, LoadError> {
        let what = "the kernel's types can't be read";
        let all = fs::read(KERNEL_TYPES).map_err(|error| failed(what, &error))?;
        let reduced = types::reduced(&all, STRUCTURES, FIELDS, TRACEPOINTS);
        let parsed = |bytes: &[u8]| {
            Btf::parse(bytes, aya::Endianness::default()).map_err(|error| failed(what, &error))
        };
        // What is not understood here is left to the loader.
        let (structures, tracepoints) = match &reduced {
            Some(reduced) => (reduced.structures.as_slice(), reduced.tracepoints.as_slice()),
            None => (all.as_slice(), all.as_slice()),
        };
        let shows_requests = reduced.as_ref().is_some_and(|reduced| {
            let fits = |(_, name, count): &(&str, &str, usize)| {
                reduced.arguments.get(format!("btf_trace_{name}").as_str()) == Some(count)
            };
            REQUESTS.iter().all(fits)
        });
        Ok(KernelTypes { structures: parsed(structures)?, tracepoints: parsed(tracepoints)?, shows_requests })
    }
}

/// What the kernel said no to.
#[derive(Debug)]
pub struct LoadError {
    pub what: &'static str,
    pub why: String,
    pub errno: Option<i32>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// The innermost of an error's causes: what the kernel itself said.
fn failed(what: &'static str, error: &(dyn std::error::Error + 'static)) -> LoadError {
    let (mut innermost, mut errno) = (error, None);
    loop {
        errno = innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error).or(errno);
        match innermost.source() {
            Some(source) => innermost = source,
            None => break,
        }
    }
    // The verifier says how it came to think so, line by line; the last thing it says comes after.
    let why = innermost.to_string();
    let why = why.lines().next().unwrap_or_default().to_owned();
    LoadError { what, why, errno }
}

/// The programs, loaded, and their buffers. Dropping it takes them out of the kernel.
pub struct Programs {
    ebpf: Ebpf,
    pub(crate) cpus: Mapping,
    pub(crate) chunks: Mapping,
    slots: Mapping,
    slot_mask: u32,
    /// Requests inside io_uring are recorded.
    shows_requests: bool,
    pub(crate) cpu_count: usize,
    pub(crate) chunk_count: usize,
}

impl Programs {
    /// Loads the programs; nothing is recorded before [`attach`](Self::attach).
    ///
    /// # Errors
    /// No rights, a kernel without what is needed, no memory.
    pub fn load(plans: &[u64]) -> Result<Programs, LoadError> {
        let types = KernelTypes::read()?;
        let cpu_count = possible_cpus();
        let buffer = (ALL_BUFFERS / cpu_count).clamp(LEAST_BUFFER, MOST_BUFFER);
        let chunk_count = ((buffer / CHUNK) as u32).next_power_of_two();
        let chunk_mask = chunk_count - 1;
        let slot_count = slot_count();
        let slot_mask = slot_count - 1;
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&types.structures))
            .verifier_log_level(VerifierLogLevel::DISABLE)
            .override_global("plans", plans, true)
            .override_global("slot_mask", &slot_mask, true)
            .override_global("chunk_mask", &chunk_mask, true)
            .map_max_entries("slots", slot_count)
            .map_max_entries("cpus", cpu_count as u32)
            .map_max_entries("chunks", chunk_count * cpu_count as u32)
            .load(OBJECT)
            .map_err(|error| failed("the programs can't be prepared", &error))?;
        let chunk_count = chunk_count as usize;
        let mut loaded = Programs {
            cpus: mapped(&mut ebpf, "cpus", cpu_count * cpu::SIZE)?,
            chunks: mapped(&mut ebpf, "chunks", cpu_count * chunk_count * CHUNK)?,
            slots: mapped(&mut ebpf, "slots", slot_count as usize * slot::SIZE)?,
            ebpf,
            slot_mask,
            shows_requests: false,
            cpu_count,
            chunk_count,
        };
        for (program, tracepoint) in PROGRAMS {
            loaded.load_one(program, tracepoint, &types.tracepoints)?;
        }
        // Without these all else works.
        loaded.shows_requests = types.shows_requests
            && REQUESTS.iter().all(|(program, tracepoint, _)| {
                loaded.load_one(program, tracepoint, &types.tracepoints).is_ok()
            });
        Ok(loaded)
    }

    /// Begins to record the tasks that are followed.
    ///
    /// # Errors
    /// The kernel lets no program onto its tracepoints.
    pub fn attach(&mut self) -> Result<(), LoadError> {
        for (program, _) in PROGRAMS {
            self.attach_one(program)?;
        }
        if self.shows_requests {
            for (program, _, _) in REQUESTS {
                self.attach_one(program)?;
            }
        }
        Ok(())
    }

    fn program(&mut self, name: &'static str) -> Result<&mut BtfTracePoint, LoadError> {
        let program = self.ebpf.program_mut(name).and_then(|program| program.try_into().ok());
        program.ok_or(LoadError { what: "the programs are not complete", why: name.into(), errno: None })
    }

    fn load_one(&mut self, name: &'static str, tracepoint: &str, types: &Btf) -> Result<(), LoadError> {
        let loaded = self.program(name)?.load(tracepoint, types);
        loaded.map_err(|error| failed("the kernel does not take the programs", &error))
    }

    fn attach_one(&mut self, name: &'static str) -> Result<(), LoadError> {
        let attached = self.program(name)?.attach();
        attached.map(drop).map_err(|error| failed("the tracepoints can't be used", &error))
    }

    fn places(&self, tid: u32) -> [usize; 2] {
        let first = tid & self.slot_mask;
        let second = (tid.wrapping_mul(2_654_435_761) >> 12) & self.slot_mask;
        [first as usize * slot::SIZE, second as usize * slot::SIZE]
    }

    /// The call that a followed task is in.
    pub fn in_call(&self, tid: u32) -> Option<InCall> {
        let half = |at| self.slots.half(at).load(Ordering::SeqCst);
        let word = |at| self.slots.word(at).load(Ordering::SeqCst);
        let at = self.places(tid).into_iter().find(|at| half(at + slot::TID) == tid)?;
        let start = word(at + slot::START);
        let call = InCall {
            tid,
            start,
            number: half(at + slot::NUMBER) as usize,
            arguments: std::array::from_fn(|index| word(at + slot::ARGUMENTS + 8 * index)),
        };
        // It may have gone on while we looked.
        let same = half(at + slot::STATE) == slot::STATE_IN_CALL && word(at + slot::START) == start;
        same.then_some(call)
    }

    /// Follows a task from its next call on; `false` if too many are followed already.
    pub fn follow(&self, tid: u32, tgid: u32) -> bool {
        self.places(tid).into_iter().any(|at| self.claim(at, tid, tgid))
    }

    fn claim(&self, at: usize, tid: u32, tgid: u32) -> bool {
        let word = self.slots.half(at + slot::TID);
        if word.load(Ordering::SeqCst) == tid {
            return true;
        }
        // Its program looks at the id first; until then nobody but us touches a free slot's other fields.
        if word.load(Ordering::SeqCst) != 0 {
            return false;
        }
        self.slots.half(at + slot::TGID).store(tgid, Ordering::SeqCst);
        self.slots.half(at + slot::STATE).store(slot::STATE_SKIP, Ordering::SeqCst);
        word.compare_exchange(0, tid, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn sum(&self, field: usize) -> u64 {
        (0..self.cpu_count).map(|at| self.cpus.word(at * cpu::SIZE + field).load(Ordering::SeqCst)).sum()
    }

    /// Records for which there was no room, so far.
    pub fn dropped(&self) -> u64 {
        self.sum(cpu::DROPPED)
    }

    /// Calls of 32-bit programs, so far.
    pub fn foreign(&self) -> u64 {
        self.sum(cpu::FOREIGN)
    }

    /// Tasks for which there was no slot, so far.
    pub fn untracked(&self) -> u64 {
        self.sum(cpu::UNTRACKED)
    }
}

fn mapped(ebpf: &mut Ebpf, name: &'static str, length: usize) -> Result<Mapping, LoadError> {
    let map = ebpf.map(name);
    let Some(Map::Array(data)) = map else {
        return Err(LoadError { what: "the programs are not complete", why: name.into(), errno: None });
    };
    let descriptor = std::os::fd::AsFd::as_fd(data.fd());
    Mapping::new(descriptor, length, true).map_err(|error| failed("the buffers can't be shared", &error))
}

/// CPUs that this machine can have: the last of `0-3,8-11`, plus one.
fn possible_cpus() -> usize {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get()), |last| last + 1)
}

/// As many as the machine has thread ids, so that each has its place, within reason.
fn slot_count() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    let most: u32 = text.trim().parse().unwrap_or(MOST_SLOTS);
    most.clamp(1024, MOST_SLOTS).next_power_of_two()
}
