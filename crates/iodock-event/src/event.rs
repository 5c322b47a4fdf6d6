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
    /// The end of a two-ended call (such as sendfile or rename) that a row shows.
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
    /// The way in which a task was created.
    TaskOrigin { Root = 0 "root", Fork = 1 "fork", Vfork = 2 "vfork", Thread = 3 "thread", Attached = 4 "attached", }
}

impl FileKind {
    /// Returns whether the file has a path. `--kind file` selects such files.
    pub fn has_path(self) -> bool {
        (self as u8) <= FileKind::Fifo as u8
    }

    /// Converts a file type as in `st_mode >> 12`.
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
        /// Rows as columns of equal length, in the order in which the calls ended. A call with two ends takes
        /// two adjacent rows: `side` is `In` and then `Out`, or `Old` and then `New`. Unknown numbers are
        /// [`crate::UNKNOWN`], absent ids [`crate::NONE`].
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
            /// Keeps the rows whose flag in `keep` is true.
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
    /// Start time, ns.
    ts: i64,
    /// End time, ns; set only if it differs from `ts + dur`, because truss stamps the ends of calls.
    end_ts: i64,
    /// Elapsed time of the call, ns.
    dur: i64,
    /// System CPU time, ns. Only `truss -E` shows it.
    sys_cpu: i64,
    /// The call's `CallId` as a number.
    call: u16,
    /// The error's `ErrnoId` as a number; `u16::MAX` if the call did not fail.
    errno: u16,
    /// Value that the call returned; UNKNOWN if it did not return.
    result: i64,
    /// Row of the task in the processes table.
    utid: u32,
    /// Row of the file in the files table.
    file: u32,
    /// For a two-ended call: row of the file at the other end.
    other_file: u32,
    /// The end that the row shows: `Side` as a number.
    side: u8,
    /// Bytes requested.
    requested: i64,
    /// Offset in the file, bytes; UNKNOWN if it cannot be determined (appends) or does not apply.
    offset: i64,
    /// Bytes transferred at this end; 0 at the end of the file; UNKNOWN if the call moves none.
    bytes: i64,
    /// Direction of the bytes: `Direction` as a number.
    direction: u8,
    /// Descriptor number that the program used.
    fd: i32,
    /// Number of the open file description, unique in the store.
    handle: u32,
    /// Open flags of calls that open a file; `u32::MAX` for other calls.
    flags: u32,
    /// Access pattern: `AccessPattern` as a number.
    pattern: u8,
    /// `offset` minus the end of the previous access through the same open file description, bytes.
    gap: i64,
    /// Bytes of this access that this process had read before.
    own_read: i64,
    /// Bytes of this access that any process had read before.
    any_read: i64,
    /// Bytes of this access that this process had written before.
    own_written: i64,
    /// Bytes of this access that any process had written before.
    any_written: i64,
    /// Row of the interface call (such as an MPI-IO call) inside which the task made this call.
    interface_call: u32,
    /// Row of the sites table: the place in the program's code that a user would change.
    site: u32,
    /// Id of the call stack in the stacks table.
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
    /// A row for a call about which nothing is known: task 0, no file, no numbers. All rows start from it, so
    /// this is the only place that defines the null value of a column.
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
