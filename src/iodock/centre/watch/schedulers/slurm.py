"""Slurm: scontrol and squeue, as of 22.05 and later.

State and owner are read from squeue with a form that has no text of users in it: in what `scontrol show job`
prints, a job's name could look like any other field."""

from __future__ import annotations

import hashlib
import re
import time

from iodock.centre.watch.schedulers.base import JOB, JobFacts, JobState, Scheduler, Way, one_state

_STATES: dict[str, JobState] = {
    "PENDING": "waiting", "RUNNING": "running", "SUSPENDED": "suspended", "COMPLETED": "ended",
    "CANCELLED": "ended", "FAILED": "ended", "TIMEOUT": "ended", "NODE_FAIL": "ended", "PREEMPTED": "ended",
    "BOOT_FAIL": "ended", "DEADLINE": "ended", "OUT_OF_MEMORY": "ended",
}  # fmt: skip
_ASKED = ("squeue", "--noheader", "--states=all", "--array", "--format=%i %u %T %Q", "--jobs", JOB)
_SHOWN = ("scontrol", "show", "job", JOB)
_COUNTED = ("SuspendTime", "Restarts")
"""Fields that change where somebody suspends, resumes or requeues the job."""


def read(job: str, outputs: tuple[str, ...]) -> JobFacts | None:
    """Raises ValueError: what squeue prints is of another form."""
    rows = [line.split() for line in outputs[0].splitlines() if line.strip()]
    found = [row for row in rows if row[0] == job]
    if not found:
        return None
    if len(found) != 1 or len(found[0]) != 4:
        raise ValueError("squeue prints another form")
    _, owner, word, priority = found[0]
    state = one_state(_STATES, word)
    if state == "waiting" and priority == "0":
        state = "held"
    fields = [_field(outputs[1], name) for name in _COUNTED]
    mark = None
    if None not in fields:
        mark = hashlib.sha256(" ".join(map(str, [word, priority == "0", *fields])).encode()).hexdigest()[:32]
    return JobFacts(job, state, owner, mark, _moment(fields[0]) if state == "suspended" else None)


def _field(text: str, name: str) -> str | None:
    """None: it is not there, or twice, as where a job's name or comment pretends to be it."""
    found = re.findall(rf"(?<!\S){name}=(\S+)", text)
    return found[0] if len(found) == 1 else None


def _moment(text: str | None) -> float | None:
    try:
        return time.mktime(time.strptime(text or "", "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


SLURM = Scheduler(
    "slurm",
    # A job, an element of an array, or a part of a heterogeneous job.
    re.compile(r"[1-9][0-9]{0,9}(_[0-9]{1,7}|\+[0-9]{1,4})?", re.ASCII),
    (_ASKED, _SHOWN),
    read,
    {
        "hold": Way((("scontrol", "hold", JOB),), (("scontrol", "release", JOB),), "waiting", "held"),
        "suspend": Way(
            (("scontrol", "suspend", JOB),), (("scontrol", "resume", JOB),), "running", "suspended"
        ),
        "requeue": Way(
            (("scontrol", "requeuehold", JOB),), (("scontrol", "release", JOB),), "running", "held"
        ),
    },
    was_tried=True,
)
