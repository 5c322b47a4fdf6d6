"""Fujitsu's Technical Computing Suite (PJM): `pjstat --data`, whose line with H names the columns. Not
tried on a real one here; a column is looked for by its name, so a release with others only tells less."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from iodock.centre.watch.job_facts.facts import JobFacts, Run, Scheduler, text_of, whole

_WANTED = "jid,jnam,usr,nnumr,sdt,edt"


def facts(ids: Sequence[str], run: Run) -> Mapping[str, JobFacts]:
    found: dict[str, JobFacts] = {}
    for history in ((), ("-H",)):
        if missing := [job for job in ids if job not in found]:
            answer = run(["pjstat", *history, "--data", "--choose", _WANTED, *missing])
            found |= {job: one for job, one in _rows(answer or "").items() if job in missing}
    return found


def _rows(answer: str) -> dict[str, JobFacts]:
    found, names = {}, list[str]()
    for row in csv.reader(answer.splitlines()):
        if row[:1] == ["H"]:
            names = [name.strip() for name in row]
        elif names and len(row) == len(names):
            job = dict(zip(names, row, strict=True))
            found[job.get("JOB_ID", "").strip()] = JobFacts(
                text_of(job.get("USER")), text_of(job.get("JOB_NAME")),
                whole(job.get("NODE_NUM", "").partition(":")[0]),
                _date(job.get("START_DATE", "")), _date(job.get("END_DATE", "")),
            )  # fmt: skip
    return found


def _date(text: str) -> int | None:
    """`2026/11/29 08:12:00`; in brackets where it is expected only."""
    try:
        at = datetime.strptime(text.strip(), "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 10**9


SCHEDULER = Scheduler("pjm", "pjstat", False, facts)
