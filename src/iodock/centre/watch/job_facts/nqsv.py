"""NEC's NQSV: `qstat -f`, lines `Name: value` below each request. Not tried on a real one here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from iodock.centre.watch.job_facts.facts import JobFacts, Run, Scheduler, text_of, whole


def facts(ids: Sequence[str], run: Run) -> Mapping[str, JobFacts]:
    found: dict[str, JobFacts] = {}
    for full, values in _requests(run(["qstat", "-f", *ids]) or ""):
        for asked in ids:
            if asked in (full, full.partition(".")[0]):
                found[asked] = JobFacts(
                    text_of(values.get("User Name") or values.get("Owner")),
                    text_of(values.get("Request Name")), whole(values.get("Number of Jobs", "")),
                    _date(values.get("Started Time", "")), _date(values.get("Ended Time", "")),
                )  # fmt: skip
    return found


def _requests(answer: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[str, dict[str, str]]] = []
    for line in answer.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == "Request ID":
            found.append((value.strip(), {}))
        elif colon and found:
            # A later line of the same name is of a part of the request.
            found[-1][1].setdefault(name.strip(), value.strip())
    return found


def _date(text: str) -> int | None:
    """`Sun Nov 29 08:12:00 2026`."""
    try:
        at = datetime.strptime(text.strip(), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 10**9


SCHEDULER = Scheduler("nqsv", "qstat", False, facts)
