"""The adapter for Grid Engine, which uses qstat, qhold, qrls and qmod. It was written from the manual pages
and has not been tried on a real installation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

from iodock.centre.watch.schedulers.base import JOB, Ask, JobDescription, JobFacts, JobState, Scheduler, Way
from iodock.centre.watch.schedulers.describing import date_of, text_of

_ALL = ("qstat", "-u", "*", "-xml")
_HOLD, _RELEASE = ("qhold", "-h", "o", JOB), ("qrls", "-h", "o", JOB)


def read(job: str, outputs: tuple[str, ...]) -> JobFacts | None:
    """Finds a job in the output of `qstat -xml` about all jobs. The output about one job would not contain
    the state. Raises ValueError."""
    number, _, task = job.partition(".")
    for one in _listed(outputs[0]):
        if one.findtext("JB_job_number") == number and (not task or one.findtext("tasks") == task):
            letters = one.findtext("state") or ""
            started = one.findtext("JAT_start_time") or one.findtext("JB_submission_time")
            return JobFacts(job, _state(letters), one.findtext("JB_owner"), f"{letters} {started}")
    return None


def describe(ids: Sequence[str], ask: Ask) -> Mapping[str, JobDescription]:
    """Returns descriptions of jobs, without the number of nodes, because Grid Engine reports only slots."""
    try:
        jobs = list(_listed(ask(_ALL) or ""))
    except ValueError:
        return {}
    found: dict[str, JobDescription] = {}
    for job in jobs:
        number = (job.findtext("JB_job_number") or "").strip()
        if number in ids and number not in found:
            begin = date_of(job.findtext("JAT_start_time"), "%Y-%m-%dT%H:%M:%S")
            owner, name = job.findtext("JB_owner"), job.findtext("JB_name")
            found[number] = JobDescription(text_of(owner), text_of(name), None, begin)
    return found


def _listed(answer: str) -> Iterator[ElementTree.Element]:
    """Yields the jobs in the output of qstat. Raises ValueError."""
    # XML with a document type is refused, because nested entities in it could expand to a huge text.
    if "<!DOCTYPE" in answer:
        raise ValueError("qstat prints another format")
    try:
        return ElementTree.fromstring(answer).iter("job_list")
    except ElementTree.ParseError as error:
        raise ValueError(f"qstat prints no XML: {error}") from None


def _state(letters: str) -> JobState:
    """Translates the letters of a job's state, which qstat(1) explains: h hold, s and S suspended, r running,
    q queued, w waiting, d being deleted."""
    if "d" in letters or "E" in letters:
        return "other"
    if "h" in letters:
        return "held"
    if "s" in letters or "S" in letters:
        return "suspended"
    if "r" in letters or "t" in letters:
        return "running"
    return "waiting" if "q" in letters and "w" in letters else "other"


GRID_ENGINE = Scheduler(
    "grid-engine",
    # This matches the id of a job, or of one task of an array.
    re.compile(r"[1-9][0-9]{0,8}(\.[1-9][0-9]{0,6})?", re.ASCII),
    (_ALL,),
    read,
    describe,
    {
        "hold": Way((_HOLD,), (_RELEASE,), "waiting", "held"),
        "suspend": Way((("qmod", "-sj", JOB),), (("qmod", "-usj", JOB),), "running", "suspended"),
        "requeue": Way((_HOLD, ("qmod", "-rj", JOB)), (_RELEASE,), "running", "held"),
    },
    was_tried=False,
)
