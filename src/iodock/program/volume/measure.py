"""Runs or watches a program and reads the kernel's counters during that time. It traces nothing and does
not slow the program down."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iodock.program.volume.sources import MountIo, ProcessIo, mounts, own_io, process_io
from iodock.program.volume.tree import descendants, has_had_children, held
from iodock.shared.errors import IodockError, RequestError

LOOK_S = 0.2
"""Interval at which open files are checked, s."""
BLOCK = 512
"""Unit of rusage's block counts, bytes (getrusage(2))."""


@dataclass(frozen=True, slots=True)
class Volume:
    """Holds the bytes that a program moved, and the sizes of the files that it had open."""

    wall_seconds: float
    user_seconds: float | None
    system_seconds: float | None
    io: ProcessIo
    mounts: tuple[MountIo, ...]
    """Growth of the counters of the whole node. They include other programs on the node."""
    block_read_bytes: int | None
    """Block counts of rusage in bytes, which GNU time shows as %I and %O."""
    block_written_bytes: int | None
    files: int
    """Number of regular files that were found open. This is checked every `LOOK_S`."""
    file_bytes: int
    """Sum of the sizes of these files. For each file the largest size that was found counts."""
    exit_code: int | None = None
    exit_signal: int | None = None
    command: str = ""
    file_read: int | None = None
    """Lower bound of the part of `io.rchar` that belongs to files: bytes read by processes that never had a
    pipe, socket or device open for reading; None: not checked."""
    file_written: int | None = None
    """Lower bound of the part of `io.wchar` that belongs to files, as for `file_read`."""


@dataclass
class _Process:
    """Holds what is known about one process."""

    reads_other: bool = False
    writes_other: bool = False
    threads: dict[str, ProcessIo] = field(default_factory=dict)
    """Counters of each of its threads at the last look, without those of children."""

    def moved(self) -> ProcessIo:
        total = ProcessIo()
        for one in self.threads.values():
            total = total.plus(one)
        return total


@dataclass
class _Seen:
    """Holds the sizes of the open files found so far, and counters of processes, which remain here when a
    process has ended."""

    root: Path
    sizes: dict[str, int] = field(default_factory=dict)
    processes: dict[int, _Process] = field(default_factory=dict)

    def look(self, pid: int) -> None:
        for one in descendants(pid, self.root):
            self._look_at(one)

    def _look_at(self, pid: int) -> None:
        found = held(pid, self.root)
        for name, size in found.sizes.items():
            self.sizes[name] = max(size, self.sizes.get(name, 0))
        process = self.processes.setdefault(pid, _Process())
        process.reads_other |= found.reads_other
        process.writes_other |= found.writes_other
        self.count(pid, process)

    def count(self, pid: int, process: _Process) -> None:
        """Reads the process's own counters. The kernel's counters of a process include those of its ended
        threads, but also those of ended children. The counters of its threads, which don't include
        children, are used if it has had children."""
        try:
            if has_had_children(pid, self.root):
                # The counters of the threads also include the bytes that the process moved before its first
                # child ended, so the entry for the whole process is removed.
                process.threads.pop("all", None)
                process.threads.update(own_io(pid, self.root))
            else:
                process.threads = {"all": process_io(pid, self.root)}
        except OSError:
            return

    def of_files(self) -> tuple[int, int]:
        """Returns the bytes read, and the bytes written, by processes that had no pipe, socket or device
        open for reading, or for writing. These processes can only have used files."""
        clean = [(one, one.moved()) for one in self.processes.values()]
        return (
            sum(io.rchar for one, io in clean if not one.reads_other),
            sum(io.wchar for one, io in clean if not one.writes_other),
        )

    def look_again(self) -> None:
        """Reads the sizes of the files again, because they may have grown since a process last had them
        open."""
        for name in self.sizes:
            try:
                self.sizes[name] = max(self.sizes[name], Path(name).stat().st_size)
            except OSError:
                continue

    @property
    def total(self) -> int:
        return sum(self.sizes.values())


