//! Loads the kernel's programs and their maps.

use crate::calls::rounds::InCall;
use crate::error::{failed, LoadError};
use crate::format::{cpu, run, slot, Kind, CHUNK};
use crate::mapping::{Contents, Mapping};
use crate::record::put_note;
use crate::types::{self, Reduced, Tracepoint};
use crate::{kernel, object};
use aya_obj::btf::Btf;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::{fs, io};

/// Programs and their tracepoints, in the order of attaching. The program for ends of calls is attached
/// before the one for beginnings, so that no recorded beginning lacks its end.
const PROGRAMS: [(&str, &str); 5] = [
    ("on_fork", "sched_process_fork"),
    ("on_exec", "sched_process_exec"),
    ("on_end", "sched_process_exit"),
    ("on_exit", "sys_exit"),
    ("on_enter", "sys_enter"),
];

/// Programs for requests inside io_uring, their tracepoints, and the number of arguments that they expect.
const REQUESTS: [(&str, &str, usize); 2] =
    [("on_complete", "io_uring_complete", 3), ("on_submit", "io_uring_submit_req", 1)];

/// Program for the page cache, its tracepoint, and the number of arguments that it expects.
const PAGES: (&str, &str, usize) = ("on_page", "mm_filemap_add_to_page_cache", 1);

/// Size in bytes of all CPUs' buffers together, and smallest and largest size of one CPU's buffer.
const ALL_BUFFERS: usize = 128 << 20;
const LEAST_BUFFER: usize = 1 << 20;
const MOST_BUFFER: usize = 4 << 20;
/// Largest number of tasks that are followed at the same time.
const MOST_SLOTS: u32 = 1 << 16;

/// Names of the kernel's structures in `native/kernel.h`. The names of the fields that the programs read
/// follow.
#[rustfmt::skip]
const STRUCTURES: &[&str] = &[
    "pt_regs", "thread_info", "mm_struct", "sched_entity", "signal_struct", "task_struct", "linux_binprm",
    "io_cqe", "io_kiocb", "kiocb", "io_rw", "io_uring_cqe", "super_block", "inode", "address_space", "file",
    "fdtable", "files_struct", "folio", "page", "pageflags",
];
#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "r10", "r9", "r8", "cx", "dx", "si", "di", "orig_ax", "ip", "status", "arg_start", "arg_end", "sum_exec_runtime",
    "maxrss", "thread_info", "pid", "tgid", "exit_code", "mm", "files", "fs", "signal", "se", "utime", "stime",
    "filename", "interp", "file", "flags", "opcode", "cqe", "fd", "kiocb", "ki_pos", "len", "res",
    "s_dev", "i_mode", "i_sb", "i_ino", "i_rdev", "host", "f_mapping", "max_fds", "fdt", "mapping", "index", "_flags_1",
    "_folio_order", "PG_head",
];

/// Names of the tracepoints of [`PROGRAMS`], [`REQUESTS`] and [`PAGES`] among the kernel's types.
const TRACEPOINTS: &[&str] = &[
    "btf_trace_sched_process_fork",
    "btf_trace_sched_process_exec",
    "btf_trace_sched_process_exit",
    "btf_trace_sys_exit",
    "btf_trace_sys_enter",
    "btf_trace_io_uring_submit_req",
    "btf_trace_io_uring_complete",
    "btf_trace_mm_filemap_add_to_page_cache",
];

const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Parts of the kernel's types that the loader needs.
struct KernelTypes {
    structures: Btf,
    tracepoints: HashMap<&'static str, Tracepoint>,
    /// Whether the tracepoints of io_uring exist with the expected arguments.
    shows_requests: bool,
    /// Whether the page cache's tracepoint exists and the programs can find the number of pages of a folio.
    shows_pages: bool,
}

impl KernelTypes {
    fn read() -> Result<KernelTypes, LoadError> {
        let what = "the kernel's types can't be read";
        let all = Contents::of(KERNEL_TYPES).map_err(|error| failed(what, &error))?;
        let reduced = types::reduced(all.bytes(), STRUCTURES, FIELDS, TRACEPOINTS);
        let not_understood = || LoadError { what, why: "their form is not known".into(), errno: None };
        let reduced = reduced.ok_or_else(not_understood)?;
        let sized = sizes_are_known(&reduced);
        let Reduced { structures, tracepoints } = reduced;
        let structures = Btf::parse(&structures, Default::default()).map_err(|error| failed(what, &error))?;
        let mut types = KernelTypes { structures, tracepoints, shows_requests: false, shows_pages: false };
        types.shows_requests = REQUESTS.iter().all(|(_, name, count)| types.arguments(name) == Some(*count));
        types.shows_pages = sized && types.arguments(PAGES.1) == Some(PAGES.2);
        Ok(types)
    }

