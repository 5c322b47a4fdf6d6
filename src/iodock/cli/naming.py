"""What a store is called where -o does not say."""

from __future__ import annotations

from pathlib import Path

_LOG_ENDINGS = (".gz", ".xz", ".zst", ".log", ".txt", ".out", ".strace", ".truss", ".trace", ".darshan")


def store_name(stem: str, *, force: bool = False) -> Path:
    """NAME.iodock in the current folder; if that is taken and may not be replaced NAME-2.iodock, ..."""
    candidate = Path(f"{stem}.iodock")
    number = 2
    while candidate.exists() and not force:
        candidate = Path(f"{stem}-{number}.iodock")
        number += 1
    return candidate


def name_of_log(log: str) -> str:
    """`run` for `/logs/run.strace.xz`; `stdin` for `-`."""
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
