"""Reads byte counters of the kernel: of processes, NFS mounts and Lustre mounts.

Formats: proc_pid_io(5), /proc/self/mountstats (Linux fs/nfs/super.c, `bytes:`), Lustre `llite.*.stats`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

LLITE = ("proc/fs/lustre/llite", "sys/kernel/debug/lustre/llite", "proc/fs/fefs/llite")
_DEVICE = re.compile(r"device (\S+) mounted on (\S+) with fstype (nfs4?)\b")


@dataclass(frozen=True, slots=True)
class ProcessIo:
    """Holds the counters in /proc/PID/io, in bytes unless stated otherwise. The counters of a parent
    include those of children that it waited for."""

    rchar: int = 0
    """Bytes that read calls returned. They include cached data, pipes and sockets, but not mmap."""
    wchar: int = 0
    syscr: int = 0
    """Number of read calls."""
    syscw: int = 0
    """Number of write calls."""
    read_bytes: int = 0
    """Bytes fetched from the device. They exclude cached data, and include read-ahead and mmap."""
    write_bytes: int = 0
    """Bytes that were made dirty in the cache, to be written to the device."""
    cancelled_write_bytes: int = 0
    """The part of `write_bytes` that was deleted before it was written."""

    def plus(self, other: ProcessIo) -> ProcessIo:
        """Returns the sum of the two for each counter."""
        return ProcessIo(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    def since(self, before: ProcessIo) -> ProcessIo:
        """Returns the growth of each counter since BEFORE. It is 0 rather than negative if a process ended
        in between and its counters vanished."""
        return ProcessIo(
            *(max(0, getattr(self, one.name) - getattr(before, one.name)) for one in fields(self))
        )


@dataclass(frozen=True, slots=True)
class MountIo:
    """Holds the bytes that programs on this node read and wrote through one NFS or Lustre mount."""

    mount: str
    kind: str
    """Type of the mount: `nfs` or `lustre`."""
    read_bytes: int
    written_bytes: int
    server_read_bytes: int | None = None
    """For NFS, bytes that were requested from the server, after the client's cache."""
    server_written_bytes: int | None = None

    def since(self, before: MountIo | None) -> MountIo:
        """Returns the growth of each counter since BEFORE."""
        if before is None:
            return self
        return MountIo(
            self.mount,
            self.kind,
            max(0, self.read_bytes - before.read_bytes),
            max(0, self.written_bytes - before.written_bytes),
            _grown(self.server_read_bytes, before.server_read_bytes),
            _grown(self.server_written_bytes, before.server_written_bytes),
        )


def _grown(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None else max(0, now - before)


def process_io(pid: int, root: Path = Path("/")) -> ProcessIo:
    """Reads a process's counters, which include its threads and the children that it waited for. Raises
    OSError."""
    return parse_process_io((root / "proc" / str(pid) / "io").read_text())


def own_io(pid: int, root: Path = Path("/")) -> Mapping[str, ProcessIo]:
    """Reads the counters of each living thread, by thread id. They don't include counters of child
    processes. Raises OSError."""
    return {
        one.name: parse_process_io((one / "io").read_text())
        for one in (root / "proc" / str(pid) / "task").iterdir()
    }


def parse_process_io(text: str) -> ProcessIo:
    """Parses lines of the form `name: value`. Unknown names are ignored."""
    pairs = (line.partition(":") for line in text.splitlines())
    values = {name.strip(): value.strip() for name, _, value in pairs}
    known = {one.name for one in fields(ProcessIo)}
    return ProcessIo(
        **{name: int(value) for name, value in values.items() if name in known and value.isdigit()}
    )


def mounts(root: Path = Path("/")) -> Mapping[str, MountIo]:
    """Returns all NFS and Lustre mounts of this node that have counters."""
    found = {one.mount: one for one in (*_nfs(root), *_lustre(root))}
    return dict(sorted(found.items()))


def _nfs(root: Path) -> Iterator[MountIo]:
    try:
        text = (root / "proc/self/mountstats").read_text(errors="replace")
    except OSError:
        return
    yield from parse_mountstats(text)


def parse_mountstats(text: str) -> Iterator[MountIo]:
    """Yields NFS mounts with the numbers of their `bytes:` line: normal and direct reads and writes, then
    the bytes exchanged with the server."""
    mount: str | None = None
    for line in text.splitlines():
        if line.startswith("device "):
            found = _DEVICE.match(line)
            mount = found[2] if found else None
        elif mount is not None and line.strip().startswith("bytes:"):
            numbers = [int(word) for word in line.split()[1:] if word.isdigit()]
            if len(numbers) >= 6:
                read, written = numbers[0] + numbers[2], numbers[1] + numbers[3]
                yield MountIo(mount, "nfs", read, written, numbers[4], numbers[5])


def _lustre(root: Path) -> Iterator[MountIo]:
    for place in LLITE:
        for stats in sorted((root / place).glob("*/stats")):
            try:
                yield parse_llite(stats.parent.name, stats.read_text(errors="replace"))
            except OSError:
                continue


def parse_llite(name: str, text: str) -> MountIo:
    """Parses lines of the form `read_bytes N samples [bytes] MIN MAX SUM`, and takes SUM. NAME is the
    mount's name followed by an address after a hyphen, which is removed."""
    sums = {"read_bytes": 0, "write_bytes": 0}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 7 and words[0] in sums and words[3] == "[bytes]" and words[6].isdigit():
            sums[words[0]] = int(words[6])
    return MountIo(name.rsplit("-", 1)[0], "lustre", sums["read_bytes"], sums["write_bytes"])
