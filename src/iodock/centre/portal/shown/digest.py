"""Makes the digest of a job from the same queries as the job's page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from iodock.centre.monitor.questions import job as questions
from iodock.centre.monitor.questions.counted import PROCESSES, SERVERS, metadata_operations
from iodock.centre.monitor.questions.job import OneJob
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.runs import OVER_AFTER
from iodock.centre.monitor.questions.spans import HOUR
from iodock.centre.portal.forms import Asked
from iodock.centre.portal.people import login
from iodock.centre.portal.shown.job import listed, lived, whole_span
from iodock.centre.portal.shown.page import NotThere, Question
from iodock.centre.portal.shown.runs import known_runs
from iodock.centre.watch.digest import Digest, Sums, blame, looked_back_from, parsed_id, troubles
from iodock.centre.watch.episodes import Episode
from iodock.shared.errors import RequestError
from iodock.shared.response import Intervention

WORDS = ("id", "only", "written", "again")
"""Parameters of this page."""
MOST_RUNS = 10_000
_WRITTEN = re.compile(r"[0-9]{1,12}_[0-9]{1,12}")
_PARTS = ("place", "side")
_SAME_RUN = HOUR
"""A run belongs to a digest id if its begin differs by less than this. Sums of ten minutes begin before the
data in them, and a job id is reused only much later."""

Rows = Sequence[dict[str, object]]


@dataclass(frozen=True)
class Which:
    """Information about a job from the scheduler that the id does not contain."""

    written: str = ""
    """The job's id as users write it: `1234_7` for a task of an array."""
    again: int = 0
    """Number of times that the scheduler restarted the job."""

    @classmethod
    def asked(cls, asked: Asked) -> Which:
        """Reads this information from the parameters of a request. Raises RequestError."""
        written, again = asked.text("written"), asked.text("again") or "0"
        if written and not _WRITTEN.fullmatch(written):
            raise RequestError("written: not a task of an array", "as 1234_7")
        if not re.fullmatch("[0-9]{1,5}", again) or int(again) > MOST_RUNS:
            raise RequestError("number of starts: not how often a job was started again")
        return cls(written, int(again))


def digest(question: Question, number: str, which: Which = Which()) -> Digest:
    """Makes the digest of a job. NUMBER is the job's number, or the id printed in a digest, which also
    contains the begin of the run. Raises NotThere if there is no such job or run, or if it belongs to another
    user; RequestError, StoreError."""
    number, began = parsed_id(number)
    # The agent escapes control characters in ids, so no stored id contains one.
    if not number or any(letter < " " or letter == "\x7f" for letter in number):
        raise NotThere
    question = looking_back(question, began)
    job = lived(question, OneJob(question.site.ids, number, question.seen))
    if job.lived is None:
        raise NotThere
    first, last = job.lived
    if began is None:
        return _digest(question, job, first, last, which)
    if not first - _SAME_RUN <= began <= last + _SAME_RUN:
        raise NotThere
    if began - first <= _SAME_RUN and not which.again:
        return _digest(question, job, first, last, which)
    # Data from before this begin belongs to an earlier run or to another job with the same id, so it is left
    # out.
    if began >= last:
        raise NotThere
    run = replace(job, lived=(began, last), since=began)
    return _digest(question, run, began, last, which, first if first < began else None)


def looking_back(question: Question, began: int | None) -> Question:
    """Returns QUESTION with an earlier end of the requested time if a job that began at BEGAN (ns since the
    epoch) is too old to be found otherwise. Returns QUESTION itself if BEGAN is None."""
    asked = question.asked
    end = None if began is None else looked_back_from(began, asked.now)
    if end is None:
        return question
    return replace(question, asked=replace(asked, values={**asked.values, "end": str(end)}))


def _digest(
    question: Question, job: OneJob, begin: int, end: int, which: Which, earlier: int | None = None
) -> Digest:
    rows = as_rows(questions.parts(question.store, job, whole_span(question, job), _PARTS))
    totals = [row for row in rows if row["part"] == "place"]
    users = sorted({one for row in totals for one in listed(row["users"])})
    systems = tuple(sorted({name for row in totals for name in listed(row["file_systems"])}))
    place = str(totals[0]["place"]) if totals else SERVERS
    sums = tuple(_sums(row, rows) for row in totals)
    own = next((one for one in sums if one.place == place), None)
    runs = known_runs(question, job, users, place, own if earlier is not None else None)
    episodes = _episodes(question, begin, end)
    responder = question.site.responder
    return Digest(
        job=job.number,
        users=tuple(sorted({login(one) for one in users})),
        name=runs.name if runs else None,
        begin=begin,
        end=end,
        is_over=runs.own.is_over if runs else end + OVER_AFTER < question.asked.now,
        sums=sums,
        file_systems=systems,
        run=runs.own if runs else None,
        judgement=runs.judgement if runs else None,
        troubles=None if episodes is None else troubles(episodes, systems, begin, end),
        blame=blame(episodes or (), job.number, begin, end),
        rules=responder.rules if responder else Intervention(),
        is_synthetic=question.site.is_synthetic,
        written=which.written or None,
        again=which.again,
        earlier=earlier,
    )


def _episodes(question: Question, begin: int, end: int) -> list[Episode] | None:
    """Returns the episodes from BEGIN to END (ns since the epoch), or None if the collector does not store
    episodes."""
    site = question.site
    if site.episodes:
        return site.episodes(begin, end)
    return site.responder.episodes_between(begin, end) if site.responder else None


def _sums(total: dict[str, object], rows: Rows) -> Sums:
    place = str(total["place"])
    of_calls = place == PROCESSES
    read, write, reads, writes = (
        ("call_read_bytes", "call_write_bytes", "read_calls", "write_calls")
        if of_calls else ("read_bytes", "write_bytes", "reads", "writes")
    )  # fmt: skip
    side = next(
        (row for row in rows if (row["place"], row["part"], row["name"]) == (place, "side", "mdt")), {}
    )
    counted = [(name, _number(side.get(name))) for name in metadata_operations()] if place == SERVERS else []
    kinds = [(name, value) for name, value in counted if value]
    return Sums(
        place=place,
        read_bytes=_number(total[read]),
        write_bytes=_number(total[write]),
        reads=_number(total[reads]),
        writes=_number(total[writes]),
        metadata=_number(total["metadata"]),
        operations=tuple(sorted(kinds, key=lambda one: (-one[1], one[0]))),
        is_exact=total["exact"] is True,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
