"""Default name of a store, without -o."""

from __future__ import annotations

import re
from pathlib import Path

_LOG_ENDINGS = (".gz", ".xz", ".zst", ".log", ".txt", ".out", ".strace", ".truss", ".trace", ".darshan")

# Characters that would break a line. They occur because Darshan names a log after the program, whose name may
# contain any bytes.
_NOT_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def store_name(stem: str, *, force: bool = False) -> Path:
    """Chooses NAME.iodock in the current folder; if that exists and must not be replaced, NAME-2.iodock and
    so on. A name is one line, because `import` prints it for scripts."""
    stem = _NOT_IN_A_LINE.sub("_", stem)
    candidate = Path(f"{stem}.iodock")
    number = 2
    while candidate.exists() and not force:
        candidate = Path(f"{stem}-{number}.iodock")
        number += 1
    return candidate


def name_of_log(log: str) -> str:
    """Makes a name from a log's path: `run` for `/logs/run.strace.xz`, `stdin` for `-`."""
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
