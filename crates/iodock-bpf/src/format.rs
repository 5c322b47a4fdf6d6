//! The buffers' format, as `native/format.h` has it (docs/explanation/bpf-buffers.md).

/// Goes up when records of old are no longer understood.
pub const VERSION: u8 = 2;
/// Bytes of a chunk; a record lies in one.
pub const CHUNK: usize = 128 << 10;
/// System calls have numbers below this.
pub const CALL_NUMBERS: usize = 512;
/// A name as long as this was cut.
pub const STRING_LIMIT: usize = 4096;
/// Words of a record at most: their number has 16 bits.
pub const MOST_WORDS: usize = 0xffff;

/// What a record is, in its first word.
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
    /// Of io_uring; its number is the operation.
    Request,
    // What follows is noted by the recorder.
    /// A thread that is followed from now on: process and flags; rank; working directory, command.
    Start,
    /// An open descriptor: number and type; position; flags; size; what it leads to.
    Descriptor,
    /// A task that ended unseen.
    Gone,
    // Again the programs': small ones that leave out what the record before tells. They become such before
    // they are looked at.
    /// Of the same thread, call and descriptor as the CPU's small record before, with the thread's size and result.
    Again,
    /// Time and duration; size and result are those of the task's small record before.
    Short,
    /// The same, with an offset.
    ShortPositioned,
    /// With size and result.
    ShortSized,
    // Requests by their kind; their number says what they are.
    /// Pages that a task brought into the page cache.
    Pages,
    /// The file that a descriptor is open on, as the page cache knows it.
    Identity,
    /// The recorder's: a name of such a file.
    Name,
    /// The recorder's: the rank that a process's environment names.
    Rank,
}

impl Kind {
    /// Of a record with that kind and number in its first word.
    #[inline]
    pub fn of(kind: usize, number: usize) -> Kind {
        match KINDS.get(kind).copied().unwrap_or(Kind::Padding) {
            Kind::Request if number >= PAGES => {
                MORE_KINDS.get(number - PAGES).copied().unwrap_or(Kind::Padding)
            }
            kind => kind,
        }
    }

    /// Kind and number as the first word has them; the number is 0 where others say it.
    pub fn numbers(self) -> (usize, usize) {
        match MORE_KINDS.iter().position(|&kind| kind == self) {
            Some(at) => (Kind::Request as usize, PAGES + at),
            None => (self as usize, 0),
        }
    }
}

/// From here on a request's number says that it is none.
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

/// Words of short records, by kind, with AGAIN's least; 0 for records that tell their length.
pub const SHORT_WORDS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3];
/// Bits of a short record's time; behind it is the duration.
pub const SHORT_TIME: u32 = 40;

/// Words of other records at least, by kind.
pub const LEAST_WORDS: [u8; 16] = [2, 4, 5, 10, 10, 5, 6, 7, 3, 4, 6, 2, 1, 2, 3, 3];

/// Parts of the one word of a [`Kind::Again`], behind page and kind.
pub mod again {
    /// In place of the page: the offset follows.
    pub const NO_PAGE: u64 = 0xffff;
    /// Bits of an offset in a page.
    pub const PAGE: u32 = 12;
    pub const GAP: u32 = 20;
    pub const BITS: u32 = 22;
    pub const DURATION: u32 = GAP + BITS;
}

/// Flags of a [`Kind::Start`].
pub mod start {
    /// It ran before.
    pub const ATTACHED: u32 = 1;
    /// It is ours, and will execute the program.
    pub const LAUNCHED: u32 = 2;
}

/// Bits of a plan: how a call is recorded.
pub mod plan {
    pub const RECORDED: u64 = 1;
    /// First argument a descriptor, third a size: enough for the call.
    pub const SMALL: u64 = 2;
    /// The fourth is an offset.
    pub const POSITIONED: u64 = 4;
    /// Never returns.
    pub const EXITS: u64 = 8;
    /// mmap: not without a descriptor.
    pub const MAPS: u64 = 16;
    /// What it adds to the page cache it may have written: by its first argument, or the other end's.
    pub const WRITES: u64 = 32;
    pub const TWO_ENDED: u64 = 64;
    /// What it adds may be of requests that it submits.
    pub const SUBMITS: u64 = 128;
    /// It opens a file: the sixth argument is the mode of that.
    pub const OPENS: u64 = 1 << 32;
    /// Up to three pieces of memory from here on, a byte each: what 5 bits, argument 3 bits.
    pub const PIECES: u32 = 8;
    pub const MOST_PIECES: usize = 3;
}

/// What is copied of the memory behind an argument.
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
    /// The I/O vectors of a message header, and as the next piece its control data.
    Message,
    /// Control blocks of io_submit, counted by the second argument: the address and 64 bytes of each.
    Blocks,
    /// The events that io_getevents gave, as many as its result says.
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
    /// Of the small record before.
    pub const RESULT: usize = 20;
    pub const ARGUMENTS: usize = 24;
    pub const STATE_IN_CALL: u32 = 1;
    pub const STATE_SKIP: u32 = 2;
    pub const NO_RESULT: u32 = 1 << 31;
}

/// Offsets in a `struct run`: pages of one file that a task brought in, not yet told of.
pub mod run {
    pub const SIZE: usize = 64;
    pub const FIRST: usize = 8;
    pub const NEXT: usize = 16;
    pub const BEGUN: usize = 24;
    pub const LAST: usize = 32;
    pub const INODE: usize = 48;
    /// Device and cause, 32 bits each.
    pub const FILE: usize = 56;
    /// The part of the cause that is told.
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
