"""Reads the kernel's list of mounts, which proc_pid_mountinfo(5) describes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the file mountinfo."""

    point: str
    fs_type: str
    source: str
    """The device, or the server and its export."""
    device: str
    """Device number as `MAJOR:MINOR`."""
    options: tuple[tuple[str, str | None], ...]
    """Name and value of each option, each name once: those of the mount, followed by those of the file
    system."""


def mounts(path: Path = Path("/proc/self/mountinfo")) -> tuple[Mount, ...]:
    """Returns all mounts in the kernel's order. If two mounts have the same mount point, the later one hides
    the earlier one."""
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return tuple(found for line in lines if (found := _mount(line)) is not None)


def _mount(line: str) -> Mount | None:
    before, separator, after = line.partition(" - ")
    own, of_type = before.split(" "), after.split(" ")
    if not separator or len(own) < 6 or len(of_type) < 3:
        return None
    options = _options(f"{own[5]},{of_type[2]}")
    return Mount(_plain(own[4]), of_type[0], _plain(of_type[1]), own[2], options)


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def _options(listed: str) -> tuple[tuple[str, str | None], ...]:
    found: dict[str, str | None] = {}
    for part in listed.split(","):
        name, equals, value = part.partition("=")
        if name:
            found[name] = _plain(value) if equals else None
    # A mount is read-only if the option `ro` is set for the mount or for the file system, even if `rw` is set
    # for the other of the two.
    if "ro" in found:
        found.pop("rw", None)
    return tuple(found.items())


def mount_of(folder: str, known: Iterable[Mount], device: int | None = None) -> Mount | None:
    """Returns the mount that contains FOLDER, which is an absolute path without symbolic links. If several
    mounts match the path, those whose device number equals DEVICE (st_dev of the folder) are preferred."""
    fitting = [one for one in known if _lies_below(folder, one.point)]
    if device is not None:
        name = f"{os.major(device)}:{os.minor(device)}"
        # On btrfs and overlay, st_dev differs from the device number in mountinfo. If no device number
        # matches, only the path decides.
        fitting = [one for one in fitting if one.device == name] or fitting
    deepest = max((len(one.point) for one in fitting), default=0)
    return next((one for one in reversed(fitting) if len(one.point) == deepest), None)


def _lies_below(folder: str, point: str) -> bool:
    return folder == point or folder.startswith(point.rstrip("/") + "/")
