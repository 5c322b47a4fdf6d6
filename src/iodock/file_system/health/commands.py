"""Runs the file systems' own tools, and parses stripes in their output. A tool that hangs is abandoned."""

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
    """Layout that new files in a folder get."""

    count: int
    """Number of targets of a file; -1: all targets."""
    size_bytes: int
    """Bytes on one target before the next one is used."""
    pool: str | None = None


def asked(command: Sequence[str], limit_s: float = LIMIT_S) -> Answer:
    """Runs COMMAND for at most LIMIT_S, then kills it and all processes that it started, without waiting for
    them."""
    return answer_of(command, OUTPUT, limit_s)


def output_of(command: Sequence[str], limit_s: float = LIMIT_S) -> str | None:
    """Returns standard output of a command; None if the command is missing, fails, or takes too long."""
    answer = asked(command, limit_s)
    return answer.said if answer.status == 0 else None


def stripes_of(folder: str, mount: Mount) -> Stripes | None:
    """Returns the stripes of a Lustre folder, if `lfs` is installed."""
    if mount.fs_type not in ("lustre", "fefs"):
        return None
    said = output_of(["lfs", "getstripe", "-d", folder])
    return None if said is None else stripes_in(said)


def stripes_in(said: str) -> Stripes | None:
    """Parses the output of `lfs getstripe -d`: `stripe_count:  1 stripe_size:   1048576 ...`, in one or
    several lines. For a composite layout, the stripes are those of the first component."""
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
