//! Defines the format of the buffers, as `native/format.h` does in C (docs/explanation/bpf-buffers.md).

/// Version of the format. It is incremented when a program can no longer read older records.
pub const VERSION: u8 = 2;
/// Bytes of a chunk of a buffer. A record never crosses the end of a chunk.
pub const CHUNK: usize = 128 << 10;
/// Limit for call numbers: all system calls of this machine have smaller numbers.
pub const CALL_NUMBERS: usize = 512;
/// Longest copied string in bytes. A name of this length was cut.
pub const STRING_LIMIT: usize = 4096;
/// Largest number of words in a record, whose length has 16 bits.
pub const MOST_WORDS: usize = 0xffff;

/// The kind of a record, in its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Padding,
    Small,
    Positioned,
    General,
    Unfinished,
    Fork,
    Exec,
    Exit,
    /// A request of io_uring. The record's number is the operation.
    Request,
    // The recorder writes the following kinds.
    /// A thread that is followed from now on: process and flags, rank, working directory, command.
    Start,
    /// An open descriptor: number and type, position, flags, size, and the name of its file.
    Descriptor,
    /// A task whose end was not recorded.
    Gone,
    // The kernel's programs also write the following kinds: small records that leave out values of the previous
    // record. The reader expands them before use.
    /// A call with the same thread, number and descriptor as the CPU's previous small record, and with the size
    /// and result of that thread's previous small record.
    Again,
    /// A call with time and duration. Its size and result are those of the task's previous small record.
    Short,
    /// A record like `Short`, with an offset.
    ShortPositioned,
    /// A record like `Short`, with size and result.
    ShortSized,
    // The following kinds are stored as requests, whose numbers distinguish them.
    /// Pages that a task loaded into the page cache.
    Pages,
    /// The file of a descriptor, identified by device and inode in the page cache.
    Identity,
    /// A name of a page-cache file. The recorder writes this record.
    Name,
    /// The MPI rank that a process's environment contains. The recorder writes this record.
    Rank,
}

impl Kind {
    /// Returns the kind of a record whose first word contains this kind and number.
    #[inline]
    pub fn of(kind: usize, number: usize) -> Kind {
        match KINDS.get(kind).copied().unwrap_or(Kind::Padding) {
            Kind::Request if number >= PAGES => {
                MORE_KINDS.get(number - PAGES).copied().unwrap_or(Kind::Padding)
            }
            kind => kind,
        }
    }

    /// Returns kind and number as the first word stores them. The number is 0 for kinds that use it for
    /// something else.
    pub fn numbers(self) -> (usize, usize) {
        match MORE_KINDS.iter().position(|&kind| kind == self) {
            Some(at) => (Kind::Request as usize, PAGES + at),
            None => (self as usize, 0),
        }
    }
}

/// First number that stands for a kind instead of a request. io_uring's operations have smaller numbers.
const PAGES: usize = 0x800;
const MORE_KINDS: [Kind; 4] = [Kind::Pages, Kind::Identity, Kind::Name, Kind::Rank];

pub const KINDS: [Kind; 16] = [
    Kind::Padding,
    Kind::Small,
    Kind::Positioned,
    Kind::General,
    Kind::Unfinished,
    Kind::Fork,
    Kind::Exec,
    Kind::Exit,
    Kind::Request,
    Kind::Start,
    Kind::Descriptor,
    Kind::Gone,
    Kind::Again,
    Kind::Short,
    Kind::ShortPositioned,
    Kind::ShortSized,
];

/// Number of words of short records, by kind, and the minimum for AGAIN. It is 0 for records that contain
/// their length.
pub const SHORT_WORDS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3];
/// Number of bits of the time in a short record. The duration follows.
pub const SHORT_TIME: u32 = 40;

/// Smallest number of words of a record, by kind.
pub const LEAST_WORDS: [u8; 16] = [2, 4, 5, 10, 10, 5, 6, 7, 3, 4, 6, 2, 1, 2, 3, 3];