    fn find(&self, name: &str) -> Option<&Tracepoint> {
        self.tracepoints.get(format!("btf_trace_{name}").as_str())
    }

    fn arguments(&self, name: &str) -> Option<usize> {
        self.find(name).map(|tracepoint| tracepoint.arguments)
    }

    fn tracepoint(&self, name: &str) -> Result<u32, LoadError> {
        let what = "this kernel lacks a tracepoint";
        let missing = || LoadError { what, why: name.to_owned(), errno: None };
        self.find(name).map(|tracepoint| tracepoint.number).ok_or_else(missing)
    }
}

/// Returns whether the programs can find the number of pages of a folio, or each page of this kernel is
/// separate. Kernels between Linux 5.16 and 6.0 store the number elsewhere.
fn sizes_are_known(types: &Reduced) -> bool {
    let kept = ["_folio_order", "_flags_1"].iter().any(|field| types.has("folio", field));
    let kept = kept && types.has("pageflags", "PG_head");
    kept || (!types.has("folio", "index") && types.has("page", "index"))
}

/// The loaded programs and their buffers. Dropping this value removes them from the kernel.
pub struct Programs {
    /// Descriptors of the programs, in the order of attaching.
    programs: Vec<OwnedFd>,
    attached: Vec<OwnedFd>,
    pub(crate) cpus: Mapping,
    pub(crate) buffers: Mapping,
    slots: Mapping,
    runs: Mapping,
    /// Whether the page cache is recorded.
    pub shows_pages: bool,
    slot_mask: u32,
    pub(crate) cpu_count: usize,
    /// Size of a CPU's buffer in bytes.
    pub buffer_size: usize,
}

/// Result of an attempt to follow a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    New,
    Already,
    /// There is no free slot: too many tasks are followed.
    Full,
}

impl Programs {
    /// Loads the programs. They record nothing before [`attach`](Self::attach).
    ///
    /// # Errors
    /// Fails if privileges are missing, if the kernel lacks a required feature, or if there is no memory.
    pub fn load(plans: &[u64]) -> Result<Programs, LoadError> {
        let types = KernelTypes::read()?;
        let cpu_count = possible_cpus();
        let buffer_size = (ALL_BUFFERS / cpu_count).clamp(LEAST_BUFFER, MOST_BUFFER).next_power_of_two();
        let slot_count = slot_count();
        let slot_mask = slot_count - 1;
        let plans: Vec<u8> = plans.iter().flat_map(|plan| plan.to_ne_bytes()).collect();
        let constants: [(&str, &[u8]); 4] = [
            ("plans", &plans),
            ("slot_mask", &slot_mask.to_ne_bytes()),
            ("cpu_count", &(cpu_count as u32).to_ne_bytes()),
            ("chunk_mask", &(buffer_size as u32 / CHUNK as u32 - 1).to_ne_bytes()),
        ];
        let sizes = [
            ("slots", slot_count as usize * slot::SIZE),
            ("runs", slot_count as usize * run::SIZE),
            ("cpus", cpu_count * cpu::SIZE),
            ("chunks", cpu_count * buffer_size),
        ];
        let object = object::Programs::prepare(&types.structures, &constants, &sizes)?;
        let load = |(program, tracepoint)| object.load(program, types.tracepoint(tracepoint)?);
        let programs = PROGRAMS.into_iter().map(load).collect::<Result<Vec<_>, _>>()?;
        // A failure to load these optional programs is ignored, because all others work without them.
        let requests = REQUESTS.into_iter().filter(|_| types.shows_requests);
        let requests: Result<Vec<_>, _> = requests.map(|(program, on, _)| load((program, on))).collect();
        let pages = Some((PAGES.0, PAGES.1)).filter(|_| types.shows_pages).and_then(|pages| load(pages).ok());
        Ok(Programs {
            slots: mapped(&object, sizes[0])?,
            runs: mapped(&object, sizes[1])?,
            cpus: mapped(&object, sizes[2])?,
            buffers: mapped(&object, sizes[3])?,
            shows_pages: pages.is_some(),
            programs: programs.into_iter().chain(requests.unwrap_or_default()).chain(pages).collect(),
            attached: Vec::new(),
            slot_mask,
            cpu_count,
            buffer_size,
        })
    }

    /// Starts recording the followed tasks.
    ///
    /// # Errors
    /// Fails if the kernel does not allow a program at one of the tracepoints.
    pub fn attach(&mut self) -> Result<(), LoadError> {
        let attached = self.programs.iter().map(|program| kernel::attach(program.as_fd()));
        let attached: io::Result<Vec<OwnedFd>> = attached.collect();
        self.attached = attached.map_err(|error| failed("the tracepoints can't be used", &error))?;
        Ok(())
    }

