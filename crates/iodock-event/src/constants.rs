//! Names of flags and commands as logs print them, and their Linux numbers. Some sources print names (strace,
//! truss), others see numbers (ptrace).

pub const O_WRONLY: u64 = 0o1;
pub const O_RDWR: u64 = 0o2;
pub const O_CREAT: u64 = 0o100;
pub const O_EXCL: u64 = 0o200;
pub const O_TRUNC: u64 = 0o1000;
pub const O_APPEND: u64 = 0o2000;
pub const O_NONBLOCK: u64 = 0o4000;
pub const O_DSYNC: u64 = 0o10000;
pub const O_ASYNC: u64 = 0o20000;
pub const O_DIRECT: u64 = 0o40000;
pub const O_DIRECTORY: u64 = 0o200000;
pub const O_NOATIME: u64 = 0o1000000;
pub const O_NOFOLLOW: u64 = 0o400000;
pub const O_CLOEXEC: u64 = 0o2000000;
pub const O_SYNC: u64 = 0o4010000;
pub const O_PATH: u64 = 0o10000000;
pub const O_TMPFILE: u64 = 0o20200000;
/// Flag of io_uring_enter: the descriptor argument is an index into the registered descriptors.
pub const IORING_ENTER_REGISTERED_RING: u64 = 16;
/// The flags that `F_SETFL` changes on Linux (fcntl(2)); it ignores the others.
pub const CHANGED_BY_SETFL: u64 = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;

pub const CLONE_VM: u64 = 0x100;
pub const CLONE_FS: u64 = 0x200;
pub const CLONE_FILES: u64 = 0x400;
pub const CLONE_VFORK: u64 = 0x4000;
pub const CLONE_PARENT: u64 = 0x8000;
pub const CLONE_THREAD: u64 = 0x10000;
pub const CLONE_PIDFD: u64 = 0x1000;

pub const F_DUPFD: u64 = 0;
pub const F_SETFD: u64 = 2;
pub const F_SETFL: u64 = 4;
pub const F_DUPFD_CLOEXEC: u64 = 1030;
/// Solaris command that duplicates a descriptor like dup2. Linux has no such command, so iodock uses a number
/// that Linux does not use.
pub const F_DUP2FD: u64 = 0x1_0000;
pub const FD_CLOEXEC: u64 = 1;

pub const CLOSE_RANGE_UNSHARE: u64 = 2;
pub const CLOSE_RANGE_CLOEXEC: u64 = 4;

pub const FIOCLEX: u64 = 0x5451;
pub const FIONCLEX: u64 = 0x5450;

pub const AT_EMPTY_PATH: u64 = 0x1000;
pub const AT_REMOVEDIR: u64 = 0x200;
pub const MAP_SHARED: u64 = 1;
pub const MAP_ANONYMOUS: u64 = 0x20;
/// Flag of pwritev2 that has the effect of the open flag O_DSYNC, for one call only. The next two correspond
/// to O_SYNC and O_APPEND.
pub const RWF_DSYNC: u64 = 0x2;
pub const RWF_SYNC: u64 = 0x4;
pub const RWF_APPEND: u64 = 0x10;

/// Returns whether `name` (without `O_`) is a flag of open on Linux, FreeBSD, illumos or Solaris. The list
/// includes flags that do not influence tracking.
pub fn is_open_flag(name: &[u8]) -> bool {
    const OTHERS: &[&[u8]] = &[
        b"ACCMODE",
        b"EMPTY_PATH",
        b"EXEC",
        b"EXLOCK",
        b"FSYNC",
        b"LARGEFILE",
        b"NOCTTY",
        b"NOLINKS",
        b"NOSIGPIPE",
        b"RESOLVE_BENEATH",
        b"SEARCH",
        b"SHLOCK",
        b"TTY_INIT",
        b"VERIFY",
        b"XATTR",
        b"CLOFORK",
        b"CREATE",
        b"NODELAY",
    ];
    let plain = name.strip_prefix(b"__").unwrap_or(name);
    let plain = plain.strip_prefix(b"O_").unwrap_or(plain);
    OTHERS.contains(&plain) || value(name).is_some() || value(&[b"O_", plain].concat()).is_some()
}

