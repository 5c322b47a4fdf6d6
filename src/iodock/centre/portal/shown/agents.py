"""Builds the page about agents, for operators. It shows which agents send data, for how long the others have
been silent, and which data was lost."""

from __future__ import annotations

from collections import defaultdict

from iodock.centre.monitor.questions import agents
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.spans import SECOND
from iodock.centre.portal.forms import MOST_ROWS
from iodock.centre.portal.shown.file_systems import empty
from iodock.centre.portal.shown.page import SPAN, NotThere, Question, Shown
from iodock.centre.portal.tables import Column, Table
from iodock.shared.language import N_

Rows = list[dict[str, object]]

WORDS = (*SPAN, "top")
"""Parameters of this page."""
MOST = 200
_USUAL = "7d"
_QUIET_S = 120.0
"""An agent that was silent for this time counts as quiet: agents read every 10 s, and a Prometheus scrapes
within a minute."""
_STATES = {"quiet": N_("quiet"), "refused": N_("refused"), "heard": N_("heard")}
"""Titles of the states of agents, in the order of the table. Refused: none of the agent's data was accepted
in this time."""
_SEVERITIES = {"quiet": "error", "refused": "warning", "heard": "note"}
_LOST = {"dropped-batches": "dropped", "refused-samples": "refused"}
"""Maps losses that have their own column to the column's name."""


def shown(question: Question) -> Shown:
    """Returns the content of the page. Raises NotThere for users who are not operators; RequestError,
    StoreError."""
    if not question.visitor.may_see_all:
        raise NotThere
    text, within = question.text, question.within(_USUAL)
    most = question.asked.number("top", MOST, MOST_ROWS)
    end, limits = question.asked.end or question.asked.now, question.site.limits
    patience_s = max(_QUIET_S, limits.silent_samples * limits.sample_s)
    lost = as_rows(agents.losses(question.store, within.begin, end))
    rows = _judged(agents.heard(question.store, within.begin, end), lost, end, patience_s)
    if question.store.catalogue is None:
        # The data comes from a Prometheus server, which does not know the data that an agent could not send
        # or that a collector refused. These columns are unknown and not 0.
        rows = [{**row, **dict.fromkeys(_LOST.values())} for row in rows]
    counts = {state: sum(row["state"] == state for row in rows) for state in _STATES}
    tables = [_agents(question, rows[:most]), _losses(question, lost[:most])]
    more = {
        "within": within, "default_range": _USUAL, "patience_s": patience_s, "counts": counts,
        "total": len(rows), "kinds": len(lost),
    }  # fmt: skip
    return Shown("agents.html", text.gettext("Silent agents"), within.begin, end, tables, more=more)


def _judged(heard: Rows, lost: Rows, end: int, patience_s: float) -> Rows:
    """Returns one row for each machine. Silent machines come first, and among them those that have been
    silent for the shortest time."""
    read = {str(row["host"]): row for row in heard}
    of_host: defaultdict[str, Rows] = defaultdict(list)
    for row in lost:
        of_host[str(row["host"])].append(row)
    hosts = read.keys() | (of_host.keys() - {""})
    rows = [_row(host, read.get(host), of_host[host], end, patience_s) for host in hosts]
    places = list(_STATES)
    return sorted(
        rows,
        key=lambda row: (places.index(str(row["state"])), _float(row["quiet_s"]), str(row["host"])),
    )


def _row(
    host: str, read: dict[str, object] | None, lost: Rows, end: int, patience_s: float
) -> dict[str, object]:
    # An agent that can't read any source still sends this as a loss, so it was running at the time of the
    # loss. Losses named `refused-samples` come from the collector and do not show this.
    told = [int(str(row["ts"])) for row in lost if row["name"] != "refused-samples"]
    at = int(str(read["read_ts"])) if read else max(told, default=None)
    age_s = None if at is None else (end - at) / SECOND
    state = "refused" if age_s is None else "quiet" if age_s > patience_s else "heard"
    counts: dict[str, int] = dict.fromkeys((*_LOST.values(), "unread"), 0)
    for row in lost:
        counts[_LOST.get(str(row["name"]), "unread")] += int(str(row["count"]))
    return {
        "host": host, "state": state, "severity": _SEVERITIES[state],
        "file_system": read and read["file_system"], "read_ts": at,
        "quiet_s": age_s if state == "quiet" else None, **counts,
        "loss_ts": max((int(str(row["ts"])) for row in lost), default=None),
    }  # fmt: skip


def _float(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _agents(question: Question, rows: Rows) -> Table:
    text = question.text
    columns = (
        Column("host", text.gettext("machine"), "machine"),
        Column("state_title", text.gettext("state"), "severity"),
        Column("quiet_s", text.gettext("quiet for"), "seconds"),
        Column("read_ts", text.gettext("last report"), "time"),
        Column("file_system", text.gettext("serves"), "name"),
        Column("dropped", text.gettext("readings lost"), "integer"),
        Column("refused", text.gettext("refused"), "integer"),
        Column("unread", text.gettext("not readable"), "integer"),
        Column("loss_ts", text.gettext("last loss"), "time"),
        # This column is only in files for download. Its values are not translated, so that programs can
        # compare them.
        Column("state", text.gettext("state"), "plain"),
    )
    titled = [{**row, "state_title": text.gettext(_STATES[str(row["state"])])} for row in rows]
    title = text.gettext("Machines with an agent")
    return Table("agents", title, columns, list(titled), empty(question), has_bounds=False)


def _losses(question: Question, rows: Rows) -> Table:
    text = question.text
    columns = (
        Column("host", text.gettext("machine"), "machine"),
        # The kind of this column is text and not name, because a narrow screen breaks names at any character.
        Column("name", text.gettext("what")),
        Column("source", text.gettext("source")),
        Column("count", text.gettext("count"), "integer"),
        Column("ts", text.gettext("last"), "time"),
    )
    title, nothing = text.gettext("Losses"), text.gettext("Nothing was lost in this time")
    return Table("losses", title, columns, list(rows), nothing, has_bounds=False)
