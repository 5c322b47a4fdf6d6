"""What agents could not read, or had to drop."""

from __future__ import annotations

from iodock.monitor.notices import as_rows
from iodock.monitor.questions import losses
from iodock.portal.shown.page import Question, Shown
from iodock.portal.tables import Column, Table


def shown(question: Question) -> Shown:
    """Losses of all machines, for operators only: details may name users' processes. Raises RequestError,
    StoreError."""
    text = question.text
    within = question.within("1d")
    columns = (
        Column("ts", text.gettext("last"), "time"),
        Column("host", text.gettext("machine"), "name"),
        Column("name", text.gettext("what"), "name"),
        Column("source", text.gettext("source"), "name"),
        Column("target", text.gettext("target"), "name"),
        Column("count", text.gettext("count"), "integer"),
        Column("detail", text.gettext("detail")),
    )
    rows = (
        as_rows(losses.losses(question.store, within.begin, within.end))
        if question.visitor.may_see_all
        else []
    )
    nothing = (
        text.gettext("Agents read all they wanted to in this time")
        if question.visitor.may_see_all
        else text.gettext("Only operators see what single machines could not read")
    )
    table = Table(
        "losses", text.gettext("What agents could not read"), columns, list(rows), nothing, has_bounds=False
    )
    return Shown(
        "events.html", text.gettext("Events"), within.begin, within.end, [table],
        more={"within": within, "default_range": "1d"},
    )  # fmt: skip
