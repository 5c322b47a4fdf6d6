//! The system calls that iodock knows, with one line for each in [`CALLS`]. Every source and the tracker use
//! this table.

use crate::interner::Interner;
use std::sync::OnceLock;

/// A call's number: its index in [`CALLS`]. Names that are not in [`CALLS`] get the next numbers when a log
/// first shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct CallId(pub u16);

/// The kind of work that a call does, as used by `--by class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallClass {
    Data,
    Metadata,
    Seek,
    Sync,
    Map,
    Other,
}

impl CallClass {
    pub fn name(self) -> &'static str {
        match self {
            CallClass::Data => "data",
            CallClass::Metadata => "metadata",
            CallClass::Seek => "seek",
            CallClass::Sync => "sync",
            CallClass::Map => "map",
            CallClass::Other => "other",
        }
    }
}

/// The way in which the tracker handles a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The tracker only counts the call on its file.
    None,
    Open,
    Creat,
    Close,
    CloseRange,
    Dup,
    Dup2,
    Fcntl,
    Ioctl,
    Read,
    PositionedRead,
    Write,
    PositionedWrite,
    /// The call receives bytes from a socket, so it has no position.
    Receive,
    Send,
    /// recvmmsg and sendmmsg: the result is the number of messages; `items` holds the bytes of each.
    ReceiveMany,
    SendMany,
    /// vmsplice: the call moves bytes from memory into a pipe, or from a pipe into memory.
    PipeMemory,
    /// sendfile, copy_file_range, splice, tee: the call reads from `fd` and writes to `fd2`.
    Transfer,
    AsyncSubmit,
    AsyncComplete,
    /// io_uring_enter: the call submits requests and reports completed ones.
    RingEnter,
    /// The call's result is the new position.
    Seek,
    /// `_llseek`: the call stores the new position in memory; `offset` holds it.
    SeekResult,
    Map,
    Stat,
    /// The call sets the file's size to `argument`.
    Truncate,
    Readlink,
    ReadDirectory,
    ChangeDirectory,
    ChangeDirectoryFd,
    ChangeRoot,
    /// mkdir, rmdir: the path names a directory.
    Directory,
    /// mknod: the mode in `argument` contains the file type.
    Node,
    /// mkfifo, which is a system call on macOS and FreeBSD but not on Linux.
    NewFifo,
    /// unlink: the call removes the name.
    Unlink,
    /// rename, link: the call concerns both names.
    TwoNames,
    Symlink,
    NewPipe,
    NewSocket,
    NewSocketPair,
    NewAccepted,
    NewMemfd,
    NewEventfd,
    NewEpoll,
    NewTimerfd,
    NewSignalfd,
    NewInotify,
    NewPidfd,
    NewIoUring,
    /// The call returns a new descriptor, about which nothing else is known.
    NewUnnamed,
    /// pidfd_getfd: the call copies descriptor `argument` of the process that the pidfd `fd` refers to.
    NewFromProcess,
    Fork,
    Vfork,
    Clone,
    /// Solaris lwp_create: the call creates a thread of the same process.
    NewThread,
    Exec,
    Unshare,
    Exit,
}

/// The meaning of an argument, which determines the field of `RawCall` that it fills. Roles are listed in the
/// order in which strace prints the arguments. A vector is followed by its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    Skip,
    /// The argument fills `fd`.
    Fd,
    /// The argument fills `fd2`.
    Fd2,
    /// The directory descriptor of the path that follows; fills `fd`.
    DirFd,
    /// The directory descriptor of the second path; fills `fd2`.
    DirFd2,
    /// The argument fills `path`.
    Path,
    /// The argument fills `path2`.
    Path2,
    /// The number of bytes requested; fills `requested`.
    Size,
    /// An iovec array; the sum of its lengths fills `requested`.
    Vector,
    /// A msghdr; the sum of its lengths fills `requested`, and the descriptors that it passes fill `items`.
    Message,
    /// An mmsghdr array; the bytes of each message and the descriptors passed fill `items`.
    Messages,
    /// The argument fills `offset`.
    Offset,
    /// A pointer to an offset, shown as `[n]` or NULL; fills `offset`.
    OffsetPointer,
    /// A pointer to a second offset, shown as `[n]` or NULL; fills `offset2`.
    OffsetPointer2,
    /// A pointer to the new position, shown as `[n]`; fills `offset`.
    SeekPointer,
    /// Names or a number; fills `flags`.
    Flags,
    /// openat2's `{flags=...}`; fills `flags`.
    HowFlags,
    /// clone's `flags=...` or clone3's `{flags=...}`; fills `flags`.
    CloneFlags,
    /// A number or names; fills `argument`.
    Argument,
    /// The argument array of execve; fills `argv`.
    Arguments,
    /// A pair of new descriptors, shown as `[3, 4]`; fills `fd` and `fd2`.
    NewPair,
    /// A stat structure; fills `stat_type` and `stat_size`.
    StatBuffer,
    /// The control blocks of io_submit; fill `items`.
    ControlBlocks,
    /// The events of io_getevents; fill `items`.
    Completions,
    /// The requests that io_uring_enter finds in the ring's memory fill `items`. If the source does not show
    /// them, their number fills `argument`.
    Ring,
    /// The flags of io_uring_enter, which follow `Fd`. If they say that `fd` is an index of a registered
    /// descriptor, the reader clears `fd`, because the real descriptor is unknown.
    RingFlags,
}

/// The entry of one system call in [`CALLS`].
#[derive(Clone, Copy, Debug)]
pub struct CallSpec {
    pub name: &'static str,
    /// Name shared by variants of a call, such as `open` for open, open64 and openat. `--by family` groups by
    /// it.
    pub family: &'static str,
    pub class: CallClass,
    pub action: Action,
    pub roles: &'static [Role],
}

impl CallSpec {
    /// Returns whether a live recorder stops at this call. It stops at I/O, descriptor and process calls, but
    /// not at memory, time and signal calls. (Recorders also leave out mmap without a descriptor.)
    pub fn is_recorded(&self) -> bool {
        let touches_files = self
            .roles
            .iter()
            .any(|role| matches!(role, Role::Fd | Role::Fd2 | Role::DirFd | Role::Path | Role::NewPair));
        let waits = matches!(self.family, "poll" | "select");
        touches_files || waits || self.action != Action::None || self.class == CallClass::Sync
    }

    /// Returns whether the call opens a file and returns its descriptor. Recorders note the kind of that
    /// file.
    pub fn opens(&self) -> bool {
        matches!(self.action, Action::Open | Action::Creat)
    }

    /// Returns whether this is a request inside an io_uring. Such a request is not a system call, but sources
    /// that see it show it as one.
    pub fn is_ring_request(&self) -> bool {
        matches!(self.name, "io_uring_read" | "io_uring_write" | "io_uring_fsync")
    }

