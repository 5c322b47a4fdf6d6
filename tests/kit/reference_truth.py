"""Computes the truth of a log from the calls of `reference_reader`: each process's descriptors, their
positions, and the bytes moved. The code is slow and simple; the layout is that of `fixtures/cases`."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_reader import NS, STRING, Call, Event, Log, read_logs

STANDARD = ("stdin", "stdout", "stderr")
ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b'"': b'"',
    b"\\": b"\\", b"a": b"\a",
           b"b": b"\b", b"e": b"\x1b"}  # fmt: skip


def names(text: str) -> set[str]:
    return set(text.split())


BY_DESCRIPTOR = names(
    "read write pread64 pwrite64 readv writev preadv preadv2 pwritev pwritev2 close lseek _llseek fstat "
    "fstat64 fsync fdatasync ftruncate fallocate fadvise64 readahead sync_file_range flock fcntl fcntl64 "
    "ioctl dup dup2 dup3 getdents getdents64 fchmod fchown fchdir fstatfs fsetxattr fgetxattr flistxattr "
    "fremovexattr connect bind listen accept accept4 sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg "
    "shutdown getsockname getpeername setsockopt getsockopt epoll_ctl epoll_wait epoll_pwait epoll_pwait2 "
    "timerfd_settime timerfd_gettime inotify_add_watch inotify_rm_watch vmsplice syncfs io_uring_enter "
    "io_uring_register pidfd_send_signal pidfd_getfd signalfd signalfd4"
)
BY_PATH = names(
    "open creat stat lstat stat64 lstat64 access chdir chroot mkdir rmdir unlink truncate readlink chmod "
    "chown lchown utime utimes statfs mknod execve getxattr lgetxattr setxattr lsetxattr listxattr "
    "llistxattr removexattr lremovexattr"
)
BY_PATH_AT = names(
    "openat openat2 newfstatat fstatat64 statx mkdirat unlinkat faccessat faccessat2 readlinkat fchmodat "
    "fchmodat2 fchownat utimensat futimesat mknodat name_to_handle_at execveat"
)
# Call -> direction, argument with the size (or "vector"), and argument with the offset ("position": the call
# uses the file's position; None: the call has no offset).
TRANSFERS: dict[str, tuple[str, int | str, int | str | None]] = {
    "read": ("read", 2, "position"),
    "write": ("write", 2, "position"),
    "pread64": ("read", 2, 3),
    "pwrite64": ("write", 2, 3),
    "readv": ("read", "vector", "position"),
    "writev": ("write", "vector", "position"),
    "preadv": ("read", "vector", 3),
    "pwritev": ("write", "vector", 3),
    "preadv2": ("read", "vector", 3),
    "pwritev2": ("write", "vector", 3),
    "recvfrom": ("read", 2, None),
    "sendto": ("write", 2, None),
    "recvmsg": ("read", "vector", None),
    "sendmsg": ("write", "vector", None),
}
# Call -> arguments with the descriptor read and written, with their offsets, and with the size.
COPIES: dict[str, tuple[int, int, int | str | None, int | str | None, int]] = {
    "sendfile": (1, 0, 2, "position", 3),
    "splice": (0, 2, 1, 3, 4),
    "tee": (0, 1, None, None, 2),
    "copy_file_range": (0, 2, 1, 3, 4),
}
NEW_KINDS = {
    "socket": "socket", "accept": "socket", "accept4": "socket", "eventfd": "eventfd", "eventfd2": "eventfd",
    "epoll_create": "epoll", "epoll_create1": "epoll", "timerfd_create": "timerfd", "signalfd": "signalfd",
    "signalfd4": "signalfd", "inotify_init": "inotify", "inotify_init1": "inotify", "pidfd_open": "pidfd",
    "io_uring_setup": "io_uring",
}  # fmt: skip
NEW_UNKNOWN = names(
    "open_by_handle_at pidfd_getfd userfaultfd perf_event_open fanotify_init fsopen open_tree mq_open"
)


KERNEL_NAMES = {
    "pipe": "pipe",
    "anon_inode:[eventfd": "eventfd",
    "anon_inode:[eventpoll": "epoll",
    "anon_inode:[timerfd": "timerfd",
    "anon_inode:[signalfd": "signalfd",
    "anon_inode:inotify": "inotify",
    "anon_inode:[pidfd": "pidfd",
    "pid:": "pidfd",
    "anon_inode:[io_uring": "io_uring",
    "eventfd": "eventfd",
    "signalfd": "signalfd",
}
"""Prefixes of what `-y` writes for descriptors without a path."""


@dataclass(eq=False)
class Description:
    """An open file description. The position None is unknown."""

    kind: str
    name: bytes | None = None
    position: int | None = 0
    append: bool = False


@dataclass(eq=False)
class Table:
    """A process's descriptors: number -> [description, close-on-exec]."""

    open: dict[int, list[Any]] = field(default_factory=dict)

    def copy(self) -> Table:
        return Table({number: list(entry) for number, entry in self.open.items()})


