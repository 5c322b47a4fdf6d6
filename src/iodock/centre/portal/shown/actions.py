"""Builds the page with actions that wait for an operator's confirmation, earlier actions on jobs, and
episodes of servers."""

from __future__ import annotations

import time
from collections.abc import Mapping

from iodock.centre.monitor.access import Visitor
from iodock.centre.monitor.questions.spans import DAY, SECOND
from iodock.centre.portal.shown.page import NotThere, Question, Shown
from iodock.centre.portal.tables import Column, Table
from iodock.centre.watch import cures
from iodock.centre.watch.acting import WHY
from iodock.centre.watch.action_rows import BY_ITSELF, Action, Status
from iodock.centre.watch.episodes import Episode
from iodock.centre.watch.names import KINDS, STATES
from iodock.centre.watch.notices.outbox import LOST, SENT
from iodock.centre.watch.responder import Responder
from iodock.centre.watch.verdict import Suspect
from iodock.shared.errors import RequestError
from iodock.shared.language import N_, Language
from iodock.shared.response import ActionKind
from iodock.shared.units import share_text

WORDS: tuple[str, ...] = ()
"""Parameters of this page."""
_DAYS = 30
_STATUSES: Mapping[Status, str] = {
    "asked": N_("waits for an operator"), "wanted": N_("about to start"), "doing": N_("in progress"),
    "done": N_("done"), "undo": N_("about to be undone"), "undoing": N_("being undone"),
    "undone": N_("undone"), "failed": N_("not done"), "left": N_("left as it is"), "lapsed": N_("lapsed"),
    "declined": N_("declined"),
}  # fmt: skip
_ACTIONS: Mapping[ActionKind, str] = {
    "hold": N_("Hold job {job}"), "suspend": N_("Suspend job {job}"),
    "requeue": N_("End job {job}, and hold it in the queue"),
}  # fmt: skip
_SHORT: Mapping[ActionKind, str] = {
    "hold": N_("hold"), "suspend": N_("suspend"), "requeue": N_("requeue and hold"),
}  # fmt: skip


def shown(question: Question) -> Shown:
    """Returns the content of the page. Raises NotThere if the visitor is not an operator or the collector
    keeps no episodes; StoreError."""
    responder, now = question.site.responder, question.asked.now
    if responder is None or not question.visitor.may_see_all:
        raise NotThere
    text, begin = question.text, now - _DAYS * DAY
    acted = responder.actions()
    tables = [_acted(acted, text), _unwell(responder.episodes(begin), text), _sent(responder.counts(), text)]
    more = {
        "asked_now": asked_now(responder, text),
        "done_now": [one for one in acted if one.status == "done"], "short": _SHORT,
        "mode": responder.rules.mode,
    }  # fmt: skip
    return Shown("actions.html", text.gettext("Actions and episodes"), begin, now, tables, more=more)


def answer(responder: Responder | None, is_open: bool, visitor: Visitor, number: int, given: str) -> None:
    """Processes an operator's decision GIVEN about the action NUMBER. IS_OPEN says that visitors are not
    authenticated, and decisions are then refused. Raises NotThere, RequestError, StoreError."""
    if responder is None or not visitor.may_see_all:
        raise NotThere
    give = {"confirm": responder.confirm, "decline": responder.decline, "undo": responder.undo}.get(given)
    if give is None:
        raise NotThere
    if is_open:
        raise RequestError(
            "visitors are not identified here, so actions can't be confirmed",
            "create tokens for --tokens FILE with iodock monitor token; or give --proxy ADDRESS",
        )
    give(number, visitor.user or visitor.name, time.time_ns())


def asked_now(responder: Responder, text: Language) -> list[dict[str, object]]:
    """Lists the actions that wait for an operator's decision, with the values that the page's template needs.
    Raises StoreError."""
    return [_question(responder, action, episode, text) for action, episode in responder.asked()]


