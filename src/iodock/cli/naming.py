"""What a store is called where -o does not say."""

from __future__ import annotations

from pathlib import Path

_LOG_ENDINGS = (".gz", ".xz", ".zst", ".log", ".txt", ".out", ".strace", ".truss", ".trace")


def free_name(stem: str, folder: Path | None = None) -> Path:
    """NAME.iodock in the current folder, or NAME-2.iodock, ... if that is taken."""
    base = folder or Path()
    candidate = base / f"{stem}.iodock"
    number = 2
    while candidate.exists():
        candidate = base / f"{stem}-{number}.iodock"
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
