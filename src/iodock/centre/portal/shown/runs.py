"""Compares a job with earlier runs of the same name and decides whether it is slower."""

from __future__ import annotations

from dataclasses import dataclass, replace

from iodock.centre.monitor.questions import names as called
from iodock.centre.monitor.questions.job import OneJob
from iodock.centre.monitor.questions.runs import MOST_RUNS, OVER_AFTER, runs
from iodock.centre.monitor.questions.spans import DAY, SECOND, span
from iodock.centre.monitor.usual import Judgement, Run, judged
from iodock.centre.portal.forms import job_address
from iodock.centre.portal.people import names
from iodock.centre.portal.shown.page import LAG_S, Question
from iodock.centre.portal.tables import Column, Table
from iodock.centre.views.runs_text import evidence
from iodock.centre.watch.digest import Sums

LOOKED_BACK = 30 * DAY


@dataclass(frozen=True)
class Compared:
    """The result of comparing a named job with earlier runs, in the form that a page shows."""

    name: str
    judgement: Judgement
    verdict: str
    evidence: str
    tables: list[Table]
    """A table of all runs, and a table with the verdict for download."""


@dataclass(frozen=True)
class KnownRuns:
    """A job, all jobs with the same name, and the result of comparing them."""

    name: str
    own: Run
    every: list[Run]
    judgement: Judgement


def compared(question: Question, job: OneJob, users: list[str], place: str) -> Compared | None:
    """Compares a job with its earlier runs. Returns the result in the form that a page shows, or None if the
    job's name is not known."""
    known = known_runs(question, job, users, place)
    if known is None:
        return None
    own, judgement = known.own, known.judgement
    tables = [_runs(question, own, known.every, judgement), _verdict(question, known.name, own, judgement)]
    verdict = question.text.gettext(judgement.verdict.value)
    return Compared(known.name, judgement, verdict, evidence(own, judgement, question.text), tables)


def known_runs(
    question: Question, job: OneJob, users: list[str], place: str, last: Sums | None = None
) -> KnownRuns | None:
    """Finds the runs with the same name and compares the job with them. Returns None if the job's name is not
    known. USERS has the users of the job's rows. LAST has the sums of the job's last run if the job ran
    before; they replace the sums over all its runs. Raises StoreError."""
    store = question.store
    end = question.asked.end or question.asked.now - LAG_S * SECOND
    begin = (job.lived or (end, end))[0]
    sees_all = question.visitor.may_see_all
    whose = users
    if not users and sees_all:
        # The rows of the job have no user, so only operators may see the job. Its name is then taken from the
        # users who reported a name for this job.
        whose = called.tellers(called.names(store, [job.number], begin, end), job.number)
    for user in whose:
        name, alike = called.alike(store, job.number, names(user), begin, end, MOST_RUNS)
        if name:
            break
    else:
        return None
    numbers = tuple(dict.fromkeys((job.number, *alike)))
    looked_at = span(end - LOOKED_BACK, end, store.catalogue)
    every = runs(store, question.site.ids, numbers, names(user), place, looked_at, end, sees_all)
    own = next((one for one in every if one.job == job.number), None)
    if own is None:
        return None
    if last and job.lived:
        every = [one for one in every if one is not own]
        own = replace(
            own, begin=job.lived[0], read_bytes=last.read_bytes, write_bytes=last.write_bytes,
            metadata=last.metadata, is_exact=last.is_exact,
        )  # fmt: skip
        every = [own, *every]
    return KnownRuns(name, own, every, judged(own, every))


def _runs(question: Question, own: Run, every: list[Run], judgement: Judgement) -> Table:
    text = question.text
    carried = dict(question.own)
    states = {True: text.gettext("over"), False: text.gettext("going on")}
    rows = [
        {
            "job": one.job, "link": job_address(one.job, carried), "full": one.job,
            "begin_ts": one.begin, "end_ts": one.end, "seconds": one.seconds,
            "state_title": states[one.is_over], "state": "over" if one.is_over else "active",
            "read_bytes": one.read_bytes, "write_bytes": one.write_bytes, "metadata": one.metadata,
            "read_rate": _rate(one.read_bytes, one), "write_rate": _rate(one.write_bytes, one),
            "metadata_rate": _rate(one.metadata, one),
            "role": _role(question, one, own, judgement), "exact": one.is_exact,
            "compared": one.job in judgement.compared,
        }
        for one in every
    ]  # fmt: skip
    columns = (
        Column("job", text.gettext("job"), "job"),
        Column("role", text.gettext("compared")),
        Column("begin_ts", text.gettext("began"), "time"),
        Column("seconds", text.gettext("active"), "seconds"),
        Column("state_title", text.gettext("state")),
        Column("read_bytes", text.gettext("read"), "bytes"),
        Column("write_bytes", text.gettext("written"), "bytes"),
        Column("metadata", text.gettext("metadata"), "number"),
        Column("read_rate", text.gettext("read/s"), "bytes_rate"),
        Column("write_rate", text.gettext("written/s"), "bytes_rate"),
        Column("metadata_rate", text.gettext("metadata/s"), "rate"),
        # These columns are only in files for download. Their values are not translated, so that programs can
        # compare them.
        Column("end_ts", text.gettext("last reading"), "plain"),
        Column("state", text.gettext("state"), "plain"),
        Column("compared", text.gettext("compared"), "plain"),
    )
    note = text.gettext(
        "Runs of the last 30 days, at most {most}. Over: Slurm has ended the run, or it showed no "
        "activity for {minutes} min. Whether it succeeded is not known.",
        most=MOST_RUNS, minutes=OVER_AFTER // SECOND // 60,
    )  # fmt: skip
    return Table("runs", text.gettext("Runs of this name"), columns, list(rows), "", note)


def _rate(amount: float | None, run: Run) -> float | None:
    return None if amount is None else amount / run.seconds


def _verdict(question: Question, name: str, own: Run, judgement: Judgement) -> Table:
    """Returns a table with the verdict, which is only available for download."""
    text = question.text
    columns = (
        Column("job", text.gettext("job"), "job"),
        Column("job_name", text.gettext("name"), "title"),
        Column("verdict", text.gettext("verdict"), "plain"),
        Column("seconds", text.gettext("active"), "seconds"),
        Column("runs", text.gettext("earlier runs compared"), "integer"),
        Column("usual_s", text.gettext("median"), "seconds"),
        Column("spread_s", text.gettext("spread"), "seconds"),
        Column("limit_s", text.gettext("limit"), "seconds"),
    )
    row = {
        "job": own.job, "job_name": name, "verdict": judgement.verdict.name.lower(),
        "seconds": own.seconds, "runs": len(judgement.compared), "usual_s": judgement.usual_s,
        "spread_s": judgement.spread_s, "limit_s": judgement.limit_s,
    }  # fmt: skip
    return Table("verdict", text.gettext("This run compared"), columns, [row], "", has_bounds=False)


def _role(question: Question, one: Run, own: Run, judgement: Judgement) -> str:
    if one is own:
        return question.text.gettext("this job")
    return question.text.gettext("yes") if one.job in judgement.compared else question.text.gettext("no")
