"""The adapter for PJM, the job operation software of Technical Computing Suite, which uses pjstat, pjhold and
pjrls. It was written from the end user's guide and has not been tried on a real installation. PJM has no
command that suspends a job. If a running job is held, it starts again from its beginning when it is
released."""

from __future__ import annotations

import csv
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
from iodock.centre.watch.schedulers.describing import date_of, text_of, whole

_STATES: dict[str, JobState] = {
    "ACC": "waiting", "QUE": "waiting", "RNA": "other", "RNP": "other", "RUN": "running", "RNE": "other",
    "HLD": "held", "EXT": "ended", "CCL": "ended", "RJT": "ended", "ERR": "ended",
}  # fmt: skip
_HOLD, _RELEASE = ("pjhold", JOB), ("pjrls", JOB)


def read(job: str, outputs: tuple[str, ...]) -> JobFacts | None:
    """Parses the output of `pjstat --data`, which has a line of titles that begins with H, and then one line
    for each job. Raises ValueError."""
    rows = [line.split(",") for line in outputs[0].splitlines() if line.strip()]
    if not rows:
        return None
    if rows[0][0] != "H":
        raise ValueError("pjstat prints another format")
    for row in rows[1:]:
        facts = dict(zip(rows[0], row, strict=False))
        if facts.get("JOB_ID") == job:
            state = one_state(_STATES, facts.get("ST", ""))
            return JobFacts(
                job, state, facts.get("USER") or None, f"{facts.get('ST')} {facts.get('START_DATE')}"
            )
    return None


_DATE = "%Y/%m/%d %H:%M:%S"
"""Format of dates. Expected dates are in brackets."""
_WANTED = "jid,jnam,usr,nnumr,sdt,edt"


def describe(ids: Sequence[str], ask: Ask) -> Mapping[str, JobDescription]:
    found: dict[str, JobDescription] = {}
    for history in ((), ("-H",)):
        if missing := [job for job in ids if job not in found]:
            answer = ask(["pjstat", *history, "--data", "--choose", _WANTED, *missing])
            found |= {job: one for job, one in _rows(answer or "").items() if job in missing}
    return found


def _rows(answer: str) -> dict[str, JobDescription]:
    found, names = {}, list[str]()
    for row in csv.reader(answer.splitlines()):
        if row[:1] == ["H"]:
            names = [name.strip() for name in row]
        elif names and len(row) == len(names):
            job = dict(zip(names, row, strict=True))
            found[job.get("JOB_ID", "").strip()] = JobDescription(
                text_of(job.get("USER")), text_of(job.get("JOB_NAME")),
                whole(job.get("NODE_NUM", "").partition(":")[0]),
                date_of(job.get("START_DATE"), _DATE), date_of(job.get("END_DATE"), _DATE),
            )  # fmt: skip
    return found


PJM = Scheduler(
    "pjm",
    # This matches the id of a job, of one subjob of a bulk job, or of one job of a step job.
    re.compile(r"[1-9][0-9]{0,9}(\[[0-9]{1,7}\]|_[0-9]{1,5})?", re.ASCII),
    (("pjstat", "--data", "--choose", "jid,st,usr,sdt", JOB),),
    read,
    describe,
    {
        "hold": Way((_HOLD,), (_RELEASE,), "waiting", "held"),
        "requeue": Way((_HOLD,), (_RELEASE,), "running", "held"),
    },
    was_tried=False,
)