    /// Returns the roles of the arguments in the registers that live recorders read. The kernel takes the
    /// offset of preadv2 and pwritev2 in two registers, although strace prints one number.
    pub fn registers(&self) -> &'static [Role] {
        match self.name {
            "pwritev2" | "pwritev64v2" => {
                &[Role::Fd, Role::Vector, Role::Skip, Role::Offset, Role::Skip, Role::Flags]
            }
            // Only logs of other systems show flags for pipe; Linux has no such argument.
            "pipe" => &[Role::NewPair],
            _ => self.roles,
        }
    }

    pub fn has_role(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

/// The entry for a call that is not in [`CALLS`]. Of such a call iodock knows only the name.
static UNLISTED: CallSpec =
    CallSpec { name: "", family: "", class: CallClass::Other, action: Action::None, roles: &[] };

impl CallId {
    /// Returns the id of `name`; `None` when the name table is full.
    pub fn intern(name: &[u8]) -> Option<CallId> {
        interner().intern(name).map(CallId)
    }

    pub fn spec(self) -> &'static CallSpec {
        CALLS.get(self.0 as usize).unwrap_or(&UNLISTED)
    }

    pub fn name(self) -> String {
        match CALLS.get(self.0 as usize) {
            Some(spec) => spec.name.to_string(),
            None => interner().added_name(self.0).unwrap_or_default(),
        }
    }

    /// Returns the name of the call's family. A call that is not in [`CALLS`] forms its own family.
    pub fn family(self) -> String {
        match CALLS.get(self.0 as usize) {
            Some(spec) => spec.family.to_string(),
            None => self.name(),
        }
    }

    /// Returns every id assigned so far.
    pub fn all() -> impl Iterator<Item = CallId> {
        (0..interner().len() as u16).map(CallId)
    }
}

fn interner() -> &'static Interner {
    static INTERNER: OnceLock<Interner> = OnceLock::new();
    INTERNER.get_or_init(|| Interner::new(CALLS.iter().map(|spec| spec.name)))
}

const fn call(
    name: &'static str,
    family: &'static str,
    class: CallClass,
    action: Action,
    roles: &'static [Role],
) -> CallSpec {
    CallSpec { name, family, class, action, roles }
}

use self::{Action as A, CallClass as C, Role as R};

