"""What is asked of a scheduler, and how its command is run: ids are checked first, and there is no shell."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

MOST_JOBS = 20
"""Asked for at once."""
_PATIENCE_S = 10.0
_LONGEST = 4 << 20
_ID = re.compile(r"[0-9][0-9A-Za-z_.+\-\[\]]{0,63}")


@dataclass(frozen=True)
class JobFacts:
    """Of one job. None: the scheduler does not say."""

    owner: str | None = None
    name: str | None = None
    """As its owner calls it: any text."""
    nodes: int | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    """None: it runs, or nobody knows."""


Run = Callable[[Sequence[str]], str | None]
"""Runs a command and gives what it prints; None: it failed."""


@dataclass(frozen=True)
class Scheduler:
    name: str
    """In settings."""
    program: str
    """Without which it is not there."""
    is_tried: bool
    """Tried on a real one; else its reader was written from the manual, and is tested on made-up answers."""
    facts: Callable[[Sequence[str], Run], Mapping[str, JobFacts]]
    """Of these ids, which are safe in a command."""


def is_id(text: str) -> bool:
    """Whether a text can be a job's id in a command: digits first, no blank, no sign of a shell, no
    option."""
    return _ID.fullmatch(text) is not None


def asked(scheduler: Scheduler | None, jobs: Iterable[str], run: Run | None = None) -> Mapping[str, JobFacts]:
    """By id; of jobs that it does not know, and of ids that are none, nothing."""
    ids = [job for job in dict.fromkeys(jobs) if is_id(job)][:MOST_JOBS]
    return scheduler.facts(ids, run or ran) if scheduler and ids else {}


def ran(command: Sequence[str]) -> str | None:
    """Never raises: without the scheduler's answer owners are unknown, and all else goes on."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
    try:
        done = subprocess.run(
            list(command), capture_output=True, timeout=_PATIENCE_S, check=False, env=environment,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if done.returncode != 0 or len(done.stdout) > _LONGEST:
        return None
    return done.stdout.decode(errors="replace")


def whole(text: object) -> int | None:
    """A number that can be a count, else None."""
    digits = str(text).strip()
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


def moment(text: object) -> int | None:
    """Of seconds since the epoch, ns."""
    seconds = re.fullmatch(r"[0-9]{1,11}", str(text).strip())
    return int(seconds[0]) * 10**9 if seconds and int(seconds[0]) else None


def text_of(value: object) -> str | None:
    found = str(value).strip() if value is not None else ""
    return found[:256] or None
