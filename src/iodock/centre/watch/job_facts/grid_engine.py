"""Grid Engine (Son of, Altair's): `qstat -xml` of all users (qstat(1)). It knows slots and no number of
nodes. Not tried on a real one here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree

from iodock.centre.watch.job_facts.facts import JobFacts, Run, Scheduler, text_of


def facts(ids: Sequence[str], run: Run) -> Mapping[str, JobFacts]:
    # The scheduler's own answer; a name in it can't declare an entity.
    answer = run(["qstat", "-u", "*", "-xml"])
    if not answer or "<!ENTITY" in answer:
        return {}
    try:
        root = ElementTree.fromstring(answer)
    except ElementTree.ParseError:
        return {}
    found: dict[str, JobFacts] = {}
    for job in root.iter("job_list"):
        number = (job.findtext("JB_job_number") or "").strip()
        if number in ids and number not in found:
            begin = _date(job.findtext("JAT_start_time") or "")
            owner, name = job.findtext("JB_owner"), job.findtext("JB_name")
            found[number] = JobFacts(text_of(owner), text_of(name), None, begin)
    return found


def _date(text: str) -> int | None:
    """`2026-11-29T08:12:00`."""
    try:
        at = datetime.fromisoformat(text.strip()).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 10**9


SCHEDULER = Scheduler("grid-engine", "qstat", False, facts)
