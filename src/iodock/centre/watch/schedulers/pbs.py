"""The adapter for PBS Professional and OpenPBS, which uses qstat, qhold, qrls, qsig and qrerun. It was
written from their manuals and has not been tried on a real installation."""

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
from iodock.shared.bounded.documents import DocumentError, from_json

_STATES: dict[str, JobState] = {
    "Q": "waiting", "W": "waiting", "H": "held", "R": "running", "S": "suspended", "U": "suspended",
    "F": "ended", "X": "ended", "E": "ended",
}  # fmt: skip
_HOLD, _RELEASE = ("qhold", "-h", "o", JOB), ("qrls", "-h", "o", JOB)


def read(job: str, outputs: tuple[str, ...]) -> JobFacts | None:
    """Parses the output of qstat about one job. Returns None if the job is not in it. Raises ValueError."""
    found = from_json(outputs[0])
    jobs = found.get("Jobs", {}) if isinstance(found, dict) else None
    if not isinstance(jobs, dict):
        raise ValueError("qstat prints another format")
    # Ids in the output end with the server's name, which JOB may omit.
    facts = next((one for name, one in jobs.items() if name == job or name.split(".")[0] == job), None)
    if facts is None:
        return None
    if not isinstance(facts, dict):
        raise ValueError("qstat prints another format")
    state = one_state(_STATES, str(facts.get("job_state")))
    owner = str(facts.get("Job_Owner", "")).rpartition("@")[0] or None
    told = [facts.get(name) for name in ("job_state", "substate", "Hold_Types", "run_count", "mtime")]
    return JobFacts(job, state, owner, None if None in (told[0], told[4]) else repr(told))


def describe(ids: Sequence[str], ask: Ask) -> Mapping[str, JobDescription]:
    answer = ask(["qstat", "-x", "-f", "-F", "json", *ids])
    try:
        jobs = from_json(answer or "{}").get("Jobs", {})
    except (DocumentError, AttributeError):
        return {}
    found: dict[str, JobDescription] = {}
    for full, job in jobs.items() if isinstance(jobs, dict) else ():
        for asked in ids:
            # Ids in the output end with the server's name. The requested id may omit it.
            if isinstance(job, dict) and asked in (full, full.partition(".")[0]):
                found[asked] = _of(job)
    return found


def _of(job: Mapping[str, object]) -> JobDescription:
    owner = str(job.get("Job_Owner") or "").partition("@")[0]
    wanted = job.get("Resource_List")
    nodes = wanted.get("nodect") if isinstance(wanted, dict) else None
    end = date_of(job.get("obittime"), CTIME) if job.get("job_state") == "F" else None
    return JobDescription(
        text_of(owner), text_of(job.get("Job_Name")), whole(nodes), date_of(job.get("stime"), CTIME), end
    )


PBS = Scheduler(
    "pbs",
    # This matches the id of a job or of one subjob, with or without the server's name.
    re.compile(r"[1-9][0-9]{0,11}(\[[0-9]{1,7}\])?(\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,8}", re.ASCII),
    (("qstat", "-x", "-f", "-F", "json", JOB),),
    read,
    describe,
    {
        "hold": Way((_HOLD,), (_RELEASE,), "waiting", "held"),
        "suspend": Way(
            (("qsig", "-s", "suspend", JOB),), (("qsig", "-s", "resume", JOB),), "running", "suspended"
        ),
        "requeue": Way((_HOLD, ("qrerun", JOB)), (_RELEASE,), "running", "held"),
    },
    was_tried=False,
)