/// Returns the Linux number of a flag or command. Names that do not influence tracking are not listed and
/// count as 0.
pub fn value(name: &[u8]) -> Option<u64> {
    Some(match name {
        b"O_RDONLY" => 0,
        b"O_WRONLY" => O_WRONLY,
        b"O_RDWR" => O_RDWR,
        b"O_CREAT" => O_CREAT,
        b"O_EXCL" => O_EXCL,
        b"O_TRUNC" => O_TRUNC,
        b"O_APPEND" | b"FAPPEND" => O_APPEND,
        b"O_NONBLOCK" | b"O_NDELAY" => O_NONBLOCK,
        b"O_DSYNC" => O_DSYNC,
        b"O_SYNC" | b"O_RSYNC" => O_SYNC,
        b"O_DIRECT" => O_DIRECT,
        b"O_DIRECTORY" => O_DIRECTORY,
        b"O_NOFOLLOW" => O_NOFOLLOW,
        b"O_CLOEXEC" | b"SOCK_CLOEXEC" | b"EFD_CLOEXEC" | b"EPOLL_CLOEXEC" | b"TFD_CLOEXEC"
        | b"SFD_CLOEXEC" | b"IN_CLOEXEC" | b"INOTIFY_CLOEXEC" => O_CLOEXEC,
        b"O_ASYNC" | b"FASYNC" => O_ASYNC,
        b"O_NOATIME" => O_NOATIME,
        b"O_PATH" => O_PATH,
        b"IORING_ENTER_REGISTERED_RING" => IORING_ENTER_REGISTERED_RING,
        b"O_TMPFILE" | b"__O_TMPFILE" => O_TMPFILE,
        b"CLONE_VM" => CLONE_VM,
        b"CLONE_FS" => CLONE_FS,
        b"CLONE_FILES" => CLONE_FILES,
        b"CLONE_VFORK" => CLONE_VFORK,
        b"CLONE_PARENT" => CLONE_PARENT,
        b"CLONE_THREAD" => CLONE_THREAD,
        b"CLONE_PIDFD" => CLONE_PIDFD,
        b"F_DUPFD" => F_DUPFD,
        b"F_SETFD" => F_SETFD,
        b"F_SETFL" => F_SETFL,
        b"F_GETFD" => 1,
        b"F_GETFL" => 3,
        b"F_DUPFD_CLOEXEC" => F_DUPFD_CLOEXEC,
        b"F_DUP2FD" => F_DUP2FD,
        b"FD_CLOEXEC" => FD_CLOEXEC,
        b"CLOSE_RANGE_UNSHARE" => CLOSE_RANGE_UNSHARE,
        b"CLOSE_RANGE_CLOEXEC" => CLOSE_RANGE_CLOEXEC,
        b"FIOCLEX" => FIOCLEX,
        b"FIONCLEX" => FIONCLEX,
        b"AT_EMPTY_PATH" => AT_EMPTY_PATH,
        b"AT_REMOVEDIR" => AT_REMOVEDIR,
        b"MFD_CLOEXEC" => O_CLOEXEC,
        b"RWF_DSYNC" => RWF_DSYNC,
        b"RWF_SYNC" => RWF_SYNC,
        b"RWF_APPEND" => RWF_APPEND,
        b"MAP_SHARED" => MAP_SHARED,
        b"MAP_ANONYMOUS" | b"MAP_ANON" => MAP_ANONYMOUS,
        b"SEEK_SET" => 0,
        b"SEEK_CUR" => 1,
        b"SEEK_END" => 2,
        b"SEEK_DATA" => 3,
        b"SEEK_HOLE" => 4,
        b"AT_FDCWD" => return None,
        _ => return stat_type(name).map(|kind| u64::from(kind) << STAT_TYPE_SHIFT),
    })
}

/// Number of bits by which the file type is shifted within a mode.
const STAT_TYPE_SHIFT: u32 = 12;

/// Returns the file type in a mode (`st_mode`, or the mode of mknod).
pub fn stat_type_of_mode(mode: u64) -> u8 {
    (mode >> STAT_TYPE_SHIFT & 0o17) as u8
}

/// Returns the type of an opened file from its mode, as recorders note it. A regular file has type 0.
pub fn special_type_of_mode(mode: u64) -> u8 {
    const REGULAR: u8 = 0o10;
    Some(stat_type_of_mode(mode)).filter(|&kind| kind != REGULAR).unwrap_or(0)
}

/// Returns the file type (`S_IFMT >> 12`) for the name that logs print in `st_mode=S_IFREG|0644`.
pub fn stat_type(name: &[u8]) -> Option<u8> {
    Some(match name {
        b"S_IFIFO" => 0o1,
        b"S_IFCHR" => 0o2,
        b"S_IFDIR" => 0o4,
        b"S_IFBLK" => 0o6,
        b"S_IFREG" => 0o10,
        b"S_IFLNK" => 0o12,
        b"S_IFSOCK" => 0o14,
        _ => return None,
    })
}
