//! Defines the layout of the session file, as native/session.h does in C. All numbers are little endian.

pub const MAGIC: u64 = u64::from_le_bytes(*b"IODOCKR\n");
pub const VERSION: u32 = 18;
pub const CHUNK_MAGIC: u32 = 0x4b4e_4843;
pub const CALL_NUMBERS: usize = 512;
pub const ROLES: usize = 6;
/// Number of process ids of last children in the header.
pub const BIRTHS: usize = 1024;
/// Largest number of code files other than libc in the header.
pub const MODULES: usize = 256;

/// Largest number of chunks that are offered for reuse at a time.
pub const OFFERED: usize = 64;

/// Offsets of the fields of the session's header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const TIME_SHIFT: usize = 12;
    pub const FILE_BYTES: usize = 16;
    pub const CHUNKS_AT: usize = 24;
    pub const CHUNK_BYTES: usize = 32;
    pub const CLOSED: usize = 36;
    pub const SITES_AT: usize = 40;
    pub const SITES_BYTES: usize = 48;
    pub const NUMBER: usize = 56;
    pub const NEXT_CHUNK: usize = 64;
    pub const LOST_CALLS: usize = 72;
    pub const LOST_STREAMS: usize = 80;
    pub const SITES_PATCHED: usize = 88;
    pub const SITES_LEFT: usize = 96;
    pub const STACKS: usize = 104;
    pub const STOPPED_PROCESSES: usize = 112;
    pub const BIRTHS: usize = 120;
    pub const WATCH_FROM: usize = 128;
    pub const WATCH_ASKING: usize = 136;
    pub const WATCH_BEGUN: usize = 140;
    pub const TRACE_WHAT: usize = 144;
    pub const TRACE_ASKING: usize = 152;
    pub const RECORDER: usize = 156;
    pub const ID_SPACE: usize = 160;
    pub const HEAD_BYTES: usize = 168;
    pub const OWNER: usize = 176;
    pub const COUNTS: usize = 180;
    pub const PYTHON_UNREAD: usize = 184;
    pub const PYTHON_VERSION: usize = 188;
    pub const OFFERED: usize = 192;
    pub const TABLES_USED: usize = 448;
    pub const TABLES_AT: usize = 456;
    pub const TABLES_MOST: usize = 464;
    pub const TABLE_BYTES: usize = 472;
    pub const FIRST_ACCESSES: usize = 480;
    pub const WHOLE_COUNT: usize = 488;
    pub const COUNTS_UNRANKED: usize = 492;
    pub const UNPLACED: usize = 496;
    pub const COUNTING: usize = 512;
    pub const WHOLE: usize = 1024;
    pub const RANK_NAMES: usize = 1536;
    pub const RANK_NAMES_BYTES: usize = 256;
    pub const SHAPES: usize = 4096;
    pub const LIBRARY: usize = 8192;
    pub const SESSION: usize = 9216;
    pub const TEXTS: usize = 10240;
    pub const PRELOADED: usize = 11264;
    pub const BORN: usize = 12288;
    pub const OTHERS: usize = 16384;
    pub const OTHER_BYTES: usize = 256;
    pub const BYTES: usize = OTHERS + super::MODULES * OTHER_BYTES;
}

/// Offsets of the fields of a chunk's header.
pub mod chunk {
    pub const MAGIC: usize = 0;
    pub const OVER: usize = 4;
    pub const USED: usize = 8;
    pub const FLIGHT: usize = 12;
    pub const TID: usize = 16;
    pub const PID: usize = 20;
    pub const BASE: usize = 24;
    pub const STREAM: usize = 32;
    pub const SEQUENCE: usize = 36;
    pub const LEVEL: usize = 40;
    pub const OWNER: usize = 44;
    pub const FLIGHT_START: usize = 48;
    pub const FLIGHT_FD: usize = 56;
    pub const GENERATION: usize = 60;
    pub const BYTES: usize = 64;
}

/// How the library handles a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    #[default]
    Ignored = 0,
    Data = 1,
    Positioned = 2,
    General = 3,
    Fork = 4,
    Exec = 5,
    Exit = 6,
    Map = 7,
    /// Not recorded: prctl and seccomp may forbid calls or the clock, so recording ends before they are made.
    Confine = 8,
    /// A general call whose result is a new descriptor.
    Open = 9,
    /// Not recorded: munmap and similar calls, which may unmap our memory.
    Guard = 10,
}

/// Meaning of an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    #[default]
    None = 0,
    Fd,
    Fd2,
    Path,
    Path2,
    Size,
    Vector,
    Message,
    Offset,
    OffsetPointer,
    OffsetPointer2,
    SeekPointer,
    Flags,
    PointedFlags,
    Argument,
    Pair,
    Stat,
    Statx,
    Blocks,
    Events,
    Messages,
    Ring,
}

/// How a call is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub kind: Kind,
    pub code: u8,
    pub roles: [Role; ROLES],
}

