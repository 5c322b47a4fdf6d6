"""What the file systems' own tools say, and stripes of it. A tool that hangs is left behind."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from tempfile import TemporaryFile
from typing import Literal

from iodock.health.mounts import Mount

LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Stripes:
    """How new files of a folder are laid out."""

    count: int
    """Targets a file lies on; -1: all."""
    size_bytes: int
    """In one target before the next one comes."""
    pool: str | None = None


CANNOT_RUN = 126
"""The status that shells give where a file is there and is no program."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a command."""

    outcome: Literal["answered", "missing", "silent"]
    """`silent`: it did not end in time, and may hang for long."""
    status: int | None = None
    said: str = ""
    complained: str = ""
    """What it wrote to stderr."""


def asked(command: Sequence[str], limit_s: float = LIMIT_S) -> Answer:
    """Runs COMMAND for LIMIT_S at most, then kills it with all that it started, and waits for none."""
    if shutil.which(command[0]) is None:
        return Answer("missing")
    with TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints,
                start_new_session=True, env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
        except OSError as error:
            return Answer("answered", CANNOT_RUN, complained=str(error.strerror))
        assert process.stdout is not None
        until = time.monotonic() + limit_s
        with process.stdout as out:
            content = b"".join(_parts(out.fileno(), until))
        while (status := process.poll()) is None and time.monotonic() < until:
            time.sleep(0.01)
        if status is None:
            # Deep in the file system it can't be killed, and nobody waits for it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return Answer("silent")
        complaints.seek(0)
        return Answer("answered", status, _text(content), _text(complaints.read(65536)))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def output_of(command: Sequence[str], limit_s: float = LIMIT_S) -> str | None:
    """What a command writes to stdout; None where it is not there, fails, or takes too long."""
    answer = asked(command, limit_s)
    return answer.said if answer.status == 0 else None


def _parts(descriptor: int, until: float) -> Iterator[bytes]:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN | select.POLLHUP)
    while (rest := until - time.monotonic()) > 0 and waiting.poll(rest * 1e3):
        part = os.read(descriptor, 65536)
        if not part:
            return
        yield part


def stripes_of(folder: str, mount: Mount) -> Stripes | None:
    """Of a Lustre folder, where `lfs` is there."""
    if mount.fs_type not in ("lustre", "fefs"):
        return None
    said = output_of(["lfs", "getstripe", "-d", folder])
    return None if said is None else stripes_in(said)


def stripes_in(said: str) -> Stripes | None:
    """From what `lfs getstripe -d` writes: `stripe_count:  1 stripe_size:   1048576 ...`, in one line or
    many. Of a composite layout the first component's."""
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
