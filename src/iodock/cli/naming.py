"""Determines the name of a store if the user does not give one with -o."""

from __future__ import annotations

import re
from pathlib import Path

_LOG_ENDINGS = (".gz", ".xz", ".zst", ".log", ".txt", ".out", ".strace", ".truss", ".trace", ".darshan")

# Control characters and line separators. They may occur in the names of Darshan logs, because Darshan names a
# log after the program, and the name of a program may contain any bytes.
_NOT_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def store_name(stem: str, *, force: bool = False) -> Path:
    """Returns STEM.iodock. If it exists in the current folder and FORCE is not set, it returns the first free
    name of STEM-2.iodock, STEM-3.iodock and so on. Line breaks are replaced, because `import` prints the name
    as one line for scripts."""
    stem = _NOT_IN_A_LINE.sub("_", stem)
    candidate = Path(f"{stem}.iodock")
    number = 2
    while candidate.exists() and not force:
        candidate = Path(f"{stem}-{number}.iodock")
        number += 1
    return candidate


def name_of_log(log: str) -> str:
    """Returns a name from the path of a log, without its endings: `run` for `/logs/run.strace.xz`, and
    `stdin` for `-`."""
    if log == "-":
        return "stdin"
    name = Path(log).name
    shorter = True
    while shorter:
        shorter = False
        for ending in _LOG_ENDINGS:
            if name.endswith(ending) and len(name) > len(ending):
                name, shorter = name[: -len(ending)], True
    return name