/// System calls of Linux (x86-64, aarch64, and names of 32-bit systems) and illumos. Arguments are in the
/// order in which strace and truss print them.
#[rustfmt::skip]
pub static CALLS: &[CallSpec] = &[
    call("open", "open", C::Metadata, A::Open, &[R::Path, R::Flags, R::Skip]),
    call("open64", "open", C::Metadata, A::Open, &[R::Path, R::Flags, R::Skip]),
    call("openat", "open", C::Metadata, A::Open, &[R::DirFd, R::Path, R::Flags, R::Skip]),
    call("openat64", "open", C::Metadata, A::Open, &[R::DirFd, R::Path, R::Flags, R::Skip]),
    call("openat2", "open", C::Metadata, A::Open, &[R::DirFd, R::Path, R::HowFlags, R::Skip]),
    call("creat", "open", C::Metadata, A::Creat, &[R::Path, R::Skip]),
    call("creat64", "open", C::Metadata, A::Creat, &[R::Path, R::Skip]),
    call("close", "close", C::Metadata, A::Close, &[R::Fd]),
    call("close_range", "close", C::Metadata, A::CloseRange, &[R::Fd, R::Argument, R::Flags]),
    call("closefrom", "close", C::Metadata, A::CloseRange, &[R::Fd]),
    call("dup", "dup", C::Metadata, A::Dup, &[R::Fd]),
    call("dup2", "dup", C::Metadata, A::Dup2, &[R::Fd, R::Fd2]),
    call("dup3", "dup", C::Metadata, A::Dup2, &[R::Fd, R::Fd2, R::Flags]),
    call("fcntl", "fcntl", C::Metadata, A::Fcntl, &[R::Fd, R::Flags, R::Argument]),
    call("fcntl64", "fcntl", C::Metadata, A::Fcntl, &[R::Fd, R::Flags, R::Argument]),
    call("lx_fcntl", "fcntl", C::Metadata, A::Fcntl, &[R::Fd, R::Flags, R::Argument]),
    call("ioctl", "ioctl", C::Other, A::Ioctl, &[R::Fd, R::Flags]),
    call("read", "read", C::Data, A::Read, &[R::Fd, R::Skip, R::Size]),
    call("readv", "read", C::Data, A::Read, &[R::Fd, R::Vector, R::Skip]),
    call("pread", "read", C::Data, A::PositionedRead, &[R::Fd, R::Skip, R::Size, R::Offset]),
    call("pread64", "read", C::Data, A::PositionedRead, &[R::Fd, R::Skip, R::Size, R::Offset]),
    call("preadv", "read", C::Data, A::PositionedRead, &[R::Fd, R::Vector, R::Skip, R::Offset]),
    call("preadv64", "read", C::Data, A::PositionedRead, &[R::Fd, R::Vector, R::Skip, R::Offset]),
    call("preadv2", "read", C::Data, A::PositionedRead, &[R::Fd, R::Vector, R::Skip, R::Offset]),
    call("preadv64v2", "read", C::Data, A::PositionedRead, &[R::Fd, R::Vector, R::Skip, R::Offset]),
    call("write", "write", C::Data, A::Write, &[R::Fd, R::Skip, R::Size]),
    call("writev", "write", C::Data, A::Write, &[R::Fd, R::Vector, R::Skip]),
    call("pwrite", "write", C::Data, A::PositionedWrite, &[R::Fd, R::Skip, R::Size, R::Offset]),
    call("pwrite64", "write", C::Data, A::PositionedWrite, &[R::Fd, R::Skip, R::Size, R::Offset]),
    call("pwritev", "write", C::Data, A::PositionedWrite, &[R::Fd, R::Vector, R::Skip, R::Offset]),
    call("pwritev64", "write", C::Data, A::PositionedWrite, &[R::Fd, R::Vector, R::Skip, R::Offset]),
    call("pwritev2", "write", C::Data, A::PositionedWrite, &[R::Fd, R::Vector, R::Skip, R::Offset, R::Flags]),
    call("pwritev64v2", "write", C::Data, A::PositionedWrite, &[R::Fd, R::Vector, R::Skip, R::Offset, R::Flags]),
    call("recv", "recv", C::Data, A::Receive, &[R::Fd, R::Skip, R::Size]),
    call("recvfrom", "recv", C::Data, A::Receive, &[R::Fd, R::Skip, R::Size]),
    call("recvmsg", "recv", C::Data, A::Receive, &[R::Fd, R::Message]),
    call("recvmmsg", "recv", C::Data, A::ReceiveMany, &[R::Fd, R::Messages]),
    call("recvmmsg_time64", "recv", C::Data, A::ReceiveMany, &[R::Fd, R::Messages]),
    call("send", "send", C::Data, A::Send, &[R::Fd, R::Skip, R::Size]),
    call("sendto", "send", C::Data, A::Send, &[R::Fd, R::Skip, R::Size]),
    call("sendmsg", "send", C::Data, A::Send, &[R::Fd, R::Message]),
    call("sendmmsg", "send", C::Data, A::SendMany, &[R::Fd, R::Messages]),
    call("so_socketcall", "so_socketcall", C::Other, A::None, &[]),
    call("mq_timedreceive", "recv", C::Data, A::None, &[R::Fd]),
    call("mq_timedreceive_time64", "recv", C::Data, A::None, &[R::Fd]),
    call("mq_timedsend", "send", C::Data, A::None, &[R::Fd]),
    call("mq_timedsend_time64", "send", C::Data, A::None, &[R::Fd]),
    call("sendfile", "sendfile", C::Data, A::Transfer, &[R::Fd2, R::Fd, R::OffsetPointer, R::Size]),
    call("sendfile64", "sendfile", C::Data, A::Transfer, &[R::Fd2, R::Fd, R::OffsetPointer, R::Size]),
    call("copy_file_range", "copy_file_range", C::Data, A::Transfer, &[R::Fd, R::OffsetPointer, R::Fd2, R::OffsetPointer2, R::Size]),
    call("splice", "splice", C::Data, A::Transfer, &[R::Fd, R::OffsetPointer, R::Fd2, R::OffsetPointer2, R::Size]),
    call("tee", "tee", C::Data, A::Transfer, &[R::Fd, R::Fd2, R::Size]),
    call("vmsplice", "vmsplice", C::Data, A::PipeMemory, &[R::Fd, R::Vector]),
    call("sendfilev", "sendfile", C::Data, A::None, &[R::Skip, R::Fd]),
    call("sendfilev64", "sendfile", C::Data, A::None, &[R::Skip, R::Fd]),
    call("io_submit", "io_submit", C::Data, A::AsyncSubmit, &[R::Skip, R::Skip, R::ControlBlocks]),
    call("io_getevents", "io_getevents", C::Data, A::AsyncComplete, &[R::Skip, R::Skip, R::Skip, R::Completions]),
    call("io_pgetevents", "io_getevents", C::Data, A::AsyncComplete, &[R::Skip, R::Skip, R::Skip, R::Completions]),
    call("io_getevents_time64", "io_getevents", C::Data, A::AsyncComplete, &[R::Skip, R::Skip, R::Skip, R::Completions]),
    call("io_pgetevents_time64", "io_getevents", C::Data, A::AsyncComplete, &[R::Skip, R::Skip, R::Skip, R::Completions]),
    call("io_setup", "io_setup", C::Other, A::None, &[]),
    call("io_destroy", "io_destroy", C::Other, A::None, &[]),
    call("io_cancel", "io_cancel", C::Other, A::None, &[]),
    // The following are requests inside an io_uring. Recorders that see them show them like calls.
    call("io_uring_read", "read", C::Data, A::PositionedRead, &[R::Fd, R::Skip, R::Size, R::Offset]),
    call("io_uring_write", "write", C::Data, A::PositionedWrite, &[R::Fd, R::Skip, R::Size, R::Offset]),
    call("io_uring_fsync", "fsync", C::Sync, A::None, &[R::Fd]),
    call("io_uring_setup", "io_uring_setup", C::Other, A::NewIoUring, &[]),
    call("io_uring_enter", "io_uring_enter", C::Other, A::RingEnter, &[R::Fd, R::Ring, R::Skip, R::RingFlags]),
    call("io_uring_register", "io_uring_register", C::Other, A::None, &[R::Fd]),
    call("readahead", "readahead", C::Data, A::None, &[R::Fd]),
    call("process_vm_readv", "process_vm_readv", C::Other, A::None, &[]),
    call("process_vm_writev", "process_vm_writev", C::Other, A::None, &[]),
    call("lseek", "lseek", C::Seek, A::Seek, &[R::Fd, R::Skip, R::Argument]),
    call("llseek", "lseek", C::Seek, A::Seek, &[R::Fd, R::Skip, R::Argument]),
    call("lseek64", "lseek", C::Seek, A::Seek, &[R::Fd, R::Skip, R::Argument]),
    call("_llseek", "lseek", C::Seek, A::SeekResult, &[R::Fd, R::Skip, R::SeekPointer, R::Argument]),
    call("fsync", "fsync", C::Sync, A::None, &[R::Fd]),
    call("fdatasync", "fdatasync", C::Sync, A::None, &[R::Fd]),
    call("syncfs", "syncfs", C::Sync, A::None, &[R::Fd]),
    call("fdsync", "fsync", C::Sync, A::None, &[R::Fd]),
    call("sync_file_range", "sync_file_range", C::Sync, A::None, &[R::Fd]),
    call("sync_file_range2", "sync_file_range", C::Sync, A::None, &[R::Fd]),
    call("arm_sync_file_range", "sync_file_range", C::Sync, A::None, &[R::Fd]),
    call("sync", "sync", C::Sync, A::None, &[]),
    call("msync", "msync", C::Sync, A::None, &[]),
    call("mmap", "mmap", C::Map, A::Map, &[R::Skip, R::Size, R::Skip, R::Flags, R::Fd, R::Offset]),
    call("mmap2", "mmap", C::Map, A::Map, &[R::Skip, R::Size, R::Skip, R::Flags, R::Fd, R::Offset]),
    call("mmap64", "mmap", C::Map, A::Map, &[R::Skip, R::Size, R::Skip, R::Flags, R::Fd, R::Offset]),
    call("old_mmap", "mmap", C::Map, A::Map, &[R::Skip, R::Size, R::Skip, R::Flags, R::Fd, R::Offset]),
    call("mmapobj", "mmap", C::Map, A::Map, &[R::Fd]),
    call("munmap", "munmap", C::Map, A::None, &[]),
    call("mremap", "mremap", C::Map, A::None, &[]),
    call("mprotect", "mprotect", C::Map, A::None, &[]),
    call("madvise", "madvise", C::Map, A::None, &[]),
    call("mincore", "mincore", C::Map, A::None, &[]),
    call("mlock", "mlock", C::Map, A::None, &[]),
    call("mlock2", "mlock2", C::Map, A::None, &[]),
    call("munlock", "munlock", C::Map, A::None, &[]),
    call("mlockall", "mlockall", C::Map, A::None, &[]),
    call("munlockall", "munlockall", C::Map, A::None, &[]),
    call("remap_file_pages", "remap_file_pages", C::Map, A::None, &[]),
    call("memcntl", "memcntl", C::Map, A::None, &[]),
    call("pkey_mprotect", "pkey_mprotect", C::Map, A::None, &[]),
    call("stat", "stat", C::Metadata, A::Stat, &[R::Path, R::StatBuffer]),
    call("stat64", "stat", C::Metadata, A::Stat, &[R::Path, R::StatBuffer]),
    call("lstat", "stat", C::Metadata, A::Stat, &[R::Path, R::StatBuffer]),
    call("lstat64", "stat", C::Metadata, A::Stat, &[R::Path, R::StatBuffer]),
    call("oldstat", "stat", C::Metadata, A::Stat, &[R::Path, R::StatBuffer]),
    call("oldlstat", "stat", C::Metadata, A::Stat, &[R::Path, R::StatBuffer]),
    call("fstat", "stat", C::Metadata, A::Stat, &[R::Fd, R::StatBuffer]),
    call("fstat64", "stat", C::Metadata, A::Stat, &[R::Fd, R::StatBuffer]),
    call("oldfstat", "stat", C::Metadata, A::Stat, &[R::Fd, R::StatBuffer]),
    call("newstat", "stat", C::Metadata, A::Stat, &[R::Path, R::StatBuffer]),
    call("newlstat", "stat", C::Metadata, A::Stat, &[R::Path, R::StatBuffer]),
    call("newfstat", "stat", C::Metadata, A::Stat, &[R::Fd, R::StatBuffer]),
    call("newfstatat", "stat", C::Metadata, A::Stat, &[R::DirFd, R::Path, R::StatBuffer, R::Flags]),
    call("fstatat64", "stat", C::Metadata, A::Stat, &[R::DirFd, R::Path, R::StatBuffer, R::Flags]),
    call("fstatat", "stat", C::Metadata, A::Stat, &[R::DirFd, R::Path, R::StatBuffer, R::Flags]),
    call("statx", "stat", C::Metadata, A::Stat, &[R::DirFd, R::Path, R::Flags, R::Skip, R::StatBuffer]),
    call("xstat", "stat", C::Metadata, A::Stat, &[R::Skip, R::Path]),
    call("lxstat", "stat", C::Metadata, A::Stat, &[R::Skip, R::Path]),
    call("fxstat", "stat", C::Metadata, A::Stat, &[R::Skip, R::Fd]),
    call("access", "access", C::Metadata, A::None, &[R::Path]),
    call("eaccess", "access", C::Metadata, A::None, &[R::Path]),
    call("faccessat", "access", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("faccessat2", "access", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("statfs", "statfs", C::Metadata, A::None, &[R::Path]),
    call("statfs64", "statfs", C::Metadata, A::None, &[R::Path]),
    call("statvfs", "statfs", C::Metadata, A::None, &[R::Path]),
    call("statvfs64", "statfs", C::Metadata, A::None, &[R::Path]),
    call("fstatfs", "statfs", C::Metadata, A::None, &[R::Fd]),
    call("fstatfs64", "statfs", C::Metadata, A::None, &[R::Fd]),
    call("getfsstat", "statfs", C::Metadata, A::None, &[]),
    call("ustat", "ustat", C::Metadata, A::None, &[]),
    call("fstatvfs", "statfs", C::Metadata, A::None, &[R::Fd]),
    call("fstatvfs64", "statfs", C::Metadata, A::None, &[R::Fd]),
    call("readlink", "readlink", C::Metadata, A::Readlink, &[R::Path]),
    call("readlinkat", "readlink", C::Metadata, A::Readlink, &[R::DirFd, R::Path]),
    call("resolvepath", "resolvepath", C::Metadata, A::None, &[R::Path]),
    call("getdents", "getdents", C::Metadata, A::ReadDirectory, &[R::Fd]),
    call("getdents64", "getdents", C::Metadata, A::ReadDirectory, &[R::Fd]),
    call("readdir", "getdents", C::Metadata, A::ReadDirectory, &[R::Fd]),
    call("getdirentries", "getdents", C::Metadata, A::ReadDirectory, &[R::Fd]),
    call("getcwd", "getcwd", C::Metadata, A::None, &[]),
    call("chdir", "chdir", C::Metadata, A::ChangeDirectory, &[R::Path]),
    call("fchdir", "chdir", C::Metadata, A::ChangeDirectoryFd, &[R::Fd]),
    call("chroot", "chroot", C::Metadata, A::ChangeRoot, &[R::Path]),
    call("fchroot", "chroot", C::Metadata, A::ChangeRoot, &[R::Fd]),
    call("mkdir", "mkdir", C::Metadata, A::Directory, &[R::Path]),
    call("mkdirat", "mkdir", C::Metadata, A::Directory, &[R::DirFd, R::Path]),
    call("rmdir", "rmdir", C::Metadata, A::Directory, &[R::Path]),
    call("unlink", "unlink", C::Metadata, A::Unlink, &[R::Path]),
    call("unlinkat", "unlink", C::Metadata, A::Unlink, &[R::DirFd, R::Path, R::Flags]),
    call("funlinkat", "unlink", C::Metadata, A::Unlink, &[R::DirFd, R::Path]),
    call("rename", "rename", C::Metadata, A::TwoNames, &[R::Path, R::Path2]),
    call("renameat", "rename", C::Metadata, A::TwoNames, &[R::DirFd, R::Path, R::DirFd2, R::Path2]),
    call("renameat2", "rename", C::Metadata, A::TwoNames, &[R::DirFd, R::Path, R::DirFd2, R::Path2]),
    call("link", "link", C::Metadata, A::TwoNames, &[R::Path, R::Path2]),
    call("linkat", "link", C::Metadata, A::TwoNames, &[R::DirFd, R::Path, R::DirFd2, R::Path2]),
    call("symlink", "symlink", C::Metadata, A::Symlink, &[R::Skip, R::Path]),
    call("symlinkat", "symlink", C::Metadata, A::Symlink, &[R::Skip, R::DirFd, R::Path]),
    call("mknod", "mknod", C::Metadata, A::Node, &[R::Path, R::Argument]),
    call("xmknod", "mknod", C::Metadata, A::Node, &[R::Skip, R::Path, R::Argument]),
    call("mknodat", "mknod", C::Metadata, A::Node, &[R::DirFd, R::Path, R::Argument]),
    call("mkfifo", "mknod", C::Metadata, A::NewFifo, &[R::Path]),
    call("mkfifoat", "mknod", C::Metadata, A::NewFifo, &[R::DirFd, R::Path]),
    call("truncate", "truncate", C::Metadata, A::Truncate, &[R::Path, R::Argument]),
    call("truncate64", "truncate", C::Metadata, A::Truncate, &[R::Path, R::Argument]),
    call("ftruncate", "truncate", C::Metadata, A::Truncate, &[R::Fd, R::Argument]),
    call("ftruncate64", "truncate", C::Metadata, A::Truncate, &[R::Fd, R::Argument]),
    call("fallocate", "fallocate", C::Metadata, A::None, &[R::Fd]),
    call("posix_fallocate", "fallocate", C::Metadata, A::None, &[R::Fd]),
    call("fadvise64", "fadvise", C::Other, A::None, &[R::Fd]),
    call("fadvise64_64", "fadvise", C::Other, A::None, &[R::Fd]),
    call("arm_fadvise64_64", "fadvise", C::Other, A::None, &[R::Fd]),
    call("fadvise", "fadvise", C::Other, A::None, &[R::Fd]),
    call("posix_fadvise", "fadvise", C::Other, A::None, &[R::Fd]),
    call("chmod", "chmod", C::Metadata, A::None, &[R::Path]),
    call("chflags", "chmod", C::Metadata, A::None, &[R::Path]),
    call("lchflags", "chmod", C::Metadata, A::None, &[R::Path]),
    call("fchflags", "chmod", C::Metadata, A::None, &[R::Fd]),
    call("chflagsat", "chmod", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("fchmod", "chmod", C::Metadata, A::None, &[R::Fd]),
    call("fchmodat", "chmod", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("fchmodat2", "chmod", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("chown", "chown", C::Metadata, A::None, &[R::Path]),
    call("chown32", "chown", C::Metadata, A::None, &[R::Path]),
    call("lchown", "chown", C::Metadata, A::None, &[R::Path]),
    call("lchown32", "chown", C::Metadata, A::None, &[R::Path]),
    call("fchown", "chown", C::Metadata, A::None, &[R::Fd]),
    call("fchown32", "chown", C::Metadata, A::None, &[R::Fd]),
    call("fchownat", "chown", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("utime", "utime", C::Metadata, A::None, &[R::Path]),
    call("utimes", "utime", C::Metadata, A::None, &[R::Path]),
    call("utimensat", "utime", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("utimensat_time64", "utime", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("futimesat", "utime", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("utimesys", "utime", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("flock", "flock", C::Metadata, A::None, &[R::Fd]),
    call("umask", "umask", C::Other, A::None, &[]),
    call("setxattr", "xattr", C::Metadata, A::None, &[R::Path]),
    call("lsetxattr", "xattr", C::Metadata, A::None, &[R::Path]),
    call("getxattr", "xattr", C::Metadata, A::None, &[R::Path]),
    call("lgetxattr", "xattr", C::Metadata, A::None, &[R::Path]),
    call("listxattr", "xattr", C::Metadata, A::None, &[R::Path]),
    call("llistxattr", "xattr", C::Metadata, A::None, &[R::Path]),
    call("removexattr", "xattr", C::Metadata, A::None, &[R::Path]),
    call("lremovexattr", "xattr", C::Metadata, A::None, &[R::Path]),
    call("fsetxattr", "xattr", C::Metadata, A::None, &[R::Fd]),
    call("fgetxattr", "xattr", C::Metadata, A::None, &[R::Fd]),
    call("flistxattr", "xattr", C::Metadata, A::None, &[R::Fd]),
    call("fremovexattr", "xattr", C::Metadata, A::None, &[R::Fd]),
    call("setxattrat", "xattr", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("getxattrat", "xattr", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("listxattrat", "xattr", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("removexattrat", "xattr", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("acl", "acl", C::Metadata, A::None, &[R::Path]),
    call("facl", "acl", C::Metadata, A::None, &[R::Fd]),
    call("pathconf", "pathconf", C::Metadata, A::None, &[R::Path]),
    call("fpathconf", "pathconf", C::Metadata, A::None, &[R::Fd]),
    call("name_to_handle_at", "name_to_handle_at", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("open_by_handle_at", "open", C::Metadata, A::NewUnnamed, &[R::Skip]),
    call("mount", "mount", C::Metadata, A::None, &[R::Skip, R::Path]),
    call("umount", "umount", C::Metadata, A::None, &[R::Path]),
    call("umount2", "umount", C::Metadata, A::None, &[R::Path]),
    call("oldumount", "umount", C::Metadata, A::None, &[R::Path]),
    call("pivot_root", "pivot_root", C::Metadata, A::None, &[R::Path]),
    call("swapon", "swapon", C::Metadata, A::None, &[R::Path]),
    call("swapoff", "swapoff", C::Metadata, A::None, &[R::Path]),
    call("acct", "acct", C::Metadata, A::None, &[R::Path]),
    call("uselib", "uselib", C::Metadata, A::None, &[R::Path]),
    call("quotactl", "quotactl", C::Metadata, A::None, &[R::Skip, R::Path]),
    call("quotactl_fd", "quotactl", C::Metadata, A::None, &[R::Fd]),
    call("inotify_add_watch", "inotify_add_watch", C::Metadata, A::None, &[R::Fd]),
    call("inotify_rm_watch", "inotify_rm_watch", C::Metadata, A::None, &[R::Fd]),
    call("fanotify_mark", "fanotify_mark", C::Metadata, A::None, &[R::Fd]),
    call("file_getattr", "file_getattr", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("file_setattr", "file_setattr", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("lookup_dcookie", "lookup_dcookie", C::Metadata, A::None, &[]),
    call("open_tree", "open_tree", C::Metadata, A::NewUnnamed, &[R::DirFd, R::Path]),
    call("open_tree_attr", "open_tree", C::Metadata, A::NewUnnamed, &[R::DirFd, R::Path]),
    call("fspick", "fspick", C::Metadata, A::NewUnnamed, &[R::DirFd, R::Path]),
    call("fsopen", "fsopen", C::Metadata, A::NewUnnamed, &[]),
    call("fsmount", "fsmount", C::Metadata, A::NewUnnamed, &[]),
    call("fsconfig", "fsconfig", C::Metadata, A::None, &[R::Fd]),
    call("move_mount", "move_mount", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("mount_setattr", "mount_setattr", C::Metadata, A::None, &[R::DirFd, R::Path]),
    call("statmount", "statmount", C::Metadata, A::None, &[]),
    call("listmount", "listmount", C::Metadata, A::None, &[]),
    call("cachestat", "cachestat", C::Metadata, A::None, &[R::Fd]),
    call("ioctl_none", "ioctl_none", C::Other, A::None, &[]),
    call("pipe", "pipe", C::Metadata, A::NewPipe, &[R::NewPair, R::Flags]),
    call("pipe2", "pipe", C::Metadata, A::NewPipe, &[R::NewPair, R::Flags]),
    call("socket", "socket", C::Metadata, A::NewSocket, &[R::Skip, R::Flags]),
    call("so_socket", "socket", C::Metadata, A::NewSocket, &[]),
    call("socketpair", "socketpair", C::Metadata, A::NewSocketPair, &[R::Skip, R::Flags, R::Skip, R::NewPair]),
    call("so_socketpair", "socketpair", C::Metadata, A::NewSocketPair, &[R::NewPair]),
    call("accept", "accept", C::Metadata, A::NewAccepted, &[R::Fd]),
    call("accept4", "accept", C::Metadata, A::NewAccepted, &[R::Fd, R::Skip, R::Skip, R::Flags]),
    call("connect", "connect", C::Other, A::None, &[R::Fd]),
    call("bind", "bind", C::Other, A::None, &[R::Fd]),
    call("listen", "listen", C::Other, A::None, &[R::Fd]),
    call("shutdown", "shutdown", C::Other, A::None, &[R::Fd]),
    call("getsockname", "getsockname", C::Other, A::None, &[R::Fd]),
    call("getpeername", "getpeername", C::Other, A::None, &[R::Fd]),
    call("setsockopt", "setsockopt", C::Other, A::None, &[R::Fd]),
    call("getsockopt", "getsockopt", C::Other, A::None, &[R::Fd]),
    call("memfd_create", "memfd_create", C::Metadata, A::NewMemfd, &[R::Path, R::Flags]),
    call("shm_open", "shm_open", C::Metadata, A::NewUnnamed, &[R::Skip, R::Flags]),
    call("shm_open2", "shm_open", C::Metadata, A::NewUnnamed, &[R::Skip, R::Flags]),
    call("memfd_secret", "memfd_create", C::Metadata, A::NewMemfd, &[R::Flags]),
    call("eventfd", "eventfd", C::Metadata, A::NewEventfd, &[R::Skip]),
    call("eventfd2", "eventfd", C::Metadata, A::NewEventfd, &[R::Skip, R::Flags]),
    call("epoll_create", "epoll_create", C::Metadata, A::NewEpoll, &[R::Skip]),
    call("epoll_create1", "epoll_create", C::Metadata, A::NewEpoll, &[R::Flags]),
    call("timerfd_create", "timerfd_create", C::Metadata, A::NewTimerfd, &[R::Skip, R::Flags]),
    call("timerfd_settime", "timerfd", C::Other, A::None, &[R::Fd]),
    call("timerfd_gettime", "timerfd", C::Other, A::None, &[R::Fd]),
    call("timerfd_settime64", "timerfd", C::Other, A::None, &[R::Fd]),
    call("timerfd_gettime64", "timerfd", C::Other, A::None, &[R::Fd]),
    call("signalfd", "signalfd", C::Metadata, A::NewSignalfd, &[R::Fd]),
    call("signalfd4", "signalfd", C::Metadata, A::NewSignalfd, &[R::Fd, R::Skip, R::Skip, R::Flags]),
    call("inotify_init", "inotify_init", C::Metadata, A::NewInotify, &[]),
    call("inotify_init1", "inotify_init", C::Metadata, A::NewInotify, &[R::Flags]),
    call("fanotify_init", "fanotify_init", C::Metadata, A::NewInotify, &[R::Flags]),
    call("pidfd_open", "pidfd_open", C::Other, A::NewPidfd, &[R::Argument]),
    call("pidfd_getfd", "pidfd_getfd", C::Other, A::NewFromProcess, &[R::Fd, R::Argument]),
    call("pidfd_send_signal", "pidfd_send_signal", C::Other, A::None, &[R::Fd]),
    call("userfaultfd", "userfaultfd", C::Other, A::NewUnnamed, &[]),
    call("perf_event_open", "perf_event_open", C::Other, A::NewUnnamed, &[]),
    call("landlock_create_ruleset", "landlock_create_ruleset", C::Other, A::NewUnnamed, &[]),
    call("bpf", "bpf", C::Other, A::NewUnnamed, &[]),
    call("mq_open", "mq_open", C::Other, A::NewUnnamed, &[]),
    call("mq_getsetattr", "mq_getsetattr", C::Other, A::None, &[]),
    call("mq_notify", "mq_notify", C::Other, A::None, &[]),
    call("mq_unlink", "mq_unlink", C::Other, A::None, &[]),
    call("kqueue", "kqueue", C::Other, A::NewUnnamed, &[]),
    call("port_create", "port_create", C::Other, A::NewUnnamed, &[]),
    call("epoll_wait", "epoll_wait", C::Other, A::None, &[R::Fd]),
    call("epoll_pwait", "epoll_wait", C::Other, A::None, &[R::Fd]),
    call("epoll_pwait2", "epoll_wait", C::Other, A::None, &[R::Fd]),
    call("epoll_ctl", "epoll_ctl", C::Other, A::None, &[R::Fd]),
    call("epoll_wait_old", "epoll_wait", C::Other, A::None, &[]),
    call("epoll_ctl_old", "epoll_ctl", C::Other, A::None, &[]),
    call("poll", "poll", C::Other, A::None, &[]),
    call("ppoll", "poll", C::Other, A::None, &[]),
    call("ppoll_time64", "poll", C::Other, A::None, &[]),
    call("pollsys", "poll", C::Other, A::None, &[]),
    call("select", "select", C::Other, A::None, &[]),
    call("pselect6", "select", C::Other, A::None, &[]),
    call("pselect6_time64", "select", C::Other, A::None, &[]),
    call("_newselect", "select", C::Other, A::None, &[]),
    call("oldselect", "select", C::Other, A::None, &[]),
    call("old_select", "select", C::Other, A::None, &[]),
    call("fork", "fork", C::Other, A::Fork, &[]),
    call("fork1", "fork", C::Other, A::Fork, &[]),
    call("forkall", "fork", C::Other, A::Fork, &[]),
    call("forksys", "fork", C::Other, A::Fork, &[]),
    call("forkx", "fork", C::Other, A::Fork, &[]),
    call("vfork", "fork", C::Other, A::Vfork, &[]),
    call("rfork", "fork", C::Other, A::Fork, &[]),
    call("pdfork", "fork", C::Other, A::Fork, &[]),
    call("vforkx", "fork", C::Other, A::Vfork, &[]),
    call("clone", "fork", C::Other, A::Clone, &[R::CloneFlags]),
    call("clone2", "fork", C::Other, A::Clone, &[R::CloneFlags]),
    call("clone3", "fork", C::Other, A::Clone, &[R::CloneFlags]),
    call("lwp_create", "fork", C::Other, A::NewThread, &[]),
    call("execve", "exec", C::Other, A::Exec, &[R::Path, R::Arguments]),
    call("exec", "exec", C::Other, A::Exec, &[R::Path, R::Arguments]),
    call("execveat", "exec", C::Other, A::Exec, &[R::DirFd, R::Path, R::Arguments]),
    call("execv", "exec", C::Other, A::Exec, &[R::Path, R::Arguments]),
    call("spawn", "exec", C::Other, A::None, &[R::Path]),
    call("unshare", "unshare", C::Other, A::Unshare, &[R::CloneFlags]),
    call("setns", "setns", C::Other, A::None, &[R::Fd]),
    call("exit", "exit", C::Other, A::Exit, &[]),
    call("exit_group", "exit", C::Other, A::Exit, &[]),
    call("_exit", "exit", C::Other, A::Exit, &[]),
    call("lwp_exit", "exit", C::Other, A::Exit, &[]),
    call("wait4", "wait", C::Other, A::None, &[]),
    call("waitpid", "wait", C::Other, A::None, &[]),
    call("waitid", "wait", C::Other, A::None, &[]),
    call("waitsys", "wait", C::Other, A::None, &[]),
    call("wait", "wait", C::Other, A::None, &[]),
    call("brk", "brk", C::Other, A::None, &[]),
    call("arch_prctl", "arch_prctl", C::Other, A::None, &[]),
    call("set_tid_address", "set_tid_address", C::Other, A::None, &[]),
    call("set_robust_list", "set_robust_list", C::Other, A::None, &[]),
    call("get_robust_list", "get_robust_list", C::Other, A::None, &[]),
    call("rseq", "rseq", C::Other, A::None, &[]),
    call("rt_sigaction", "rt_sigaction", C::Other, A::None, &[]),
    call("rt_sigprocmask", "rt_sigprocmask", C::Other, A::None, &[]),
    call("rt_sigreturn", "rt_sigreturn", C::Other, A::None, &[]),
    call("rt_sigsuspend", "rt_sigsuspend", C::Other, A::None, &[]),
    call("rt_sigpending", "rt_sigpending", C::Other, A::None, &[]),
    call("rt_sigtimedwait", "rt_sigtimedwait", C::Other, A::None, &[]),
    call("rt_sigqueueinfo", "rt_sigqueueinfo", C::Other, A::None, &[]),
    call("sigaltstack", "sigaltstack", C::Other, A::None, &[]),
    call("sigaction", "sigaction", C::Other, A::None, &[]),
    call("sigprocmask", "sigprocmask", C::Other, A::None, &[]),
    call("sigreturn", "sigreturn", C::Other, A::None, &[]),
    call("sigsuspend", "sigsuspend", C::Other, A::None, &[]),
    call("sigpending", "sigpending", C::Other, A::None, &[]),
    call("kill", "kill", C::Other, A::None, &[]),
    call("tkill", "tkill", C::Other, A::None, &[]),
    call("tgkill", "tgkill", C::Other, A::None, &[]),
    call("pause", "pause", C::Other, A::None, &[]),
    call("getpid", "getpid", C::Other, A::None, &[]),
    call("getppid", "getppid", C::Other, A::None, &[]),
    call("gettid", "gettid", C::Other, A::None, &[]),
    call("getuid", "getuid", C::Other, A::None, &[]),
    call("geteuid", "geteuid", C::Other, A::None, &[]),
    call("getgid", "getgid", C::Other, A::None, &[]),
    call("getegid", "getegid", C::Other, A::None, &[]),
    call("getpgrp", "getpgrp", C::Other, A::None, &[]),
    call("getpgid", "getpgid", C::Other, A::None, &[]),
    call("getsid", "getsid", C::Other, A::None, &[]),
    call("setsid", "setsid", C::Other, A::None, &[]),
    call("setpgid", "setpgid", C::Other, A::None, &[]),
    call("setuid", "setuid", C::Other, A::None, &[]),
    call("setgid", "setgid", C::Other, A::None, &[]),
    call("setreuid", "setreuid", C::Other, A::None, &[]),
    call("setregid", "setregid", C::Other, A::None, &[]),
    call("setresuid", "setresuid", C::Other, A::None, &[]),
    call("setresgid", "setresgid", C::Other, A::None, &[]),
    call("getresuid", "getresuid", C::Other, A::None, &[]),
    call("getresgid", "getresgid", C::Other, A::None, &[]),
    call("setfsuid", "setfsuid", C::Other, A::None, &[]),
    call("setfsgid", "setfsgid", C::Other, A::None, &[]),
    call("getgroups", "getgroups", C::Other, A::None, &[]),
    call("setgroups", "setgroups", C::Other, A::None, &[]),
    call("capget", "capget", C::Other, A::None, &[]),
    call("capset", "capset", C::Other, A::None, &[]),
    call("prctl", "prctl", C::Other, A::None, &[]),
    call("personality", "personality", C::Other, A::None, &[]),
    call("uname", "uname", C::Other, A::None, &[]),
    call("sysinfo", "sysinfo", C::Other, A::None, &[]),
    call("getrusage", "getrusage", C::Other, A::None, &[]),
    call("times", "times", C::Other, A::None, &[]),
    call("getrlimit", "getrlimit", C::Other, A::None, &[]),
    call("setrlimit", "setrlimit", C::Other, A::None, &[]),
    call("prlimit64", "prlimit64", C::Other, A::None, &[]),
    call("getpriority", "getpriority", C::Other, A::None, &[]),
    call("setpriority", "setpriority", C::Other, A::None, &[]),
    call("futex", "futex", C::Other, A::None, &[]),
    call("futex_time64", "futex_time64", C::Other, A::None, &[]),
    call("futex_waitv", "futex_waitv", C::Other, A::None, &[]),
    call("nanosleep", "nanosleep", C::Other, A::None, &[]),
    call("clock_nanosleep", "clock_nanosleep", C::Other, A::None, &[]),
    call("clock_gettime", "clock_gettime", C::Other, A::None, &[]),
    call("clock_settime", "clock_settime", C::Other, A::None, &[]),
    call("clock_getres", "clock_getres", C::Other, A::None, &[]),
    call("gettimeofday", "gettimeofday", C::Other, A::None, &[]),
    call("settimeofday", "settimeofday", C::Other, A::None, &[]),
    call("time", "time", C::Other, A::None, &[]),
    call("alarm", "alarm", C::Other, A::None, &[]),
    call("getitimer", "getitimer", C::Other, A::None, &[]),
    call("setitimer", "setitimer", C::Other, A::None, &[]),
    call("timer_create", "timer_create", C::Other, A::None, &[]),
    call("timer_settime", "timer_settime", C::Other, A::None, &[]),
    call("timer_gettime", "timer_gettime", C::Other, A::None, &[]),
    call("timer_delete", "timer_delete", C::Other, A::None, &[]),
    call("timer_getoverrun", "timer_getoverrun", C::Other, A::None, &[]),
    call("sched_yield", "sched_yield", C::Other, A::None, &[]),
    call("sched_getaffinity", "sched_getaffinity", C::Other, A::None, &[]),
    call("sched_setaffinity", "sched_setaffinity", C::Other, A::None, &[]),
    call("sched_getscheduler", "sched_getscheduler", C::Other, A::None, &[]),
    call("sched_setscheduler", "sched_setscheduler", C::Other, A::None, &[]),
    call("sched_getparam", "sched_getparam", C::Other, A::None, &[]),
    call("sched_setparam", "sched_setparam", C::Other, A::None, &[]),
    call("sched_get_priority_max", "sched_get_priority_max", C::Other, A::None, &[]),
    call("sched_get_priority_min", "sched_get_priority_min", C::Other, A::None, &[]),
    call("sched_setattr", "sched_setattr", C::Other, A::None, &[]),
    call("sched_getattr", "sched_getattr", C::Other, A::None, &[]),
    call("getcpu", "getcpu", C::Other, A::None, &[]),
    call("getrandom", "getrandom", C::Other, A::None, &[]),
    call("restart_syscall", "restart_syscall", C::Other, A::None, &[]),
    call("ptrace", "ptrace", C::Other, A::None, &[]),
    call("seccomp", "seccomp", C::Other, A::None, &[]),
    call("membarrier", "membarrier", C::Other, A::None, &[]),
    call("set_mempolicy", "set_mempolicy", C::Other, A::None, &[]),
    call("get_mempolicy", "get_mempolicy", C::Other, A::None, &[]),
    call("mbind", "mbind", C::Other, A::None, &[]),
    call("migrate_pages", "migrate_pages", C::Other, A::None, &[]),
    call("move_pages", "move_pages", C::Other, A::None, &[]),
    call("ioprio_get", "ioprio_get", C::Other, A::None, &[]),
    call("ioprio_set", "ioprio_set", C::Other, A::None, &[]),
    call("shmget", "shmget", C::Other, A::None, &[]),
    call("shmat", "shmat", C::Other, A::None, &[]),
    call("shmdt", "shmdt", C::Other, A::None, &[]),
    call("shmctl", "shmctl", C::Other, A::None, &[]),
    call("semget", "semget", C::Other, A::None, &[]),
    call("semop", "semop", C::Other, A::None, &[]),
    call("semctl", "semctl", C::Other, A::None, &[]),
    call("semtimedop", "semtimedop", C::Other, A::None, &[]),
    call("msgget", "msgget", C::Other, A::None, &[]),
    call("msgsnd", "msgsnd", C::Other, A::None, &[]),
    call("msgrcv", "msgrcv", C::Other, A::None, &[]),
    call("msgctl", "msgctl", C::Other, A::None, &[]),
    call("sethostname", "sethostname", C::Other, A::None, &[]),
    call("setdomainname", "setdomainname", C::Other, A::None, &[]),
    call("syslog", "syslog", C::Other, A::None, &[]),
    call("reboot", "reboot", C::Other, A::None, &[]),
    call("init_module", "init_module", C::Other, A::None, &[]),
    call("finit_module", "finit_module", C::Other, A::None, &[]),
    call("delete_module", "delete_module", C::Other, A::None, &[]),
    call("kexec_load", "kexec_load", C::Other, A::None, &[]),
    call("add_key", "add_key", C::Other, A::None, &[]),
    call("request_key", "request_key", C::Other, A::None, &[]),
    call("keyctl", "keyctl", C::Other, A::None, &[]),
    call("iopl", "iopl", C::Other, A::None, &[]),
    call("ioperm", "ioperm", C::Other, A::None, &[]),
    call("modify_ldt", "modify_ldt", C::Other, A::None, &[]),
    call("set_thread_area", "set_thread_area", C::Other, A::None, &[]),
    call("get_thread_area", "get_thread_area", C::Other, A::None, &[]),
    call("vhangup", "vhangup", C::Other, A::None, &[]),
    call("lwp_wait", "lwp_wait", C::Other, A::None, &[]),
    call("lwp_sigmask", "lwp_sigmask", C::Other, A::None, &[]),
    call("lwp_self", "lwp_self", C::Other, A::None, &[]),
    call("lwp_kill", "lwp_kill", C::Other, A::None, &[]),
    call("lwp_park", "lwp_park", C::Other, A::None, &[]),
    call("lwp_suspend", "lwp_suspend", C::Other, A::None, &[]),
    call("lwp_continue", "lwp_continue", C::Other, A::None, &[]),
    call("lwp_info", "lwp_info", C::Other, A::None, &[]),
    call("schedctl", "schedctl", C::Other, A::None, &[]),
    call("sysconfig", "sysconfig", C::Other, A::None, &[]),
    call("sysi86", "sysi86", C::Other, A::None, &[]),
    call("sysinfo_solaris", "sysinfo_solaris", C::Other, A::None, &[]),
    call("systeminfo", "systeminfo", C::Other, A::None, &[]),
    call("priocntlsys", "priocntlsys", C::Other, A::None, &[]),
    call("processor_info", "processor_info", C::Other, A::None, &[]),
    call("zone", "zone", C::Other, A::None, &[]),
    call("getloadavg", "getloadavg", C::Other, A::None, &[]),
    call("yield", "yield", C::Other, A::None, &[]),
    call("lwp_mutex_timedlock", "lwp_mutex_timedlock", C::Other, A::None, &[]),
    call("lwp_mutex_wakeup", "lwp_mutex_wakeup", C::Other, A::None, &[]),
    call("lwp_cond_wait", "lwp_cond_wait", C::Other, A::None, &[]),
    call("lwp_cond_signal", "lwp_cond_signal", C::Other, A::None, &[]),
    call("kcmp", "kcmp", C::Other, A::None, &[]),
    call("pkey_alloc", "pkey_alloc", C::Other, A::None, &[]),
    call("pkey_free", "pkey_free", C::Other, A::None, &[]),
    call("process_madvise", "process_madvise", C::Other, A::None, &[]),
    call("process_mrelease", "process_mrelease", C::Other, A::None, &[]),
    call("rt_tgsigqueueinfo", "rt_tgsigqueueinfo", C::Other, A::None, &[]),
    call("landlock_add_rule", "landlock_add_rule", C::Other, A::None, &[]),
    call("landlock_restrict_self", "landlock_restrict_self", C::Other, A::None, &[]),
    call("futex_wake", "futex_wake", C::Other, A::None, &[]),
    call("futex_wait", "futex_wait", C::Other, A::None, &[]),
    call("futex_requeue", "futex_requeue", C::Other, A::None, &[]),
    call("map_shadow_stack", "map_shadow_stack", C::Other, A::None, &[]),
    call("socketcall", "socketcall", C::Other, A::None, &[]),
    call("ipc", "ipc", C::Other, A::None, &[]),
    call("syscall", "syscall", C::Other, A::None, &[]),
    call("adjtimex", "adjtimex", C::Other, A::None, &[]),
    call("clock_adjtime", "clock_adjtime", C::Other, A::None, &[]),
    call("clock_adjtime64", "clock_adjtime64", C::Other, A::None, &[]),
    call("clock_getres_time64", "clock_getres_time64", C::Other, A::None, &[]),
    call("clock_gettime64", "clock_gettime64", C::Other, A::None, &[]),
    call("clock_nanosleep_time64", "clock_nanosleep_time64", C::Other, A::None, &[]),
    call("clock_settime64", "clock_settime64", C::Other, A::None, &[]),
    call("rt_sigtimedwait_time64", "rt_sigtimedwait_time64", C::Other, A::None, &[]),
    call("semtimedop_time64", "semtimedop_time64", C::Other, A::None, &[]),
    call("timer_gettime64", "timer_gettime64", C::Other, A::None, &[]),
    call("timer_settime64", "timer_settime64", C::Other, A::None, &[]),
    call("sched_rr_get_interval", "sched_rr_get_interval", C::Other, A::None, &[]),
    call("sched_rr_get_interval_time64", "sched_rr_get_interval_time64", C::Other, A::None, &[]),
    call("getuid32", "getuid32", C::Other, A::None, &[]),
    call("geteuid32", "geteuid32", C::Other, A::None, &[]),
    call("getgid32", "getgid32", C::Other, A::None, &[]),
    call("getegid32", "getegid32", C::Other, A::None, &[]),
    call("getgroups32", "getgroups32", C::Other, A::None, &[]),
    call("getresuid32", "getresuid32", C::Other, A::None, &[]),
    call("getresgid32", "getresgid32", C::Other, A::None, &[]),
    call("setuid32", "setuid32", C::Other, A::None, &[]),
    call("setgid32", "setgid32", C::Other, A::None, &[]),
    call("setgroups32", "setgroups32", C::Other, A::None, &[]),
    call("setreuid32", "setreuid32", C::Other, A::None, &[]),
    call("setregid32", "setregid32", C::Other, A::None, &[]),
    call("setresuid32", "setresuid32", C::Other, A::None, &[]),
    call("setresgid32", "setresgid32", C::Other, A::None, &[]),
    call("setfsuid32", "setfsuid32", C::Other, A::None, &[]),
    call("setfsgid32", "setfsgid32", C::Other, A::None, &[]),
    call("getxuid", "getxuid", C::Other, A::None, &[]),
    call("getxgid", "getxgid", C::Other, A::None, &[]),
    call("getxpid", "getxpid", C::Other, A::None, &[]),
    call("ugetrlimit", "ugetrlimit", C::Other, A::None, &[]),
    call("old_getrlimit", "old_getrlimit", C::Other, A::None, &[]),
    call("oldgetrlimit", "oldgetrlimit", C::Other, A::None, &[]),
    call("olduname", "olduname", C::Other, A::None, &[]),
    call("oldolduname", "oldolduname", C::Other, A::None, &[]),
    call("signal", "signal", C::Other, A::None, &[]),
    call("sgetmask", "sgetmask", C::Other, A::None, &[]),
    call("ssetmask", "ssetmask", C::Other, A::None, &[]),
    call("ftime", "ftime", C::Other, A::None, &[]),
    call("stime", "stime", C::Other, A::None, &[]),
    call("nice", "nice", C::Other, A::None, &[]),
    call("setpgrp", "setpgrp", C::Other, A::None, &[]),
    call("gethostname", "gethostname", C::Other, A::None, &[]),
    call("getpagesize", "getpagesize", C::Other, A::None, &[]),
    call("getdtablesize", "getdtablesize", C::Other, A::None, &[]),
    call("kexec_file_load", "kexec_file_load", C::Other, A::None, &[]),
    call("mseal", "mseal", C::Other, A::None, &[]),
    call("get_tls", "get_tls", C::Other, A::None, &[]),
    call("set_tls", "set_tls", C::Other, A::None, &[]),
    call("set_mempolicy_home_node", "set_mempolicy_home_node", C::Other, A::None, &[]),
    call("lsm_get_self_attr", "lsm_get_self_attr", C::Other, A::None, &[]),
    call("lsm_set_self_attr", "lsm_set_self_attr", C::Other, A::None, &[]),
    call("lsm_list_modules", "lsm_list_modules", C::Other, A::None, &[]),
    call("listns", "listns", C::Other, A::None, &[]),
    call("uretprobe", "uretprobe", C::Other, A::None, &[]),
    call("rseq_slice_yield", "rseq_slice_yield", C::Other, A::None, &[]),
    call("cacheflush", "cacheflush", C::Other, A::None, &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_names_are_unique_and_can_be_looked_up() {
        for (index, spec) in CALLS.iter().enumerate() {
            assert_eq!(CallId::intern(spec.name.as_bytes()), Some(CallId(index as u16)), "{}", spec.name);
        }
    }

    #[test]
    fn an_unlisted_call_keeps_its_name() {
        let id = CallId::intern(b"quite_new_call").unwrap();
        assert_eq!(id.name(), "quite_new_call");
        assert_eq!(id.family(), "quite_new_call");
        assert_eq!(CallId::intern(b"quite_new_call"), Some(id));
    }

    #[test]
    fn recorders_skip_memory_and_time_calls() {
        let recorded = |name: &str| CallId::intern(name.as_bytes()).unwrap().spec().is_recorded();
        for name in ["openat", "read", "mmap", "poll", "clone3", "execve", "sync", "rename", "fcntl"] {
            assert!(recorded(name), "{name}");
        }
        for name in ["brk", "futex", "mprotect", "rt_sigaction", "nanosleep"] {
            assert!(!recorded(name), "{name}");
        }
    }
}
