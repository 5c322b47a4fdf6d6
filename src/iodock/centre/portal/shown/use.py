"""Builds the page with the bytes that users and groups moved in a month."""

from __future__ import annotations

from iodock.centre.monitor.questions import use
from iodock.centre.monitor.questions.counted import PLACES, SERVERS
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.portal.people import group, login
from iodock.centre.portal.shown.file_systems import empty
from iodock.centre.portal.shown.jobs import PLACE_NOTES, PLACE_TITLES
from iodock.centre.portal.shown.page import Question, Shown
from iodock.centre.portal.tables import Column, Table, total

Rows = list[dict[str, object]]
_SUMS = ("jobs", "read_bytes", "write_bytes", "reads", "writes", "metadata")


WORDS = ("month", "at")
"""Parameters of this page."""


def shown(question: Question) -> Shown:
    """Returns the content of the page. A user sees only the user's own row. Raises RequestError,
    StoreError."""
    text, place = question.text, question.asked.place or SERVERS
    month, begin, end = question.asked.month()
    rows = as_rows(use.by_user(question.store, begin, end, question.site.ids, question.seen, place))
    users = [{**row, "user": _name(row["user"]), "group": _group(row["user"])} for row in rows]
    tables = [_table(question, "users", text.gettext("By user"), ("user", "group"), users)]
    if question.visitor.may_see_all:
        tables.append(_table(question, "groups", text.gettext("By group"), ("group",), _by_group(users)))
    return Shown(
        "use.html", text.gettext("Use of file systems in {month}", month=month), begin, end, tables,
        refreshes=False,
        more={"month": month, "place": place,
              "places": {one: text.gettext(PLACE_TITLES[one]) for one in PLACES},
              "place_note": text.gettext(PLACE_NOTES[place])},
    )  # fmt: skip


def _name(user: object) -> str | None:
    return None if user is None else login(str(user))


def _group(user: object) -> str | None:
    return None if user is None else group(str(user)) or None


def _by_group(users: Rows) -> Rows:
    found: dict[tuple[object, object], dict[str, object]] = {}
    for row in users:
        key = (row["group"], row["file_system"])
        into = found.setdefault(
            key, {"group": key[0], "file_system": key[1], "exact": True, **dict.fromkeys(_SUMS)}
        )
        for name in _SUMS:
            into[name] = total([into[name], row[name]])
        into["exact"] = bool(into["exact"]) and row["exact"] is not False
    return sorted(found.values(), key=lambda row: -_float(row["read_bytes"]) - _float(row["write_bytes"]))


def _float(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _table(question: Question, name: str, title: str, keys: tuple[str, ...], rows: Rows) -> Table:
    text = question.text
    titles = {"user": text.gettext("user"), "group": text.gettext("group")}
    columns = (
        *(Column(key, titles[key], "user") for key in keys),
        Column("file_system", text.gettext("file system"), "name"),
        Column("jobs", text.gettext("jobs"), "integer"),
        Column("read_bytes", text.gettext("read"), "bytes"),
        Column("write_bytes", text.gettext("written"), "bytes"),
        Column("reads", text.gettext("reads"), "number"),
        Column("writes", text.gettext("writes"), "number"),
        Column("metadata", text.gettext("metadata operations"), "number"),
    )
    return Table(name, title, columns, list(rows), empty(question))
