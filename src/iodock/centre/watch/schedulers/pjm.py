"""PJM, the job operation software of Technical Computing Suite: pjstat, pjhold and pjrls, from its end user's
guide; not tried on a real one. It has no command that suspends a job; a running job that is held begins anew
when it is released."""

from __future__ import annotations

import re

from iodock.centre.watch.schedulers.base import JOB, JobFacts, JobState, Scheduler, Way, one_state

_STATES: dict[str, JobState] = {
    "ACC": "waiting", "QUE": "waiting", "RNA": "other", "RNP": "other", "RUN": "running", "RNE": "other",
    "HLD": "held", "EXT": "ended", "CCL": "ended", "RJT": "ended", "ERR": "ended",
}  # fmt: skip
_HOLD, _RELEASE = ("pjhold", JOB), ("pjrls", JOB)


def read(job: str, outputs: tuple[str, ...]) -> JobFacts | None:
    """Of `pjstat --data`: a line of titles that begins with H, then one for each job. Raises ValueError."""
    rows = [line.split(",") for line in outputs[0].splitlines() if line.strip()]
    if not rows:
        return None
    if rows[0][0] != "H":
        raise ValueError("pjstat prints another form")
    for row in rows[1:]:
        facts = dict(zip(rows[0], row, strict=False))
        if facts.get("JOB_ID") == job:
            state = one_state(_STATES, facts.get("ST", ""))
            return JobFacts(
                job, state, facts.get("USER") or None, f"{facts.get('ST')} {facts.get('START_DATE')}"
            )
    return None


PJM = Scheduler(
    "pjm",
    # A job, one subjob of a bulk job, or one of a step job.
    re.compile(r"[1-9][0-9]{0,9}(\[[0-9]{1,7}\]|_[0-9]{1,5})?", re.ASCII),
    (("pjstat", "--data", "--choose", "jid,st,usr,sdt", JOB),),
    read,
    {
        "hold": Way((_HOLD,), (_RELEASE,), "waiting", "held"),
        "requeue": Way((_HOLD,), (_RELEASE,), "running", "held"),
    },
    was_tried=False,
)