def run(command: Sequence[str], root: Path = Path("/")) -> Volume:
    """Runs a command to its end. Raises RequestError if it can't be started."""
    before, started = mounts(root), time.monotonic()
    child = _start(command)
    seen = _Seen(root)
    with _signals_to(child):
        io = _until_end(child.pid, seen)
        _, status, usage = os.wait4(child.pid, 0)
    seen.look_again()
    read, written = seen.of_files()
    child.returncode = os.waitstatus_to_exitcode(status)
    return Volume(
        wall_seconds=time.monotonic() - started,
        user_seconds=usage.ru_utime,
        system_seconds=usage.ru_stime,
        io=io,
        mounts=_growth(before, root),
        block_read_bytes=usage.ru_inblock * BLOCK,
        block_written_bytes=usage.ru_oublock * BLOCK,
        files=len(seen.sizes),
        file_bytes=seen.total,
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        exit_signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        command=command[0],
        file_read=min(read, io.rchar),
        file_written=min(written, io.wchar),
    )


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command))
    except OSError as error:
        hint = (
            ("give the path of the program")
            if shutil.which(command[0]) is None
            else "chmod +x, or name its interpreter"
        )
        raise RequestError(f"{command[0]}: {error.strerror}", hint) from error


class _signals_to:
    """Passes SIGTERM on to the child, and ignores Ctrl-C, which the child receives as well. The
    measurement ends when the child ends."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child

    def __enter__(self) -> None:
        def forward(number: int, frame: object) -> None:
            # The terminal sends Ctrl-C to the child as well, so only other signals are passed on.
            if number != signal.SIGINT:
                os.kill(self.child.pid, number)

        self.before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _until_end(pid: int, seen: _Seen) -> ProcessIo:
    """Waits until the process ends, and checks its open files in intervals. Until the caller waits for the
    ended process, the kernel still shows its counters, and those of every child that it waited for."""
    wait = 0.005
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        seen.look(pid)
        time.sleep(wait)
        wait = min(LOOK_S, wait * 1.5)
    # A process that has ended has closed its files, but the kernel still shows the bytes that it moved.
    if pid in seen.processes:
        seen.count(pid, seen.processes[pid])
    try:
        return process_io(pid, seen.root)
    except OSError:
        return ProcessIo()


def _growth(before: Mapping[str, MountIo], root: Path) -> tuple[MountIo, ...]:
    grown = (now.since(before.get(name)) for name, now in mounts(root).items())
    return tuple(one for one in grown if one.read_bytes or one.written_bytes)


def watch(
    pid: int, every: float, root: Path = Path("/"), pause: Callable[[float], None] = time.sleep
) -> Iterator[Volume]:
    """Yields the growth of the counters in each interval of EVERY seconds, until the process ends. Raises
    IodockError if the process does not exist or belongs to another user."""
    last, before, started = _first_look(pid, root), mounts(root), time.monotonic()
    seen = _Seen(root)
    while (root / "proc" / str(pid)).exists():
        seen.look(pid)
        _sleep_or_end(pid, every, root, pause)
        now = _io_of_tree(pid, root)
        if now is None:
            return
        ended = time.monotonic()
        yield Volume(ended - started, None, None, now.since(last), _growth(before, root), None, None,
                     len(seen.sizes), seen.total)  # fmt: skip
        last, before, started = now, mounts(root), ended


def _sleep_or_end(pid: int, every: float, root: Path, pause: Callable[[float], None]) -> None:
    left = every
    while left > 0 and (root / "proc" / str(pid)).exists():
        pause(min(LOOK_S, left))
        left -= LOOK_S


def _first_look(pid: int, root: Path) -> ProcessIo:
    try:
        process_io(pid, root)
    except PermissionError as error:
        hint = "ask the owner or an administrator"
        raise IodockError(f"process {pid} is another user's", hint) from error
    except OSError as error:
        raise IodockError(f"no process {pid}", "ps -u $USER lists yours") from error
    return _io_of_tree(pid, root) or ProcessIo()


def _io_of_tree(pid: int, root: Path) -> ProcessIo | None:
    """Returns the sum of the counters of the process and its descendants; None if the process has ended."""
    total = ProcessIo()
    for one in descendants(pid, root):
        try:
            total = total.plus(process_io(one, root))
        except OSError:
            # If a child has ended since the list was made, its parent's counters include the child's.
            if one == pid:
                return None
    return total
