"""The adapter for Slurm 22.05 and later, which uses scontrol and squeue.

It reads a job's state and owner from squeue in a format without texts that users choose. In the output of
`scontrol show job`, a job's name could imitate any other field. Where names are requested as well, they are
the last field."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence

from iodock.centre.watch.schedulers.base import (
    JOB,
    Ask,
    JobDescription,
    JobFacts,
    JobState,
    Scheduler,
    Way,
    one_state,
)
from iodock.centre.watch.schedulers.describing import moment, text_of, whole

_STATES: dict[str, JobState] = {
    "PENDING": "waiting", "RUNNING": "running", "SUSPENDED": "suspended", "COMPLETED": "ended",
    "CANCELLED": "ended", "FAILED": "ended", "TIMEOUT": "ended", "NODE_FAIL": "ended", "PREEMPTED": "ended",
    "BOOT_FAIL": "ended", "DEADLINE": "ended", "OUT_OF_MEMORY": "ended",
}  # fmt: skip
_ASKED = ("squeue", "--noheader", "--states=all", "--array", "--format=%i %u %T %Q", "--jobs", JOB)
_SHOWN = ("scontrol", "show", "job", JOB)
_COUNTED = ("SuspendTime", "Restarts")
"""Fields that change when the job is suspended, resumed or requeued."""


def read(job: str, outputs: tuple[str, ...]) -> JobFacts | None:
    """Parses the outputs of squeue and scontrol about one job. Returns None if squeue does not list the job.
    Raises ValueError if the output of squeue has another format."""
    rows = [line.split() for line in outputs[0].splitlines() if line.strip()]
    found = [row for row in rows if row[0] == job]
    if not found:
        return None
    if len(found) != 1 or len(found[0]) != 4:
        raise ValueError("squeue prints another format")
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
    """Returns the value of a field, or None if the field is missing or appears twice, for example because a
    job's name or comment imitates it."""
    found = re.findall(rf"(?<!\S){name}=(\S+)", text)
    return found[0] if len(found) == 1 else None


def _moment(text: str | None) -> float | None:
    try:
        return time.mktime(time.strptime(text or "", "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


_QUEUE = ("squeue", "--noheader", "--states=all", "--format=%A|%u|%D|%S|%e|%j")
_PAST = (
    "sacct", "--noheader", "--parsable2", "--allocations", "--duplicates",
    "--format=JobIDRaw,User,NNodes,Start,End,JobName",
)  # fmt: skip


def describe(ids: Sequence[str], ask: Ask) -> Mapping[str, JobDescription]:
    found: dict[str, JobDescription] = {}
    for command in (_QUEUE, _PAST):
        if missing := [job for job in ids if job not in found]:
            answer = ask([*command, f"--jobs={','.join(missing)}"])
            found |= {job: one for job, one in _rows(answer or "") if job in missing}
    return found


def _rows(answer: str) -> Iterator[tuple[str, JobDescription]]:
    """Yields the id and description of each job in the output. If a job ran several times, its last run comes
    last and replaces the others."""
    for line in answer.splitlines():
        fields = line.split("|", 5)
        if len(fields) == 6:
            job, owner, nodes, begin, end, name = fields
            yield (
                job.strip(),
                JobDescription(text_of(owner), text_of(name), whole(nodes), moment(begin), moment(end)),
            )


SLURM = Scheduler(
    "slurm",
    # This matches the id of a job, of a task of an array, or of a component of a heterogeneous job.
    re.compile(r"[1-9][0-9]{0,9}(_[0-9]{1,7}|\+[0-9]{1,4})?", re.ASCII),
    (_ASKED, _SHOWN),
    read,
    describe,
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
