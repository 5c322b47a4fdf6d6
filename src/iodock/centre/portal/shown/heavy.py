"""Builds the page with the jobs of the last month by their load on file servers. Operators use it to find the
owners of heavy jobs."""

from __future__ import annotations

from collections.abc import Mapping

from iodock.centre.monitor.questions import heavy
from iodock.centre.portal.forms import MOST_ROWS, job_address
from iodock.centre.portal.people import names
from iodock.centre.portal.shown.file_systems import empty
from iodock.centre.portal.shown.page import SPAN, Question, Shown
from iodock.centre.portal.tables import Column, Table
from iodock.shared.errors import StoreError
from iodock.shared.language import Language

WORDS = (*SPAN, "user", "fs", "q", "sort", "order", "top")
"""Parameters of this page."""
MOST = 50
_USUAL = "30d"


def shown(question: Question) -> Shown:
    """Returns the content of the page. A user sees only the user's own jobs. Raises RequestError,
    StoreError."""
    text, asked = question.text, question.asked
    within = question.within(_USUAL)
    episodes = _episodes(question, within.begin)
    sort, user = asked.choice("sort", heavy.SORTS, "metadata"), asked.text("user")
    wanted = heavy.Wanted(
        question.seen, names(user) if user else (), asked.text("fs"), asked.text("q"), sort,
        asked.is_descending, asked.number("top", MOST, MOST_ROWS), episodes,
    )  # fmt: skip
    rows, total = heavy.heavy(question.store, within, question.site.ids, wanted)
    carried = dict(question.own)
    listed = Table(
        "heavy", text.gettext("Jobs"), columns(text), [_row(row, carried) for row in rows], empty(question),
        sorted_by=sort,
    )  # fmt: skip
    more = {"within": within, "default_range": _USUAL, "total": total, "knows_episodes": episodes is not None}
    return Shown(
        "heavy.html", text.gettext("Load of jobs on file servers"), within.begin, within.end, [listed],
        more=more, refreshes=False,
    )  # fmt: skip


def _episodes(question: Question, since: int) -> Mapping[str, int] | None:
    responder = question.site.responder
    try:
        return responder.suspected(since) if responder else None
    except StoreError:
        return None


def _row(row: dict[str, object], carried: Mapping[str, str]) -> dict[str, object]:
    job = str(row["job"])
    return {**row, "full": job, "link": job_address(job, carried) if job else ""}


def columns(text: Language) -> tuple[Column, ...]:
    """Returns the columns of the table of jobs."""
    return (
        Column("job", text.gettext("job"), "job", "job"),
        Column("user", text.gettext("user"), "user", "user"),
        Column("job_name", text.gettext("name"), "title"),
        Column("episodes", text.gettext("suspected"), "integer", "episodes"),
        Column("metadata", text.gettext("metadata"), "number", "metadata"),
        Column("metadata_share", text.gettext("share of all metadata"), "share", "metadata_share"),
        Column("opens", text.gettext("opens"), "number", "opens"),
        Column("creates", text.gettext("files created"), "number", "creates"),
        Column("object_creates", text.gettext("objects created"), "number", "object_creates"),
        Column("read_bytes", text.gettext("read"), "bytes", "read_bytes"),
        Column("write_bytes", text.gettext("written"), "bytes", "write_bytes"),
        Column("bytes_share", text.gettext("share of all bytes"), "share", "bytes_share"),
        Column("hosts", text.gettext("nodes"), "integer", "hosts"),
        Column("begin_ts", text.gettext("first seen"), "time", "begin_ts"),
        Column("end_ts", text.gettext("last seen"), "time", "end_ts"),
        Column("seconds", text.gettext("active"), "seconds", "seconds"),
        Column("file_systems", text.gettext("file system"), "name"),
        Column("command", text.gettext("command"), "name"),
    )