@dataclass(eq=False)
class Place:
    """A working directory; the path None is unknown."""

    directory: bytes | None


@dataclass(eq=False)
class Task:
    table: Table
    place: Place
    leader: str


def fresh(directory: bytes | None) -> tuple[Table, Place]:
    standard = {n: [Description("standard", STANDARD[n].encode(), None), False] for n in range(3)}
    return Table(standard), Place(directory)


def unquoted(argument: bytes) -> bytes | None:
    found = STRING.match(argument.strip())
    return None if not found else unescaped(found[0][1:-1])


def unescaped(text: bytes) -> bytes:
    out = bytearray()
    at = 0
    while at < len(text):
        if text[at : at + 1] != b"\\":
            out += text[at : at + 1]
            at += 1
        elif found := re.compile(rb"\\([0-7]{1,3})|\\x([0-9a-f]{2})").match(text, at):
            out.append(int(found[1], 8) if found[1] else int(found[2], 16))
            at = found.end()
        else:
            out += ESCAPES.get(text[at + 1 : at + 2], text[at : at + 2])
            at += 2
    return bytes(out)


def number(argument: bytes) -> int | None:
    found = re.match(rb"(-?\d+|0x[0-9a-f]+)", argument.strip())
    return int(found[1], 0) if found else None


def normal(path: bytes) -> bytes:
    if path.startswith(b"/"):
        return b"/" + posixpath.normpath(path).lstrip(b"/")
    return posixpath.normpath(path)


def joined(directory: bytes | None, path: bytes) -> bytes:
    if path.startswith(b"/") or directory is None:
        return normal(path)
    return normal(directory + b"/" + path)


def shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def kernel_name(argument: bytes) -> bytes | None:
    """Returns the name that `strace -y` wrote after a descriptor."""
    found = re.match(rb"(?:-?\d+|AT_FDCWD)<(.*)>(?:\(deleted\))?$", argument.strip(), re.S)
    return unescaped(re.sub(rb"<(?:char|block) [^>]*>$", b"", found[1])) if found else None


def described(kernel: bytes) -> Description:
    name = kernel.removesuffix(b" (deleted)")
    if name.startswith(b"/memfd:"):
        return Description("memfd", name[1:], None)
    if name.startswith(b"/"):
        return Description("path", name, None)
    for start, kind in KERNEL_NAMES.items():
        if name.startswith(start.encode()):
            return Description(kind, name, None)
    if re.match(rb"socket:|TCP|UDP|UNIX|NETLINK|RAW|PING|SCTP|DCCP", name):
        return Description("socket", name, None)
    return Description("unknown", name, None)


def vector_size(argument: bytes) -> int | None:
    bare = STRING.sub(b"", argument).replace(b"...", b"", argument.count(b'"...'))
    lengths = re.findall(rb"iov_len=(\d+)", bare)
    if b"..." in bare or not bare.strip().startswith((b"[", b"{")):
        return None
    return sum(map(int, lengths))