def _question(responder: Responder, action: Action, episode: Episode, text: Language) -> dict[str, object]:
    suspect = next((one for one in episode.suspects if one.job == action.job), None)
    ends = action.made_ns + round(responder.rules.confirm_within_s * SECOND)
    found = cures.for_operators(
        episode.state, episode.kind, (suspect,) if suspect else (), responder.rules, responder.desk, text
    )
    return {
        "number": action.number, "ends": ends, "episode": episode, "suspect": suspect,
        "what": text.gettext(_ACTIONS[action.kind], job=action.job),
        "state": text.gettext(STATES[episode.state]), "kind": text.gettext(KINDS[episode.kind]),
        "share": share_text(suspect.share) if suspect else "", "cures": found,
        "confidence": share_text(suspect.confidence) if suspect else "",
        "seen": _seen(suspect, text), "name": _job_name(responder, suspect),
    }  # fmt: skip


def _job_name(responder: Responder, suspect: Suspect | None) -> str:
    return (suspect.name or "") if suspect and responder.writer.privacy.job_names else ""


def _seen(suspect: Suspect | None, text: Language) -> list[str]:
    return cures.seen(suspect, text) if suspect else []


def _acted(acted: list[Action], text: Language) -> Table:
    columns = (
        Column("at", text.gettext("time"), "time"),
        Column("number", text.gettext("number"), "integer"),
        Column("job", text.gettext("job"), "name"),
        Column("user", text.gettext("user"), "user"),
        Column("what", text.gettext("what")),
        Column("status", text.gettext("status")),
        Column("by", text.gettext("decided by")),
        Column("why", text.gettext("why")),
    )
    rows = [
        {"number": one.number, "at": one.did_ns or one.made_ns, "job": one.job, "user": one.owner,
         "what": text.gettext(_SHORT[one.kind]), "status": text.gettext(_STATUSES[one.status]),
         "by": text.gettext("iodock, according to the settings") if one.by == BY_ITSELF else one.by,
         "why": text.gettext(WHY.get(one.why, "")), "link": "", "full": one.job}
        for one in acted
    ]  # fmt: skip
    return Table(
        "actions",
        text.gettext("Actions on jobs"),
        columns,
        list(rows),
        text.gettext("Nothing"),
        has_bounds=False,
    )


def _unwell(episodes: list[Episode], text: Language) -> Table:
    columns = (
        Column("begin", text.gettext("begin"), "time"),
        Column("end", text.gettext("end"), "time"),
        Column("file_system", text.gettext("file system"), "name"),
        Column("server", text.gettext("server"), "name"),
        Column("kind", text.gettext("kind")),
        Column("worst", text.gettext("worst state")),
        Column("job", text.gettext("first suspect"), "name"),
        Column("user", text.gettext("user"), "user"),
        Column("share", text.gettext("share"), "share"),
    )
    rows = []
    for one in episodes:
        first = one.suspects[0] if one.suspects else None
        rows.append({
            "begin": one.begin_ns, "end": one.end_ns, "file_system": one.file_system, "server": one.server,
            "kind": text.gettext(KINDS[one.kind]), "worst": text.gettext(STATES[one.worst]),
            "job": first and first.job, "user": first and first.owner, "share": first and first.share,
        })  # fmt: skip
    title = text.gettext("Server problems of the last 30 days")
    return Table("episodes", title, columns, list(rows), text.gettext("Never"), has_bounds=False)


def _sent(counts: Mapping[str, int], text: Language) -> Table:
    columns = (
        Column("result", text.gettext("result")),
        Column("channel", text.gettext("sent by")),
        Column("count", text.gettext("count"), "integer"),
        Column("why", text.gettext("why")),
    )
    results = {SENT: text.gettext("sent"), LOST: text.gettext("lost")}
    rows = []
    for name, times in counts.items():
        result, channel, why = (*name.split(": ", 2), "")[:3]
        rows.append({"result": results[result], "channel": channel, "count": times, "why": text.gettext(why)})
    title = text.gettext("Notices sent and lost since the start")
    return Table("notices", title, columns, list(rows), text.gettext("None"), has_bounds=False)