impl Shape {
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    pub fn bytes(&self) -> [u8; 8] {
        let mut bytes = [self.kind as u8, self.code, 0, 0, 0, 0, 0, 0];
        for (byte, role) in bytes[2..].iter_mut().zip(self.roles) {
            *byte = role as u8;
        }
        bytes
    }
}

/// Bits that say which programs the recorder traces after an exec.
pub mod trace {
    /// Programs whose calls the preloaded library does not see.
    pub const UNSEEN: u64 = 1;
    /// All programs, until they have loaded the library.
    pub const ALL: u64 = 2;
    /// Also programs that gain privileges by the exec.
    pub const PRIVILEGED: u64 = 4;
}

/// Messages of a process to its tracer: `prctl(CALL, message)`, a call that the kernel does not know.
pub mod mark {
    pub const CALL: u64 = 0x494f_444b;
    pub const ASKED: u64 = 1;
    pub const LOADING: u64 = 2;
    pub const LOADED: u64 = 3;
    pub const FAILED: u64 = 4;
    /// The tracer's answer to `LOADING` if the library must not record; otherwise the answer is 0.
    pub const STAY_OFF: u64 = 1;
}

pub const CODE_CONTROL: u8 = 255;
/// Precedes a call's record: the stack of this call, and of the following calls with the same code.
pub const CODE_STACK: u8 = 254;
/// The number after CODE_STACK. STACK_NEW: a new stack follows. STACK_NONE: the stack is unknown. Higher
/// numbers refer to stacks that were written earlier in this chunk.
pub const STACK_NEW: u64 = 0;
pub const STACK_NONE: u64 = 1;
/// Largest number of frames of a stack, and of Python frames.
pub const FRAMES: u64 = 32;
pub const PYTHON_FRAMES: u64 = 24;
pub const CONTROL_PROCESS: u8 = 1;
pub const CONTROL_TASK: u8 = 2;
pub const CONTROL_USAGE: u8 = 3;
pub const CONTROL_TRACED: u8 = 4;
pub const CONTROL_COUNTED: u8 = 5;
pub const CONTROL_INTERFACE: u8 = 6;

/// First bytes of the records of read, write, pread64 and pwrite64, to which flags for the present fields are
/// added.
pub const HEADS: [u8; 4] = [192, 200, 208, 228];
/// One more than the last head.
pub const HEADS_END: u8 = 248;
pub const WITH_OFFSET: u8 = 8;
pub const WITH_BLOCKS: u8 = 16;
pub const BLOCK_SHIFT: u32 = 9;

pub const HAS_FD: u8 = 1;
pub const HAS_SIZE: u8 = 2;
pub const HAS_RESULT: u8 = 4;
pub const HAS_OFFSET: u8 = 8;
pub const HAS_MORE: u8 = 16;
pub const STEP_BACK: u8 = 32;
pub const PHASE_ENTER: u8 = 64;
pub const PHASE_EXIT: u8 = 128;
pub const PHASE_NO_RETURN: u8 = PHASE_ENTER | PHASE_EXIT;

pub const MORE_PATH: u8 = 1;
pub const MORE_PATH2: u8 = 2;
pub const MORE_FLAGS: u8 = 4;
pub const MORE_ARGUMENT: u8 = 8;
pub const MORE_FD2: u8 = 16;
pub const MORE_OFFSET2: u8 = 32;
pub const MORE_STAT: u8 = 64;
pub const MORE_TEXT: u8 = 128;

/// One number holds a file's size, shifted by STAT_SHIFT, and its type. The type STAT_APART means that type
/// and size follow as separate numbers.
pub const STAT_SHIFT: u32 = 4;
pub const STAT_APART: u64 = 15;

/// Longest prefix that a path can share with the last new path, in bytes.
pub const LAST_PATH: usize = 224;

/// Number of entries for the fields of the last call with a code.
pub const HABITS: usize = 64;

pub const ITEM_WRITES: u8 = 1;
pub const ITEM_MOVES: u8 = 2;

/// Offsets of the fields of a module's header.
pub mod module {
    pub const BUILD_ID_BYTES: usize = 32;
    pub const SITES: usize = 36;
    pub const LEFT: usize = 40;
    pub const BYTES: usize = 44;
    pub const MOVED: usize = 48;
    pub const TRAMPOLINES_BYTES: usize = 52;
    pub const TRAMPOLINES_AT: usize = 56;
    pub const TEXT_AT: usize = 64;
    pub const TEXT_FROM: usize = 72;
    pub const TEXT_BYTES: usize = 76;
    pub const FILE: usize = 80;
    pub const TEXT_NUMBER: usize = 88;
    pub const TEXT_FILE: usize = 96;
}

pub const MODULE_BYTES: usize = 104;
pub const PATCH_BYTES: usize = 8;
pub const MOVED_BYTES: usize = 4;
/// Largest number of bytes of instructions that a trampoline takes over from its site.
pub const SITE_CODE: usize = 24;
/// Distance of the trampolines below their library: within reach of a jump, and usually below other loaded
/// code.
pub const DISTANCE: u64 = 1 << 30;
/// Smallest size of the file's head, which every process maps at once.
pub const HEAD_LEAST: u64 = 128 << 10;
