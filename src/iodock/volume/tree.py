"""A process and its descendants, and the files that they hold open, from /proc."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path


def descendants(pid: int, root: Path = Path("/")) -> list[int]:
    """PID and everything below it that is alive, parents first."""
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
    # The command in brackets may hold brackets and blanks of its own.
    words = text.rpartition(")")[2].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None


def open_files(pid: int, root: Path = Path("/")) -> Iterator[tuple[str, int]]:
    """Name and size of each regular file that a process holds open; what can't be looked at is left
    out."""
    folder = root / "proc" / str(pid) / "fd"
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            found, name = entry.stat(), str(entry.readlink())
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield name, found.st_size
