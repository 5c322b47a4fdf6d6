"""Runs the commands of file systems, such as `lfs`, with a time limit, and parses stripes in their output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from iodock.file_system.health.mounts import Mount
from iodock.shared.bounded.commands import Answer, answer_of
from iodock.shared.bounded.limits import OUTPUT

LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Stripes:
    """The layout that new files in a folder get."""

    count: int
    """Number of targets of a file; -1: all targets."""
    size_bytes: int
    """Bytes on one target before the next one is used."""
    pool: str | None = None


def asked(command: Sequence[str], limit_s: float = LIMIT_S) -> Answer:
    """Runs COMMAND for at most LIMIT_S seconds. After that, COMMAND and all processes that it started are
    killed, but the function does not wait until they have ended."""
    return answer_of(command, OUTPUT, limit_s)


def output_of(command: Sequence[str], limit_s: float = LIMIT_S) -> str | None:
    """Returns the standard output of a command, or None if the command is missing, fails, or exceeds the time
    limit."""
    answer = asked(command, limit_s)
    return answer.said if answer.status == 0 else None


def stripes_of(folder: str, mount: Mount) -> Stripes | None:
    """Returns the stripes of new files in a Lustre folder. Returns None if the folder is on another file
    system, or if `lfs` is missing or fails."""
    if mount.fs_type not in ("lustre", "fefs"):
        return None
    said = output_of(["lfs", "getstripe", "-d", folder])
    return None if said is None else stripes_in(said)


def stripes_in(said: str) -> Stripes | None:
    """Parses the output of `lfs getstripe -d`, such as `stripe_count: 1 stripe_size: 1048576 ...`, in one or
    several lines. A composite layout has several components, and the function returns the stripes of the
    first one."""
    words = said.replace(":", ": ").split()
    values = {
        name.rstrip(":").removeprefix("lmm_"): value
        for name, value in reversed(list(pairwise(words)))
        if name.endswith(":")
    }
    try:
        count, size = int(values["stripe_count"]), int(values["stripe_size"])
    except (KeyError, ValueError):
        return None
    pool = values.get("pool")
    return Stripes(count, size, pool if pool and not pool.endswith(":") else None)