/// Fields of the only word of a [`Kind::Again`], after page and kind.
pub mod again {
    /// Value in place of the page number if the offset follows as another word.
    pub const NO_PAGE: u64 = 0xffff;
    /// Number of low bits that a page's offsets take.
    pub const PAGE: u32 = 12;
    pub const GAP: u32 = 20;
    pub const BITS: u32 = 22;
    pub const DURATION: u32 = GAP + BITS;
}

/// Flags of a [`Kind::Start`].
pub mod start {
    /// The thread was running before the recording.
    pub const ATTACHED: u32 = 1;
    /// The recorder has created the process, which will execute the program.
    pub const LAUNCHED: u32 = 2;
}

/// Bits of a plan, which says how a call is recorded.
pub mod plan {
    pub const RECORDED: u64 = 1;
    /// The first argument is a descriptor and the third a size. Of the others only an offset (POSITIONED) is
    /// recorded.
    pub const SMALL: u64 = 2;
    /// The fourth argument is an offset.
    pub const POSITIONED: u64 = 4;
    /// The call never returns.
    pub const EXITS: u64 = 8;
    /// The call is mmap, which is recorded only with a descriptor.
    pub const MAPS: u64 = 16;
    /// The call writes to the file of its first argument: pages of this file that it adds to the page cache
    /// may be written ones.
    pub const WRITES: u64 = 32;
    /// The call moves data between two descriptors: with WRITES from the second argument to the first,
    /// otherwise from the first argument to the third.
    pub const TWO_ENDED: u64 = 64;
    /// The pages that the call adds to the page cache may belong to requests that it submits.
    pub const SUBMITS: u64 = 128;
    /// The call opens a file. Its record has the mode of the file in place of a sixth argument, which no such
    /// call has.
    pub const OPENS: u64 = 1 << 32;
    /// First bit of the descriptions of up to three pieces of memory. Each description takes a byte: 5 bits
    /// for the kind of piece, 3 bits for the number of the argument.
    pub const PIECES: u32 = 8;
    pub const MOST_PIECES: usize = 3;
}

/// Data copied from the memory behind an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Piece {
    None,
    String,
    /// Two descriptors, copied if the call succeeded.
    Pair,
    /// The beginning of a struct stat or statx, copied if the call succeeded.
    Stat,
    /// One word of 8 bytes.
    Word,
    /// I/O vectors. The third argument is their number.
    Vector,
    /// The I/O vectors of a message header. The next piece contains its control data.
    Message,
    /// Control blocks of io_submit: the address and 64 bytes of each. The second argument is their number.
    Blocks,
    /// Events that io_getevents returned. The result is their number.
    Events,
    /// Messages that sendmmsg and recvmmsg moved. The result is their number.
    Messages,
}

/// Offsets in a `struct slot`, which describes one followed task.
pub mod slot {
    pub const SIZE: usize = 64;
    pub const TID: usize = 0;
    pub const START: usize = 8;
    /// Call number and state, 16 bits each.
    pub const CALL: usize = 16;
    /// Result in the task's previous small record.
    pub const RESULT: usize = 20;
    pub const ARGUMENTS: usize = 24;
    pub const STATE_IN_CALL: u32 = 1;
    pub const STATE_SKIP: u32 = 2;
    pub const NO_RESULT: u32 = 1 << 31;
}

/// Offsets in a `struct run`: pages of one file that a task loaded and that no record contains yet.
pub mod run {
    pub const SIZE: usize = 64;
    pub const FIRST: usize = 8;
    pub const NEXT: usize = 16;
    pub const BEGUN: usize = 24;
    pub const LAST: usize = 32;
    pub const INODE: usize = 48;
    /// Device and cause, 32 bits each.
    pub const FILE: usize = 56;
    /// Mask of the bits of the cause that are recorded.
    pub const CAUSE: u64 = !(1 << 41);
}

/// Bit in the cause of a [`Kind::Pages`]: the pages belong to a block device itself, not to a file on it.
pub const PAGES_OF_DEVICE: u32 = 1 << 8;

/// Offsets in a `struct cpu`.
pub mod cpu {
    pub const SIZE: usize = 128;
    pub const HEAD: usize = 0;
    pub const TAIL: usize = 64;
    pub const DROPPED: usize = 72;
    pub const FOREIGN: usize = 80;
    pub const UNTRACKED: usize = 88;
}
