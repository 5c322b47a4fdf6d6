"""PBS Professional and OpenPBS: `qstat -x -f -F json` (PBS User's Guide). Not tried on a real one here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from iodock.centre.watch.job_facts.facts import JobFacts, Run, Scheduler, text_of, whole
from iodock.shared.bounded.documents import DocumentError, from_json


def facts(ids: Sequence[str], run: Run) -> Mapping[str, JobFacts]:
    answer = run(["qstat", "-x", "-f", "-F", "json", *ids])
    try:
        jobs = from_json(answer or "{}").get("Jobs", {})
    except (DocumentError, AttributeError):
        return {}
    found: dict[str, JobFacts] = {}
    for full, job in jobs.items() if isinstance(jobs, dict) else ():
        for asked in ids:
            # A server's name follows the number: both are ids of the job.
            if isinstance(job, dict) and asked in (full, full.partition(".")[0]):
                found[asked] = _of(job)
    return found


def _of(job: Mapping[str, object]) -> JobFacts:
    owner = str(job.get("Job_Owner") or "").partition("@")[0]
    wanted = job.get("Resource_List")
    nodes = wanted.get("nodect") if isinstance(wanted, dict) else None
    end = _date(job.get("obittime")) if job.get("job_state") == "F" else None
    return JobFacts(text_of(owner), text_of(job.get("Job_Name")), whole(nodes), _date(job.get("stime")), end)


def _date(text: object) -> int | None:
    """`Sun Nov 29 08:12:00 2026`, in UTC as the command was run."""
    try:
        at = datetime.strptime(str(text), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 10**9


SCHEDULER = Scheduler("pbs", "qstat", False, facts)
