//! The buffers' format, the same as in `native/format.h` (docs/explanation/bpf-buffers.md).

/// Incremented when old records are no longer understood.
pub const VERSION: u8 = 2;
/// Bytes of a chunk; a record is inside one.
pub const CHUNK: usize = 128 << 10;
/// System calls have numbers below this.
pub const CALL_NUMBERS: usize = 512;
/// A name of this length was cut.
pub const STRING_LIMIT: usize = 4096;
/// Words of a record at most: their number has 16 bits.
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
    /// A request of io_uring; its number is the operation.
    Request,
    // The recorder writes the following kinds.
    /// A thread that is followed from now on: process and flags; rank; working directory, command.
    Start,
    /// An open descriptor: number and type; position; flags; size; what it leads to.
    Descriptor,
    /// A task whose end was not recorded.
    Gone,
    // Written by the programs again: small records that leave out values of the previous record. They are
    // expanded before use.
    /// A call of the same thread, number and descriptor as the CPU's previous small record, with the thread's
    /// size and result.
    Again,
    /// Time and duration; size and result are those of the task's previous small record.
    Short,
    /// The same, with an offset.
    ShortPositioned,
    /// With size and result.
    ShortSized,
    // Requests that are distinguished by their number.
    /// Pages that a task loaded into the page cache.
    Pages,
    /// The file of a descriptor, by its identity in the page cache.
    Identity,
    /// The recorder's: a name of such a file.
    Name,
    /// Written by the recorder: the rank in a process's environment.
    Rank,
}

impl Kind {
    /// Length of a record with that kind and number in its first word.
    #[inline]
    pub fn of(kind: usize, number: usize) -> Kind {
        match KINDS.get(kind).copied().unwrap_or(Kind::Padding) {
            Kind::Request if number >= PAGES => {
                MORE_KINDS.get(number - PAGES).copied().unwrap_or(Kind::Padding)
            }
            kind => kind,
        }
    }

    /// Kind and number as in the first word; the number is 0 for kinds that use it otherwise.
    pub fn numbers(self) -> (usize, usize) {
        match MORE_KINDS.iter().position(|&kind| kind == self) {
            Some(at) => (Kind::Request as usize, PAGES + at),
            None => (self as usize, 0),
        }
    }
}

/// Numbers of requests are below this one.
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

/// Words of short records, by kind, with AGAIN's minimum; 0 for records that contain their length.
pub const SHORT_WORDS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3];
/// Bits of a short record's time; the duration follows.
pub const SHORT_TIME: u32 = 40;

/// Words of other records at least, by kind.
pub const LEAST_WORDS: [u8; 16] = [2, 4, 5, 10, 10, 5, 6, 7, 3, 4, 6, 2, 1, 2, 3, 3];

/// Fields of the one word of a [`Kind::Again`], after page and kind.
pub mod again {
    /// Instead of the page: the offset follows.
    pub const NO_PAGE: u64 = 0xffff;
    /// Bits of an offset in a page.
    pub const PAGE: u32 = 12;
    pub const GAP: u32 = 20;
    pub const BITS: u32 = 22;
    pub const DURATION: u32 = GAP + BITS;
}

/// Flags of a [`Kind::Start`].
pub mod start {
    /// It was running before.
    pub const ATTACHED: u32 = 1;
    /// It is ours, and will execute the program.
    pub const LAUNCHED: u32 = 2;
}

/// Bits of a plan: how a call is recorded.
pub mod plan {
    pub const RECORDED: u64 = 1;
    /// First argument a descriptor, third a size: nothing else is needed.
    pub const SMALL: u64 = 2;
    /// The fourth is an offset.
    pub const POSITIONED: u64 = 4;
    /// Never returns.
    pub const EXITS: u64 = 8;
    /// mmap: only with a descriptor.
    pub const MAPS: u64 = 16;
    /// It may have written the pages that it adds to the page cache: through its first argument, or the other
    /// end's.
    pub const WRITES: u64 = 32;
    pub const TWO_ENDED: u64 = 64;
    /// The pages that it adds may belong to requests that it submits.
    pub const SUBMITS: u64 = 128;
    /// It opens a file: the sixth argument is the file's mode.
    pub const OPENS: u64 = 1 << 32;
    /// First bit of the descriptions of up to three pieces of memory. Each takes a byte: 5 bits for the kind,
    /// 3 bits for the argument.
    pub const PIECES: u32 = 8;
    pub const MOST_PIECES: usize = 3;
}

/// Data copied from the memory behind an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Piece {
    None,
    String,
    /// Two descriptors, where the call succeeded.
    Pair,
    /// The beginning of a struct stat or statx, where the call succeeded.
    Stat,
    /// 8 bytes.
    Word,
    /// I/O vectors, counted by the third argument.
    Vector,
    /// The I/O vectors of a message header, and in the next piece its control data.
    Message,
    /// Control blocks of io_submit, counted by the second argument: the address and 64 bytes of each.
    Blocks,
    /// The events that io_getevents returned, as many as its result says.
    Events,
    /// The messages that sendmmsg and recvmmsg moved, as many as the result says.
    Messages,
}

/// Offsets in a `struct slot`: one followed task.
pub mod slot {
    pub const SIZE: usize = 64;
    pub const TID: usize = 0;
    pub const START: usize = 8;
    /// Number and state, 16 bits each.
    pub const CALL: usize = 16;
    /// Result of the previous small record.
    pub const RESULT: usize = 20;
    pub const ARGUMENTS: usize = 24;
    pub const STATE_IN_CALL: u32 = 1;
    pub const STATE_SKIP: u32 = 2;
    pub const NO_RESULT: u32 = 1 << 31;
}

/// Offsets in a `struct run`: pages of one file that a task loaded, not yet recorded.
pub mod run {
    pub const SIZE: usize = 64;
    pub const FIRST: usize = 8;
    pub const NEXT: usize = 16;
    pub const BEGUN: usize = 24;
    pub const LAST: usize = 32;
    pub const INODE: usize = 48;
    /// Device and cause, 32 bits each.
    pub const FILE: usize = 56;
    /// The part of the cause that is recorded.
    pub const CAUSE: u64 = !(1 << 41);
}

/// In the cause of a [`Kind::Pages`]: they are a block device's own.
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
