"""The adapter for NQSV, which uses qstat, qhold, qrls, qspnd, qrsm and qrerun. It was written from NEC's
manuals of NQS and has not been tried on a real installation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

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
from iodock.centre.watch.schedulers.describing import CTIME, date_of, text_of, whole

_STATES: dict[str, JobState] = {
    "QUEUED": "waiting", "WAITING": "waiting", "HELD": "held", "RUNNING": "running", "SUSPENDED": "suspended",
    "EXITED": "ended",
}  # fmt: skip
_LINE = re.compile(r"[ \t]*(Request ID|User Name|Current State|State Transition Time)[ \t]*[:=][ \t]*(.*)")
_HOLD, _RELEASE = ("qhold", JOB), ("qrls", JOB)


def read(job: str, outputs: tuple[str, ...]) -> JobFacts | None:
    """Parses the output of `qstat -f`, which has lines of a name and a value. A name that appears twice is
    ignored, because a user's text could imitate it. Raises ValueError."""
    found: dict[str, list[str]] = {}
    for line in outputs[0].splitlines():
        if line_found := _LINE.fullmatch(line):
            found.setdefault(line_found[1], []).append(line_found[2].strip())
    if not found:
        return None
    single = {name: values[0] for name, values in found.items() if len(values) == 1}
    if "Request ID" not in single or "Current State" not in single:
        raise ValueError("qstat prints another format")
    if single["Request ID"] != job and single["Request ID"].split(".")[0] != job:
        return None
    word, since = single["Current State"].upper(), single.get("State Transition Time")
    mark = None if since is None else f"{word} {since}"
    return JobFacts(job, one_state(_STATES, word), single.get("User Name"), mark)


def describe(ids: Sequence[str], ask: Ask) -> Mapping[str, JobDescription]:
    found: dict[str, JobDescription] = {}
    for full, values in _requests(ask(["qstat", "-f", *ids]) or ""):
        for asked in ids:
            if asked in (full, full.partition(".")[0]):
                found[asked] = JobDescription(
                    text_of(values.get("User Name") or values.get("Owner")),
                    text_of(values.get("Request Name")), whole(values.get("Number of Jobs", "")),
                    date_of(values.get("Started Time"), CTIME), date_of(values.get("Ended Time"), CTIME),
                )  # fmt: skip
    return found


def _requests(answer: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[str, dict[str, str]]] = []
    for line in answer.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == "Request ID":
            found.append((value.strip(), {}))
        elif colon and found:
            # A later line with the same name belongs to a part of the request, so the first one is kept.
            found[-1][1].setdefault(name.strip(), value.strip())
    return found


NQSV = Scheduler(
    "nqsv",
    # This matches the id of a request, or of one subrequest of a parametric request, with or without the
    # host's name.
    re.compile(r"[1-9][0-9]{0,8}(\[[0-9]{1,7}\])?(\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,8}", re.ASCII),
    (("qstat", "-f", JOB),),
    read,
    describe,
    {
        "hold": Way((_HOLD,), (_RELEASE,), "waiting", "held"),
        "suspend": Way((("qspnd", JOB),), (("qrsm", JOB),), "running", "suspended"),
        "requeue": Way((_HOLD, ("qrerun", JOB)), (_RELEASE,), "running", "held"),
    },
    was_tried=False,
)
