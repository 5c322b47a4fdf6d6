"""Builds the page about the current state of servers. It shows since when a server has had its state, the
evidence, possible causes, and earlier episodes."""

from __future__ import annotations

from dataclasses import dataclass

from iodock.centre.portal.forms import job_address
from iodock.centre.portal.people import names
from iodock.centre.portal.shown.page import HISTORY_DAYS, Question, Shown
from iodock.centre.portal.tables import Column, Table
from iodock.centre.views import verdicts as words
from iodock.centre.watch import cures
from iodock.centre.watch.names import KINDS, STATES
from iodock.centre.watch.verdict import UNWELL, Suspect, Verdict
from iodock.centre.watch.watching import Spell
from iodock.shared.response import Intervention

WORDS: tuple[str, ...] = ()
"""Parameters of this page."""
_MOST_SERVERS = 200
_MOST_PAST = 100
_QUIET = ("healthy", "busy")


@dataclass(frozen=True)
class Helps:
    """Advice about a server that has problems."""

    owner: list[str]
    """Sentences for the job's owner."""
    operators: cures.OperatorCures | None
    """Advice for operators; None: the visitor is not an operator."""


def shown(question: Question) -> Shown:
    """Returns the content of the page. Users see the states of all file systems, but among the suspects only
    their own jobs. Raises StoreError."""
    text, now = question.text, question.asked.now
    verdicts = question.verdicts
    unwell = [one for one in verdicts if one.state in UNWELL]
    counts = {state: sum(one.state == state for one in verdicts) for state in STATES}
    told = [(text.gettext(STATES[state]), count) for state, count in counts.items() if count]
    more = {
        "unwell": unwell, "counts": told, "words": words,
        "suspects": {one.server: seen(question, one) for one in unwell},
        "pieces": {one.server: [words.piece(part, text) for part in one.evidence] for one in unwell},
        "helps": {one.server: _helps(question, one) for one in unwell},
        "silent": counts["no-samples"], "known": len(verdicts),
    }  # fmt: skip
    evidence, suspects = _evidence(question, unwell), _suspects(question, unwell)
    tables = [_servers(question, verdicts), evidence, suspects, _history(question)]
    begin = min((one.since_ns for one in unwell), default=now)
    return Shown("now.html", text.gettext("Now"), begin, now, tables, more=more)


def seen(question: Question, verdict: Verdict) -> list[Suspect]:
    """Returns the suspects that the visitor may see. Operators see all jobs. A user sees only the user's own
    jobs, and no jobs with an unknown owner."""
    if question.visitor.may_see_all:
        return list(verdict.suspects)
    own = names(question.visitor.user)
    return [one for one in verdict.suspects if one.owner is not None and one.owner in own]


def _helps(question: Question, verdict: Verdict) -> Helps:
    """Returns advice for the owner of the first suspect that the visitor may see. If the visitor is an
    operator, adds advice for operators."""
    text, responder = question.text, question.site.responder
    rules = responder.rules if responder else Intervention()
    named = seen(question, verdict)
    owner = cures.for_owner(verdict.state, verdict.kind, named[0], rules, text) if named else []
    if not question.visitor.may_see_all:
        return Helps(owner, None)
    desk = responder.desk if responder else None
    return Helps(owner, cures.for_operators(verdict.state, verdict.kind, named, rules, desk, text))


def _servers(question: Question, verdicts: tuple[Verdict, ...]) -> Table:
    text = question.text
    columns = [
        Column("file_system", text.gettext("file system"), "name"),
        Column("title", text.gettext("state")),
        Column("since", text.gettext("since"), "time"),
        Column("kind_title", text.gettext("kind")),
        Column("confidence", text.gettext("confidence"), "share"),
        Column("samples", text.gettext("samples"), "integer"),
        Column("state", text.gettext("state"), "plain"),
    ]
    if question.visitor.may_see_all:
        columns[1:1] = [Column("server", text.gettext("machine"), "machine")]
    rows = [
        {
            "file_system": one.file_system, "server": one.server, "state": one.state,
            "title": text.gettext(STATES[one.state]), "kind_title": text.gettext(KINDS[one.kind]),
            "since": one.since_ns, "confidence": one.confidence, "samples": one.samples or None,
        }
        for one in verdicts[:_MOST_SERVERS]
    ]  # fmt: skip
    note = ""
    if len(verdicts) > _MOST_SERVERS:
        note = text.gettext("The worst {shown} of {n} servers.", shown=_MOST_SERVERS, n=f"{len(verdicts):,}")
    nothing = text.gettext("No file server has sent samples")
    return Table(
        "servers", text.gettext("Servers"), tuple(columns), list(rows), nothing, note, has_bounds=False
    )


