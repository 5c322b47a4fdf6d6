"""Builds the page with the table of jobs."""

from __future__ import annotations

from collections.abc import Mapping

from iodock.centre.monitor.questions import jobs
from iodock.centre.monitor.questions import names as called
from iodock.centre.monitor.questions.counted import CGROUPS, PROCESSES, SERVERS
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.spans import Span
from iodock.centre.portal.forms import MOST_ROWS, job_address
from iodock.centre.portal.people import login, names
from iodock.centre.portal.shown.file_systems import empty
from iodock.centre.portal.shown.page import SPAN, Question, Shown
from iodock.centre.portal.tables import Column, Table
from iodock.shared.language import N_, Language

PLACE_TITLES = {
    SERVERS: N_("file servers"),
    PROCESSES: N_("processes on nodes"),
    CGROUPS: N_("cgroups on nodes"),
}
PLACE_NOTES = {
    SERVERS: N_("Bytes that file servers transferred for each job."),
    PROCESSES: N_("Bytes that processes requested, including the page cache, pipes and /dev/zero."),
    CGROUPS: N_("Bytes that the nodes' own devices transferred."),
}
MOST = 100


WORDS = (*SPAN, "at", "user", "fs", "q", "sort", "order", "top")
"""Parameters of this page."""


def shown(question: Question) -> Shown:
    """Returns the content of the page. Raises RequestError, StoreError."""
    text, asked = question.text, question.asked
    within = question.within("15m")
    places = jobs.places(question.store, within)
    place = asked.place or (places[0] if places else SERVERS)
    user, part = asked.text("user"), asked.text("q")
    named = called.numbers_called(question.store, part, question.seen, within.begin, within.end)
    wanted = jobs.Wanted(
        place, question.seen, names(user) if user else (), asked.text("fs"), part, named,
        sort=asked.sort, descending=asked.is_descending, most=asked.number("top", MOST, MOST_ROWS),
    )  # fmt: skip
    listed, total = table(question, within, wanted)
    more = {
        "within": within, "default_range": "15m",
        "places": {one: text.gettext(PLACE_TITLES[one]) for one in places},
        "place": place, "place_note": text.gettext(PLACE_NOTES[place]), "total": total, "filters": True,
    }  # fmt: skip
    return Shown("jobs.html", text.gettext("Jobs"), within.begin, within.end, [listed], [], more)


def table(question: Question, within: Span, wanted: jobs.Wanted) -> tuple[Table, int]:
    """Returns a table of jobs with their names, and the number of jobs before `wanted.most` limits the table.
    Raises StoreError."""
    rows = as_rows(jobs.jobs(question.store, within, question.site.ids, wanted))
    found = called.names(question.store, (str(row["job"]) for row in rows), within.begin, within.end)
    # Links to jobs' pages keep only the language and not the span, so a job's page shows the whole time of
    # the job.
    carried = dict(question.own)
    made = [_row(row, carried, found) for row in rows]
    listed = Table("jobs", question.text.gettext("Jobs"), columns(question.text), list(made), empty(question))
    return listed, int(str(rows[0]["total"])) if rows else 0


def _row(row: dict[str, object], carried: Mapping[str, str], found: called.Names) -> dict[str, object]:
    job, user = str(row["job"]), row["user"]
    known = {
        "user": login(str(user)) if user is not None else None, "hosts": row["hosts"] or None,
        "job_name": called.name_of(found, job, user) if row["is_job"] else None,
    }  # fmt: skip
    return {**row, **known, "link": job_address(job, carried) if job else "", "full": job}


def columns(text: Language) -> tuple[Column, ...]:
    """Returns the columns of the table of jobs."""
    return (
        Column("job", text.gettext("job"), "job", "job"),
        Column("user", text.gettext("user"), "user", "user"),
        Column("job_name", text.gettext("name"), "title"),
        Column("read_rate", text.gettext("read/s"), "bytes_rate", "read_rate"),
        Column("write_rate", text.gettext("written/s"), "bytes_rate", "write_rate"),
        Column("metadata_rate", text.gettext("metadata/s"), "rate", "metadata_rate"),
        Column("read_bytes", text.gettext("read"), "bytes", "read_bytes"),
        Column("write_bytes", text.gettext("written"), "bytes", "write_bytes"),
        Column("metadata", text.gettext("metadata"), "number", "metadata"),
        Column("seconds", text.gettext("active"), "seconds", "seconds"),
        Column("hosts", text.gettext("nodes"), "integer", "hosts"),
        Column("file_systems", text.gettext("file system"), "name"),
        Column("command", text.gettext("command"), "name"),
    )
