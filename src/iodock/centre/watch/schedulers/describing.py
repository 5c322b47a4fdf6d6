"""Queries the owner, name, nodes and times of several jobs, and parses values in the output of schedulers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from iodock.centre.watch.schedulers.base import Ask, JobDescription, Scheduler
from iodock.shared.bounded.commands import answer_of
from iodock.shared.bounded.limits import OUTPUT

MOST_JOBS = 20
"""Largest number of jobs in one query."""
_PATIENCE_S = 10.0
_IN_UTC = ("env", "LC_ALL=C.UTF-8", "TZ=UTC", "SLURM_TIME_FORMAT=%s")
CTIME = "%a %b %d %H:%M:%S %Y"
"""Format of times such as `Sun Nov 29 08:12:00 2026`."""


def described(
    scheduler: Scheduler | None, jobs: Iterable[str], ask: Ask | None = None
) -> Mapping[str, JobDescription]:
    """Returns descriptions of jobs by their ids. Jobs that the scheduler does not know and invalid ids are
    left out."""
    if scheduler is None:
        return {}
    ids = [job for job in dict.fromkeys(jobs) if scheduler.is_id(job)][:MOST_JOBS]
    return scheduler.describe(ids, ask or answered) if ids else {}


def answered(command: Sequence[str]) -> str | None:
    """Runs a command of a scheduler and returns its output, or None if it fails. No exception is raised,
    because a digest can be made without the scheduler's information."""
    answer = answer_of([*_IN_UTC, *command], OUTPUT, _PATIENCE_S)
    return answer.said if answer.outcome == "answered" and answer.status == 0 else None


def whole(text: object) -> int | None:
    """Returns a number if the text is a valid count, else None."""
    digits = str(text).strip()
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


def moment(text: object) -> int | None:
    """Parses a number of seconds since the epoch and returns ns, or None if the text is not such a number."""
    seconds = re.fullmatch(r"[0-9]{1,11}", str(text).strip())
    return int(seconds[0]) * 10**9 if seconds and int(seconds[0]) else None


def date_of(text: object, form: str) -> int | None:
    """Parses a date in the format FORM of strptime and returns ns since the epoch, or None if it is invalid.
    Dates are in UTC, because all commands run with the time zone UTC."""
    try:
        at = datetime.strptime(str(text).strip(), form).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 10**9


def text_of(value: object) -> str | None:
    found = str(value).strip() if value is not None else ""
    return found[:256] or None
