//! The tracker's output: events with their files, offsets and access patterns, column by column.

macro_rules! named {
    ($(#[$doc:meta])* $enum:ident { $($variant:ident = $value:literal $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $enum { $($variant = $value,)+ }
        impl $enum {
            pub const ALL: &'static [$enum] = &[$($enum::$variant,)+];
            pub fn name(self) -> &'static str { match self { $($enum::$variant => $name,)+ } }
        }
    };
}

named! {
    /// The end of a two-ended call that a row shows.
    Side { Only = 0 "only", In = 1 "in", Out = 2 "out", Old = 3 "old", New = 4 "new", }
}
named! {
    /// The direction in which a row's bytes moved.
    Direction { Neither = 0 "none", Read = 1 "read", Write = 2 "write", }
}
named! {
    /// The relation of an access to the previous one through the same open file description.
    AccessPattern {
        Unknown = 0 "unknown",
        First = 1 "first",
        Consecutive = 2 "consecutive",
        Sequential = 3 "sequential",
        Strided = 4 "strided",
        Backward = 5 "backward",
        Random = 6 "random",
        Repeated = 7 "repeated",
    }
}
named! {
    /// The kind of a file. `File` is a path about which nothing else is known.
    FileKind {
        File = 0 "file", Regular = 1 "regular", Directory = 2 "directory", Symlink = 3 "symlink",
        Device = 4 "device", Fifo = 5 "fifo", Pipe = 6 "pipe", Socket = 7 "socket", Memfd = 8 "memfd",
        Eventfd = 9 "eventfd", Epoll = 10 "epoll", Timerfd = 11 "timerfd", Signalfd = 12 "signalfd",
        Inotify = 13 "inotify", Pidfd = 14 "pidfd", IoUring = 15 "io_uring", Standard = 16 "standard",
        Unknown = 17 "unknown", Other = 18 "other",
    }
}
named! {
    /// How a task was created.
    TaskOrigin { Root = 0 "root", Fork = 1 "fork", Vfork = 2 "vfork", Thread = 3 "thread", Attached = 4 "attached", }
}

impl FileKind {
    /// Does it have a path? (`--kind file` shows those.)
    pub fn has_path(self) -> bool {
        (self as u8) <= FileKind::Fifo as u8
    }

    /// Converts `st_mode >> 12`.
    pub fn from_stat_type(stat_type: u8) -> Option<FileKind> {
        Some(match stat_type {
            0o1 => FileKind::Fifo,
            0o2 | 0o6 => FileKind::Device,
            0o4 => FileKind::Directory,
            0o10 => FileKind::Regular,
            0o12 => FileKind::Symlink,
            0o14 => FileKind::Socket,
            _ => return None,
        })
    }
}

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)+) => {
        /// Rows as columns of equal length, in the order in which the calls ended. A call with two ends
        /// is two rows, one after the other: `side` `In` then `Out`, or `Old` then `New`. Unknown
        /// numbers are [`crate::UNKNOWN`], absent ids [`crate::NONE`].
        #[derive(Clone, Debug, Default)]
        pub struct EventColumns { $($(#[$doc])* pub $name: Vec<$type>,)+ }
        /// One row of [`EventColumns`].
        #[derive(Clone, Copy, Debug)]
        pub struct EventRow { $(pub $name: $type,)+ }
        impl EventColumns {
            pub fn push(&mut self, row: &EventRow) { $(self.$name.push(row.$name);)+ }
            /// Adds many rows, which is faster than adding them one by one.
            pub fn extend(&mut self, rows: &[EventRow]) {
                $(self.$name.extend(rows.iter().map(|row| row.$name));)+
            }
            pub fn row(&self, index: usize) -> EventRow { EventRow { $($name: self.$name[index],)+ } }
            /// Keeps the rows with these flags.
            pub fn retain(&mut self, keep: &[bool]) {
                $(let mut at = keep.iter();
                self.$name.retain(|_| at.next().copied().unwrap_or(true));)+
            }
            pub fn clear(&mut self) { $(self.$name.clear();)+ }
            pub fn append(&mut self, other: &mut EventColumns) { $(self.$name.append(&mut other.$name);)+ }
            pub fn with_capacity(rows: usize) -> Self { EventColumns { $($name: Vec::with_capacity(rows),)+ } }
        }
    };
}

columns! {
    /// Start, ns.
    ts: i64,
    /// End, ns; only if it is not `ts + dur` (truss stamps ends).
    end_ts: i64,
    /// Elapsed ns.
    dur: i64,
    /// System CPU ns (truss -E).
    sys_cpu: i64,
    /// `CallId` as number.
    call: u16,
    /// `ErrnoId` as number, `u16::MAX` for none.
    errno: u16,
    /// Returned value; UNKNOWN for no result.
    result: i64,
    /// Row of the processes table.
    utid: u32,
    /// Row of the files table.
    file: u32,
    /// For a two-ended call: the file of the other end.
    other_file: u32,
    /// `Side` as number.
    side: u8,
    /// Bytes requested.
    requested: i64,
    /// Offset in the file, bytes; UNKNOWN if it cannot be determined (appends) or does not apply.
    offset: i64,
    /// Bytes transferred at this end; 0 at the end of the file; UNKNOWN if the call moves none.
    bytes: i64,
    /// `Direction` as number.
    direction: u8,
    /// The program's descriptor number.
    fd: i32,
    /// Open file description, unique in the store.
    handle: u32,
    /// Open flags of opening calls, else `u32::MAX`.
    flags: u32,
    /// `AccessPattern` as number.
    pattern: u8,
    /// `offset` minus the end of the previous access through the same description.
    gap: i64,
    /// Bytes of this access that this process had read before.
    own_read: i64,
    /// ... that any process had read before.
    any_read: i64,
    /// ... that this process had written before.
    own_written: i64,
    /// ... that any process had written before.
    any_written: i64,
    /// The call of an interface that the task was in.
    interface_call: u32,
    /// Row of the sites table: the place in the program that is to be changed.
    site: u32,
    /// Id of the stack in the stacks table.
    stack: u32,
}

impl EventColumns {
    pub fn len(&self) -> usize {
        self.ts.len()
    }
    pub fn is_empty(&self) -> bool {
        self.ts.is_empty()
    }
}

impl EventRow {
    /// A call about which nothing is known: task 0, no file, no numbers. All rows start from it, so the null
    /// of a new column is defined in one place.
    pub const BLANK: EventRow = EventRow {
        ts: crate::UNKNOWN,
        end_ts: crate::UNKNOWN,
        dur: crate::UNKNOWN,
        sys_cpu: crate::UNKNOWN,
        call: 0,
        errno: u16::MAX,
        result: crate::UNKNOWN,
        utid: 0,
        file: crate::NONE,
        other_file: crate::NONE,
        side: Side::Only as u8,
        requested: crate::UNKNOWN,
        offset: crate::UNKNOWN,
        bytes: crate::UNKNOWN,
        direction: Direction::Neither as u8,
        fd: crate::NO_FD,
        handle: crate::NONE,
        flags: u32::MAX,
        pattern: AccessPattern::Unknown as u8,
        gap: crate::UNKNOWN,
        own_read: crate::UNKNOWN,
        any_read: crate::UNKNOWN,
        own_written: crate::UNKNOWN,
        any_written: crate::UNKNOWN,
        interface_call: crate::NONE,
        site: crate::NONE,
        stack: crate::NONE,
    };
}
