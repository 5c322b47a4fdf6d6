"""Builds the page with events, and with losses of agents."""

from __future__ import annotations

from collections.abc import Mapping

from iodock.centre.monitor.event_kinds import SEVERITY_TITLES, TITLES
from iodock.centre.monitor.questions import events as questions
from iodock.centre.monitor.questions import file_systems, losses
from iodock.centre.monitor.questions.events import SEVERITIES, WantedEvents
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.spans import SECOND, Span
from iodock.centre.portal.forms import check_names, shortened
from iodock.centre.portal.shown.page import SPAN, Question, Shown
from iodock.centre.portal.tables import Column, Table
from iodock.shared.errors import RequestError

WORDS = (*SPAN, "host", "kind", "severity", "fs", "q")
"""Parameters of this page."""


def shown(question: Question) -> Shown:
    """Returns the content of the page. Users see only events of file systems, without the names of machines
    and the texts, because these may name programs of other users. Only operators see losses. Raises
    RequestError, StoreError."""
    text, asked = question.text, question.asked
    within = question.within("1d")
    sees_all = question.visitor.may_see_all
    if not sees_all:
        check_names(asked.values, (*SPAN, "kind", "severity", "fs"))
    severity = asked.choice("severity", SEVERITIES, "")
    wanted = WantedEvents(
        asked.text("host") if sees_all else "", asked.text("kind"), severity, asked.text("fs"),
        asked.text("q") if sees_all else "", with_file_system=not sees_all,
    )  # fmt: skip
    rows = as_rows(
        questions.events(question.store, within.begin, end_of(question, within), served(question), wanted)
    )
    if not rows:
        _check_kind(question, wanted)
    tables = [happened(question, rows)]
    if sees_all:
        tables.append(_losses(question, within))
    kinds = {str(row["kind"]) for row in rows} | ({wanted.kind} if wanted.kind else set())
    more = {
        "within": within, "default_range": "1d", "cut": len(rows) >= questions.MOST,
        "kinds": {kind: title(question, kind) for kind in sorted(kinds)},
        "severities": {one: text.gettext(SEVERITY_TITLES[one]) for one in SEVERITIES},
        "filtered": any(asked.values.get(name) for name in ("host", "kind", "severity", "fs", "q")),
    }  # fmt: skip
    return Shown("events.html", text.gettext("Events"), within.begin, within.end, tables, more=more)


def _check_kind(question: Question, wanted: WantedEvents) -> None:
    """Checks the requested kind of events. A site may define kinds of its own, so a kind that iodock does not
    know is valid if the store has an event of this kind. Raises RequestError for an invalid kind;
    StoreError."""
    if not wanted.kind or wanted.kind in TITLES:
        return
    ever = WantedEvents(kind=wanted.kind, with_file_system=wanted.with_file_system)
    end = question.asked.now + 60 * SECOND
    if not questions.events(question.store, 0, end, served(question), ever, most=1).num_rows:
        hint = "io-error or another kind of event, or a kind that this site's agents have sent"
        raise RequestError(f"kind: {shortened(wanted.kind)}", hint)


def served(question: Question) -> Mapping[str, str]:
    """Maps each file server that sent data in the hour before the end of the requested time to its file
    system. Raises StoreError."""
    found = as_rows(file_systems.served(question.store, question.asked.end or question.asked.now))
    return {str(row["host"]): str(row["file_system"]) for row in found}


def end_of(question: Question, within: Span) -> int:
    """Returns the time until which events are shown. If no end is requested, this is one minute after now.
    Spans of readings end LAG_S before now, but events appear as soon as they arrive."""
    return within.end if question.asked.end else max(within.end, question.asked.now + 60 * SECOND)


def title(question: Question, kind: str) -> str:
    """Returns the title of a kind of events. For a kind that a site defined, this is its name."""
    return question.text.gettext(TITLES[kind]) if kind in TITLES else kind


def happened(question: Question, rows: list[dict[str, object]]) -> Table:
    """Makes a table of events from rows of `questions.events.events`."""
    text, sees_all = question.text, question.visitor.may_see_all
    columns = [
        Column("last_ts", text.gettext("at"), "time"),
        Column("severity_title", text.gettext("severity"), "severity"),
        Column("title", text.gettext("what")),
        Column("file_system", text.gettext("file system"), "name"),
        Column("count", text.gettext("count"), "integer"),
    ]
    if sees_all:
        columns[3:3] = [Column("host", text.gettext("machine"), "machine")]
        columns[5:5] = [Column("target", text.gettext("target"), "name")]
        columns += [Column("text", text.gettext("message"))]
    # These columns are only in files for download. Their values are not translated, so that programs can
    # compare them.
    columns += [
        Column("ts", text.gettext("first"), "plain"), Column("kind", text.gettext("kind"), "plain"),
        Column("severity", text.gettext("severity"), "plain"),
        *([Column("source", text.gettext("source"), "plain")] if sees_all else []),
    ]  # fmt: skip
    found = [
        {
            **row,
            "title": title(question, str(row["kind"])),
            "severity_title": text.gettext(SEVERITY_TITLES.get(str(row["severity"]), str(row["severity"]))),
        }
        for row in rows
    ]
    nothing = text.gettext("Agents reported no events in this period")
    return Table(
        "events", text.gettext("What happened"), tuple(columns), list(found), nothing, has_bounds=False
    )


def _losses(question: Question, within: Span) -> Table:
    text = question.text
    columns = (
        Column("ts", text.gettext("last"), "time"),
        Column("host", text.gettext("machine"), "machine"),
        Column("name", text.gettext("what"), "name"),
        Column("source", text.gettext("source"), "name"),
        Column("target", text.gettext("target"), "name"),
        Column("count", text.gettext("count"), "integer"),
        Column("detail", text.gettext("detail")),
    )
    rows = as_rows(losses.losses(question.store, within.begin, within.end))
    nothing = text.gettext("Agents could read all their sources in this period")
    title = text.gettext("Sources that agents could not read")
    return Table("losses", title, columns, list(rows), nothing, has_bounds=False)