def entry() -> dict[str, Any]:
    zero = dict.fromkeys(("count", "success", "errors", "noresult"), 0)
    more = dict.fromkeys(("timed", "total_ns", "bytes_read", "bytes_written", "io_calls"), 0)
    return zero | {"errno": {}} | more | {"min_ns": None, "max_ns": None, "io_min": None, "io_max": None}


def least(one: int | None, two: int, pick: Any) -> int:
    return two if one is None else int(pick(one, two))


class Truth:
    def __init__(self, log: Log, directory: bytes | None, order_known: bool = True) -> None:
        self.log = log
        self.directory = directory
        self.order_known = order_known
        self.tasks: dict[str, Task] = {}
        self.syscalls: dict[str, Any] = defaultdict(entry)
        self.files: dict[str, Any] = defaultdict(lambda: defaultdict(entry))
        self.nonpath: dict[str, Any] = defaultdict(lambda: defaultdict(entry))
        self.hist: dict[str, Counter[str]] = {"read": Counter(), "write": Counter()}
        self.requested: dict[str, Counter[str]] = {"read": Counter(), "write": Counter()}
        self.per_second: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.series: dict[str, list[Any]] = defaultdict(list)
        self.processes: dict[str, dict[str, Any]] = {}

    # The following methods order the events and keep the tasks.

    def steps(self) -> list[tuple[Any, int, Any]]:
        """Returns beginnings and ends of calls in order: as written within one log, by time across
        several."""
        several = len({call.source for call in self.log.calls}) > 1
        found: list[tuple[Any, int, Any]] = []
        for call in self.log.calls:
            if call.begin:
                found.append(((call.start if several else 0, call.begin, 0), 0, call))
            if call.end:
                end = self.ended(call) if several else 0
                found.append(((end, call.end, 1), 1, call))
        for event in self.log.events:
            found.append(((0, event.place, 2), 2, event))
        if several:
            found = self.merged(found)
        return sorted(found, key=lambda step: step[0])

    @staticmethod
    def merged(found: list[tuple[Any, int, Any]]) -> list[tuple[Any, int, Any]]:
        """Merges the events of several logs by time. Within one log, a time that goes back counts as the
        latest one before it."""
        by_source = sorted(found, key=lambda step: step[0][1:])
        last: dict[int, int] = {}
        out = []
        for (time, place, rank), kind, item in by_source:
            latest = max(last.get(place[0], 0), time or 0)
            last[place[0]] = latest
            out.append(((latest, place, rank), kind, item))
        return out

    @staticmethod
    def ended(call: Call) -> int | None:
        if call.start is not None and call.duration is not None:
            return call.start + call.duration
        return call.end_stamp if call.end_stamp is not None else call.start

    def task(self, name: str, pending: list[Call]) -> Task:
        if name in self.tasks:
            return self.tasks[name]
        fork = next((call for call in pending if call.result is not None and str(call.result) == name), None)
        if fork and fork.task in self.tasks:
            fork.opened["child"] = name
            return self.born(name, fork)
        table, place = fresh(self.directory)
        self.tasks[name] = Task(table, place, name)
        self.processes.setdefault(name, {"parent": None, "kind": "root", "exec": [], "exit": None})
        return self.tasks[name]

    def born(self, name: str, fork: Call) -> Task:
        parent = self.tasks[fork.task]
        flags = fork.text
        table = parent.table if b"CLONE_FILES" in flags else parent.table.copy()
        place = parent.place if b"CLONE_FS" in flags else Place(parent.place.directory)
        thread = b"CLONE_THREAD" in flags
        self.tasks[name] = Task(table, place, parent.leader if thread else name)
        vfork = fork.name == "vfork" or b"CLONE_VFORK" in flags
        how = "thread" if thread else "vfork" if vfork else "fork"
        parent_name = int(parent.leader) if parent.leader.isdigit() else None
        self.processes[name] = {"parent": parent_name, "kind": how, "exec": [], "exit": None}
        return self.tasks[name]

    def run(self) -> dict[str, Any]:
        pending: list[Call] = []
        for _, kind, item in self.steps():
            if kind == 2:
                self.left(item)
            elif kind == 0:
                self.task(item.task, pending)
                self.begin(item)
                if item.name in {"clone", "clone3", "fork", "vfork"}:
                    pending.append(item)
            else:
                self.task(item.task, pending)
                self.end(item)
                if item in pending:
                    pending.remove(item)
        return self.answer()

    def left(self, event: Event) -> None:
        process = self.processes.get(event.task)
        if event.what == "superseded":
            heir = self.tasks.pop(event.value, None)
            if heir and event.task in self.tasks:
                self.tasks[event.task] = Task(heir.table, heir.place, event.task)
            return
        if process is not None and event.what == "exit":
            process["exit"] = int(event.value)
        self.tasks.pop(event.task, None)

    # The following methods find the files that a call uses.

    def begin(self, call: Call) -> None:
        task = self.tasks[call.task]
        call.opened["files"] = self.ends(call, task)
        call.opened["table"] = task.table

    def argument(self, call: Call, at: int) -> bytes:
        return call.arguments[at] if at < len(call.arguments) else b""

    def descriptor(self, call: Call, task: Task, at: int) -> Description | None:
        argument = self.argument(call, at)
        fd = number(argument)
        if fd is None or not 0 <= fd < 1 << 31:
            return None
        kernel = kernel_name(argument)
        held = task.table.open.get(fd)
        if held is None:
            made = described(kernel) if kernel else Description("unknown", b"fd:%d" % fd, None)
            if fd < 3 and not kernel:
                made = Description("standard", STANDARD[fd].encode(), None)
            if call.errno != "EBADF":
                task.table.open[fd] = [made, False]
            return made
        if kernel and held[0].kind == "unknown":
            better = described(kernel)
            if better.kind != "unknown":
                held[0].kind, held[0].name = better.kind, better.name
        return held[0]  # type: ignore[no-any-return]

    def path_at(self, call: Call, task: Task, directory: int | None, at: int) -> Description | None:
        text = unquoted(self.argument(call, at))
        base = task.place.directory
        if directory is not None:
            argument = self.argument(call, directory)
            if not argument.startswith(b"AT_FDCWD"):
                held = (
                    self.descriptor(call, task, directory)
                    if text is None or not text.startswith(b"/")
                    else None
                )
                if not text:
                    return held
                base = held.name if held and held.kind == "path" else None
            elif base is None and (kernel := kernel_name(argument)):
                task.place.directory = base = kernel
        if not text:
            return None
        return Description("path", joined(base, text))

    def ends(self, call: Call, task: Task) -> dict[str, Description | None]:
        name = call.name
        if name in COPIES:
            one, two, *_ = COPIES[name]
            return {"in": self.descriptor(call, task, one), "out": self.descriptor(call, task, two)}
        if name in BY_DESCRIPTOR:
            return {"": self.descriptor(call, task, 0)}
        if name in BY_PATH:
            return {"": self.path_at(call, task, None, 0)}
        if name in BY_PATH_AT:
            return {"": self.path_at(call, task, 0, 1)}
        if name == "mmap":
            return {"": self.descriptor(call, task, 4)}
        if name in {"rename", "link"}:
            return {"old": self.path_at(call, task, None, 0), "new": self.path_at(call, task, None, 1)}
        if name in {"renameat", "renameat2", "linkat"}:
            return {"old": self.path_at(call, task, 0, 1), "new": self.path_at(call, task, 2, 3)}
        if name == "symlink":
            return {"": self.path_at(call, task, None, 1)}
        if name == "symlinkat":
            return {"": self.path_at(call, task, 1, 2)}
        return {}

    # The following methods apply the effects of a call.

    def end(self, call: Call) -> None:
        files: dict[str, Any] = call.opened.get("files", {})  # type: ignore[assignment]
        if call.begin is None:
            files = {}
        task = self.tasks[call.task]
        moved = self.transfer(call, files)
        self.count(call, files, moved)
        if call.errno is None and call.result is not None:
            self.effect(call, files, task)
        elif call.name == "close" and call.errno not in (None, "EBADF"):
            self.closed(call, files)

    def transfer(self, call: Call, files: dict[str, Any]) -> dict[str, int]:
        """Returns the bytes moved per direction, moves positions, and records the series of accesses."""
        done = call.result if call.errno is None else None
        if call.name in COPIES:
            _, _, at_in, at_out, size = COPIES[call.name]
            asked = number(self.argument(call, size))
            self.moved(call, "in", files.get("in"), at_in, asked, done)
            self.moved(call, "out", files.get("out"), at_out, asked, done)
            if done is not None:
                self.sized("read", done, asked)
                self.sized("write", done, asked)
            return {} if done is None else {"read": done, "write": done}
        if call.name not in TRANSFERS:
            return {}
        way, size_at, offset_at = TRANSFERS[call.name]
        asked = (
            vector_size(self.argument(call, 1))
            if size_at == "vector"
            else number(self.argument(call, int(size_at)))
        )
        if call.name in {"preadv2", "pwritev2"} and number(self.argument(call, 3)) in (-1, (1 << 64) - 1):
            offset_at = "position"
        self.moved(call, "write" if way == "write" else "", files.get(""), offset_at, asked, done)
        if done is not None:
            self.sized(way, done, asked)
        return {} if done is None else {way: done}

    def sized(self, way: str, done: int, asked: int | None) -> None:
        self.hist[way][bin_of(done)] += 1
        if asked is not None:
            self.requested[way][bin_of(asked)] += 1

    def moved(
        self,
        call: Call,
        side: str,
        held: Description | None,
        at: int | str | None,
        asked: int | None,
        done: int | None,
    ) -> None:
        if held is None:
            return
        writes = side in {"out", "write"}
        offset = None
        argument = self.argument(call, at) if isinstance(at, int) else b"NULL"
        if at is not None and not argument.startswith(b"NULL"):
            offset = number(argument.lstrip(b"["))
            offset = None if offset is not None and offset < 0 else offset
        elif at is not None:
            offset = held.position if self.order_known else None
        if (held.append and writes) or (call.name == "pwritev2" and b"RWF_APPEND" in self.argument(call, 4)):
            offset = None
        if held.kind == "path" and held.name is not None:
            label = call.name + (f":{side}" if side in {"in", "out"} else "")
            row = [call.start, tid(call), label, offset, asked, -1 if call.errno else call.result, call.errno]
            self.series[shown(held.name)].append(row)
        if at is not None and argument.startswith(b"NULL") and done:
            held.position = None if offset is None else offset + done

    def count(self, call: Call, files: dict[str, Any], moved: dict[str, int]) -> None:
        self.add(self.syscalls[call.name], call, moved)
        groups: dict[tuple[bool, str], dict[str, int]] = {}
        for side, held in files.items():
            if held is None:
                continue
            path = held.kind == "path"
            name = held.name if path or held.kind in {"standard", "memfd"} else None
            key = (path, shown(name) if name is not None else held.kind)
            share = {"in": ["read"], "out": ["write"]}.get(side, ["read", "write"])
            group = groups.setdefault(key, {})
            group.update({way: moved[way] for way in share if way in moved})
        for (path, name), part in groups.items():
            self.add((self.files if path else self.nonpath)[name][call.name], call, part)
        end = self.ended(call)
        if end is not None and moved:
            second = self.per_second[str(end // NS)]
            second[0] += moved.get("read", 0)
            second[1] += moved.get("write", 0)

    @staticmethod
    def add(to: dict[str, Any], call: Call, moved: dict[str, int]) -> None:
        to["count"] += 1
        if call.errno:
            to["errors"] += 1
            to["errno"][call.errno] = to["errno"].get(call.errno, 0) + 1
        elif call.result is None:
            to["noresult"] += 1
        else:
            to["success"] += 1
        if call.duration is not None:
            to["timed"] += 1
            to["total_ns"] += call.duration
            to["min_ns"] = least(to["min_ns"], call.duration, min)
            to["max_ns"] = least(to["max_ns"], call.duration, max)
        to["bytes_read"] += moved.get("read", 0)
        to["bytes_written"] += moved.get("write", 0)
        for size in list(moved.values())[:1]:
            to["io_calls"] += 1
            to["io_min"] = least(to["io_min"], size, min)
            to["io_max"] = least(to["io_max"], size, max)

    def closed(self, call: Call, files: dict[str, Any]) -> None:
        table: Any = call.opened.get("table")
        fd = number(self.argument(call, 0))
        if table and fd in table.open and table.open[fd][0] is files.get(""):
            del table.open[fd]

    def effect(self, call: Call, files: dict[str, Any], task: Task) -> None:
        name, result = call.name, call.result
        assert result is not None
        opened = task.table.open
        text = call.text
        held = files.get("")
        if name in {"open", "openat", "openat2", "creat"}:
            made = held or Description("unknown", b"fd:%d" % result, None)
            made.append = b"O_APPEND" in self.after_path(call)
            opened[result] = [made, b"O_CLOEXEC" in self.after_path(call)]
        elif name in {"dup", "dup2", "dup3"} or (name in {"fcntl", "fcntl64"} and b"F_DUPFD" in text):
            if name == "dup2" and number(self.argument(call, 0)) == result and result in opened:
                return
            made = held or Description("unknown", b"fd:%d" % result, None)
            opened[result] = [made, b"O_CLOEXEC" in text or b"F_DUPFD_CLOEXEC" in text]
        elif name in {"fcntl", "fcntl64", "ioctl"}:
            self.switched(call, held, opened)
        elif name == "close":
            self.closed(call, files)
        elif name == "close_range":
            self.range_closed(call, task)
        elif name in {"lseek", "_llseek"}:
            self.sought(call, held, result)
        elif name == "memfd_create":
            label = unquoted(self.argument(call, 0)) or b""
            opened[result] = [Description("memfd", b"memfd:" + label), b"MFD_CLOEXEC" in text]
        elif name in NEW_KINDS or name in NEW_UNKNOWN:
            kind = NEW_KINDS.get(name, "unknown")
            if not (name.startswith("signalfd") and number(self.argument(call, 0)) not in (-1, None)):
                cloexec = b"CLOEXEC" in STRING.sub(b"", text) or kind in {"pidfd", "io_uring"}
                opened[result] = [Description(kind, b"fd:%d" % result, None), cloexec]
        elif name in {"pipe", "pipe2", "socketpair"}:
            pair = re.findall(
                rb"[\[, ](\d+)(?:<[^>]*(?:->[^>]*)*>)?", self.argument(call, 3 if name == "socketpair" else 0)
            )
            for fd in pair:
                kind = "socket" if name == "socketpair" else "pipe"
                opened[int(fd)] = [Description(kind, b"", None), b"CLOEXEC" in text]
        elif name in {"recvmsg", "recvmmsg"}:
            self.received(call, opened)
        elif name == "chdir":
            task.place.directory = held.name if held and (held.name or b"").startswith(b"/") else None
        elif name == "fchdir":
            known = held and held.kind == "path" and (held.name or b"").startswith(b"/")
            task.place.directory = held.name if known and held else None
        elif name in {"execve", "execveat"}:
            self.executed(call, held, task)
        elif name in {"fork", "vfork", "clone", "clone3"}:
            self.forked(call, task, result)
        elif name == "unshare":
            if b"CLONE_FILES" in text:
                task.table = task.table.copy()
            if b"CLONE_FS" in text:
                task.place = Place(task.place.directory)

    def after_path(self, call: Call) -> bytes:
        """Returns the arguments after the path, such as flags. Leaves out strings, which may contain any
        text."""
        return b",".join(part for part in call.arguments[1:] if not part.startswith(b'"'))

    def switched(self, call: Call, held: Description | None, opened: dict[int, list[Any]]) -> None:
        fd, operation, value = (self.argument(call, at) for at in range(3))
        entry_of = opened.get(-1 if (at := number(fd)) is None else at)
        if operation == b"F_SETFD" and entry_of:
            entry_of[1] = b"FD_CLOEXEC" in value
        elif operation in {b"FIOCLEX", b"FIONCLEX"} and entry_of:
            entry_of[1] = operation == b"FIOCLEX"
        elif operation == b"F_SETFL" and held:
            held.append = b"O_APPEND" in value

    def range_closed(self, call: Call, task: Task) -> None:
        first, flags = number(self.argument(call, 0)) or 0, self.argument(call, 2)
        last = number(self.argument(call, 1))
        last = 1 << 32 if last is None else last
        if b"CLOSE_RANGE_UNSHARE" in flags:
            task.table = task.table.copy()
        for fd in [fd for fd in task.table.open if first <= fd <= last]:
            if b"CLOSE_RANGE_CLOEXEC" in flags:
                task.table.open[fd][1] = True
            else:
                del task.table.open[fd]

    def sought(self, call: Call, held: Description | None, result: int) -> None:
        if call.name == "_llseek":
            found = number(self.argument(call, 2).lstrip(b"[")) if len(call.arguments) > 3 else None
            result = -1 if found is None else found
        if held:
            held.position = result if result >= 0 else None
            if held.kind == "path" and held.name is not None and call.name == "lseek":
                row = [call.start, tid(call), call.name, result, None, result, None]
                self.series[shown(held.name)].append(row)

    def received(self, call: Call, opened: dict[int, list[Any]]) -> None:
        for rights in re.findall(
            rb"cmsg_type=SCM_RIGHTS, cmsg_data=\[([^\]]*)\]", STRING.sub(b"", call.text)
        ):
            for fd in re.findall(rb"(?:^|, )(\d+)", rights):
                opened[int(fd)] = [
                    Description("unknown", b"fd:" + fd, None),
                    b"MSG_CMSG_CLOEXEC" in call.text,
                ]

    def executed(self, call: Call, held: Description | None, task: Task) -> None:
        task.table = Table({fd: list(entry_) for fd, entry_ in task.table.open.items() if not entry_[1]})
        task.leader = call.task
        if held and held.name is not None:
            self.processes[call.task]["exec"].append(shown(held.name))

    def forked(self, call: Call, task: Task, result: int) -> None:
        child = str(result)
        if child not in self.tasks and call.begin is not None and "child" not in call.opened:
            self.born(child, call)
        found = re.search(rb"pidfd=\[(\d+)", call.text)
        if not found and b"CLONE_PIDFD" in call.text and call.name == "clone":
            found = re.search(rb"parent_tid=\[(\d+)", call.text)
        if found:
            task.table.open[int(found[1])] = [Description("pidfd", b"", None), True]

    def answer(self) -> dict[str, Any]:
        errors = sum(row["errors"] for row in self.syscalls.values())
        return {
            "lines": self.log.lines,
            "lines_unparsed": len(self.log.unparsed),
            "unfinished_lines": self.log.unfinished,
            "resumed_lines": self.log.resumed,
            "orphan_resumed": self.log.orphans,
            "signals": dict(self.log.signals),
            "calls_total": len(self.log.calls),
            "errors_total": errors,
            "syscalls": dict(self.syscalls),
            "hist": {way: dict(sizes) for way, sizes in self.hist.items()},
            "hist_requested": {way: dict(sizes) for way, sizes in self.requested.items()},
            "per_second": dict(self.per_second),
            "files": {name: dict(calls) for name, calls in self.files.items()},
            "nonpath": {name: dict(calls) for name, calls in self.nonpath.items()},
            "series": dict(self.series),
            "processes": {name: row for name, row in self.processes.items() if name.isdigit()},
        }


def bin_of(size: int) -> str:
    return "0" if size == 0 else str(1 << (size - 1).bit_length())


def tid(call: Call) -> int | None:
    return int(call.task) if call.task.isdigit() else None


def truth_of(paths: list[Path], directory: str | None = None) -> dict[str, Any]:
    """Returns the truth of one run's logs."""
    log = read_logs(paths)
    several = len({call.source for call in log.calls}) > 1
    timed = any(call.duration is not None for call in log.calls)
    return Truth(log, directory.encode() if directory else None, timed or not several).run()