def _evidence(question: Question, unwell: list[Verdict]) -> Table:
    text = question.text
    columns = (
        Column("file_system", text.gettext("file system"), "name"),
        Column("server", text.gettext("machine"), "machine"),
        Column("title", text.gettext("observation")),
        Column("shown", text.gettext("now")),
        Column("usually", text.gettext("usual")),
        Column("what", text.gettext("observation"), "plain"),
        Column("value", text.gettext("now"), "plain"),
        Column("usual", text.gettext("usual"), "plain"),
        Column("unit", text.gettext("unit"), "plain"),
    )
    rows = [
        {
            "file_system": one.file_system, "server": one.server, "title": words.what(part, text),
            "shown": words.value(part.value, part.unit), "usually": words.value(part.usual, part.unit),
            "what": part.what, "value": part.value, "usual": part.usual, "unit": part.unit,
        }
        for one in unwell
        for part in one.evidence
    ]  # fmt: skip
    nothing = text.gettext("No server is in trouble")
    return Table("evidence", text.gettext("Evidence"), columns, list(rows), nothing, has_bounds=False)


def _suspects(question: Question, unwell: list[Verdict]) -> Table:
    text = question.text
    columns = (
        Column("job", text.gettext("job"), "job"),
        Column("job_name", text.gettext("name"), "title"),
        Column("user", text.gettext("user"), "user"),
        Column("hosts", text.gettext("nodes"), "integer"),
        Column("share", text.gettext("share of requests"), "share"),
        Column("confidence", text.gettext("confidence"), "share"),
        Column("asked", text.gettext("asked for"), "sentence"),
        Column("file_system", text.gettext("file system"), "name"),
        Column("server", text.gettext("machine"), "machine"),
    )
    own = dict(question.own)
    rows = [
        {
            "job": part.job, "full": part.job, "link": job_address(part.job, own), "job_name": part.name,
            "user": part.owner, "hosts": part.nodes, "share": part.share, "confidence": part.confidence,
            "asked": "; ".join(words.piece(piece, text) for piece in part.evidence),
            "file_system": one.file_system, "server": one.server,
        }
        for one in unwell
        for part in seen(question, one)
    ]  # fmt: skip
    title = text.gettext("Jobs that may have caused it")
    return Table("suspects", title, columns, list(rows), text.gettext(words.NOBODY), has_bounds=False)


def _history(question: Question) -> Table:
    text = question.text
    columns = [
        Column("file_system", text.gettext("file system"), "name"),
        Column("title", text.gettext("state")),
        Column("since", text.gettext("since"), "time"),
        Column("until", text.gettext("until"), "time"),
        Column("seconds", text.gettext("lasted"), "seconds"),
        Column("jobs", text.gettext("job"), "title"),
        Column("state", text.gettext("state"), "plain"),
    ]
    if question.visitor.may_see_all:
        columns[1:1] = [Column("server", text.gettext("machine"), "machine")]
    rows = [_spell(question, one) for one in question.history[:_MOST_PAST]]
    nothing = text.gettext("No server had problems in the recorded period")
    title = text.gettext("History")
    note = ""
    if question.site.responder:
        note = text.gettext(
            "The last {n} days. For the time before the collector started, each episode shows its "
            "worst state.",
            n=HISTORY_DAYS,
        )
    return Table("history", title, tuple(columns), list(rows), nothing, note, has_bounds=False)


def _spell(question: Question, spell: Spell) -> dict[str, object]:
    one, text = spell.verdict, question.text
    until = spell.end_ns
    return {
        "file_system": one.file_system, "server": one.server, "state": one.state,
        "title": text.gettext(STATES[one.state]), "since": one.since_ns, "until": until,
        "seconds": ((until or question.asked.now) - one.since_ns) / 1e9,
        "jobs": ", ".join(part.job for part in seen(question, one)),
    }  # fmt: skip
