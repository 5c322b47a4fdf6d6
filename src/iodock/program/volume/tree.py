"""Finds a process and its descendants in /proc, and the files that they have open."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path


def descendants(pid: int, root: Path = Path("/")) -> list[int]:
    """Returns the ids of process PID and all its living descendants. Parents come before their children."""
    children: dict[int, list[int]] = {}
    for entry in (root / "proc").iterdir():
        if entry.name.isdigit():
            parent = _parent(entry)
            if parent is not None:
                children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found.extend(sorted(children.get(one, ())))
    return found


def _parent(process: Path) -> int | None:
    try:
        text = (process / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name of the command is in parentheses, and may itself contain parentheses and spaces.
    words = text.rpartition(")")[2].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None


@dataclass(slots=True)
class Held:
    """Describes the open descriptors of a process."""

    sizes: dict[str, int] = field(default_factory=dict)
    """Size in bytes of each regular file, by its name."""
    reads_other: bool = False
    """Whether the process has a pipe, socket or device from which it can read bytes."""
    writes_other: bool = False
    """Whether the process has a pipe, socket or device to which it can write bytes."""


def held(pid: int, root: Path = Path("/")) -> Held:
    """Returns the descriptors that a process has open now. Descriptors that can't be read are left out."""
    process = root / "proc" / str(pid)
    found = Held()
    try:
        entries = sorted((process / "fd").iterdir(), key=lambda entry: int(entry.name))
    except (OSError, ValueError):
        return found
    output: os.stat_result | None = None
    for entry in entries:
        try:
            what, name = entry.stat(), str(entry.readlink())
        except OSError:
            continue
        if stat.S_ISREG(what.st_mode):
            found.sizes[name] = what.st_size
        # If standard error is not the same object as standard output, it carries messages and no data.
        elif entry.name != "2" or (output is not None and os.path.samestat(output, what)):
            _other(found, what, process / "fdinfo" / entry.name)
        if entry.name == "1":
            output = what
    return found


def _other(found: Held, what: os.stat_result, info: Path) -> None:
    """Notes whether the process can read from, or write to, an object that is not a regular file."""
    is_device = stat.S_ISCHR(what.st_mode) or stat.S_ISBLK(what.st_mode)
    if not (is_device or stat.S_ISFIFO(what.st_mode) or stat.S_ISSOCK(what.st_mode)):
        return
    access = _access(info)
    if access != os.O_WRONLY and not (is_device and _gives_little(what.st_rdev)):
        found.reads_other = True
    if access != os.O_RDONLY:
        found.writes_other = True


_NULL = (1, 3)
_TERMINALS = frozenset((4, 5, *range(136, 144)))
"""Major numbers of terminals (Linux Documentation/admin-guide/devices.txt): consoles, /dev/tty,
pseudo-terminals."""


def _gives_little(device: int) -> bool:
    """Returns whether reads from a device give few bytes: /dev/null gives none, and a terminal only what a
    person types."""
    return (os.major(device), os.minor(device)) == _NULL or os.major(device) in _TERMINALS


def _access(info: Path) -> int:
    """Returns the access mode of a descriptor from its file in fdinfo: O_RDONLY, O_WRONLY or O_RDWR. It is
    O_RDWR if that file can't be read."""
    try:
        for line in info.read_text().splitlines():
            if line.startswith("flags:"):
                return int(line.split()[1], 8) & os.O_ACCMODE
    except (OSError, ValueError, IndexError):
        pass
    return os.O_RDWR


def has_had_children(pid: int, root: Path = Path("/")) -> bool:
    """Returns whether this process's counters include those of a child that it waited for. Only then is
    its number of page faults of children not 0 (`cminflt`, proc_pid_stat(5))."""
    try:
        text = (root / "proc" / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return True
    words = text.rpartition(")")[2].split()
    return len(words) <= 8 or words[8] != "0"