    fn places(&self, tid: u32) -> [usize; 2] {
        let first = tid & self.slot_mask;
        let second = (tid.wrapping_mul(2_654_435_761) >> 12) & self.slot_mask;
        [first as usize * slot::SIZE, second as usize * slot::SIZE]
    }

    /// Returns the call that a followed task is in.
    pub fn in_call(&self, tid: u32) -> Option<InCall> {
        let half = |at| self.slots.half(at).load(Ordering::SeqCst);
        let word = |at| self.slots.word(at).load(Ordering::SeqCst);
        let at = self.place(tid)?;
        let start = word(at + slot::START);
        let call = InCall {
            tid,
            start,
            number: (half(at + slot::CALL) & 0xffff) as usize,
            arguments: std::array::from_fn(|index| word(at + slot::ARGUMENTS + 8 * index)),
        };
        // The values are valid only if the task has not continued while they were read.
        let same = half(at + slot::CALL) >> 16 == slot::STATE_IN_CALL && word(at + slot::START) == start;
        same.then_some(call)
    }

    /// Appends a record of the pages that a task has loaded and that no record contains yet.
    pub fn note_run(&self, notes: &mut Vec<u64>, tid: u32, now: u64) {
        let Some(at) = self.place(tid).map(|at| at / slot::SIZE * run::SIZE) else { return };
        let word = |field| self.runs.word(at + field).load(Ordering::SeqCst);
        let (first, next) = (word(run::FIRST), word(run::NEXT));
        let fields =
            [word(run::BEGUN), word(run::LAST), word(run::FILE) & run::CAUSE, word(run::INODE), first];
        // If the task has continued while the values were read, its own record contains these pages.
        if next > first && (word(run::FIRST), word(run::NEXT)) == (first, next) {
            put_note(notes, Kind::Pages, tid, now, &[&fields[..], &[next - first]].concat(), &[]);
        }
    }

    fn place(&self, tid: u32) -> Option<usize> {
        let is_its = |at: &usize| self.slots.half(at + slot::TID).load(Ordering::SeqCst) == tid;
        self.places(tid).into_iter().find(is_its)
    }

    /// Returns whether the task is followed. The programs free its slot when the task ends.
    pub fn follows(&self, tid: u32) -> bool {
        self.place(tid).is_some()
    }

    /// Follows a task. Its next call is the first that is recorded.
    pub fn follow(&self, tid: u32) -> Follow {
        if self.follows(tid) {
            Follow::Already
        } else if self.places(tid).into_iter().any(|at| self.claim(at, tid)) {
            Follow::New
        } else {
            Follow::Full
        }
    }

    fn claim(&self, at: usize, tid: u32) -> bool {
        let word = self.slots.half(at + slot::TID);
        // The programs first compare the id in the slot. A task that is created at this moment may take the
        // slot at the same time; the recorder then skips its present call.
        if word.load(Ordering::SeqCst) != 0 {
            return false;
        }
        self.slots.half(at + slot::RESULT).store(slot::NO_RESULT, Ordering::SeqCst);
        self.slots.half(at + slot::CALL).store(slot::STATE_SKIP << 16, Ordering::SeqCst);
        word.compare_exchange(0, tid, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn sum(&self, field: usize) -> u64 {
        (0..self.cpu_count).map(|at| self.cpus.word(at * cpu::SIZE + field).load(Ordering::SeqCst)).sum()
    }

    /// Returns the number of records for which there was no space.
    pub fn dropped(&self) -> u64 {
        self.sum(cpu::DROPPED)
    }

    /// Returns the number of calls of 32-bit programs.
    pub fn foreign(&self) -> u64 {
        self.sum(cpu::FOREIGN)
    }

    /// Returns the number of tasks for which there was no slot.
    pub fn untracked(&self) -> u64 {
        self.sum(cpu::UNTRACKED)
    }
}

fn mapped(object: &object::Programs, (name, length): (&'static str, usize)) -> Result<Mapping, LoadError> {
    let Some(map) = object.shared(name) else {
        return Err(LoadError { what: "the programs are not complete", why: name.into(), errno: None });
    };
    Mapping::new(map, length, true).map_err(|error| failed("the buffers can't be shared", &error))
}

/// Returns the number of CPUs that this machine can have: the last number of a text such as `0-3,8-11`, plus
/// one.
fn possible_cpus() -> usize {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get()), |last| last + 1)
}

/// Returns the number of slots: as many as the machine has thread ids, up to a limit, so that each thread has
/// its own slot.
fn slot_count() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    let most: u32 = text.trim().parse().unwrap_or(MOST_SLOTS);
    most.clamp(1024, MOST_SLOTS).next_power_of_two()
}
