"""Builds the page of one job."""

from __future__ import annotations

from dataclasses import replace

from iodock.centre.monitor.questions import job as questions
from iodock.centre.monitor.questions.counted import PROCESSES, SERVERS, metadata_operations
from iodock.centre.monitor.questions.job import OneJob
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.spans import DAY, SECOND, Span, span
from iodock.centre.portal.charts import Chart, Curve, values
from iodock.centre.portal.forms import shortened
from iodock.centre.portal.people import login
from iodock.centre.portal.shown.file_systems import State, marks, state
from iodock.centre.portal.shown.file_systems import charts as file_system_charts
from iodock.centre.portal.shown.jobs import PLACE_NOTES, PLACE_TITLES
from iodock.centre.portal.shown.page import LAG_S, SPAN, NotThere, Question, Shown, known_span
from iodock.centre.portal.shown.runs import compared
from iodock.centre.portal.tables import Column, Table
from iodock.shared.language import Language

Rows = list[dict[str, object]]
_LOOKED_BACK = 30 * DAY
_OPERATIONS = 6
_MOST_PARTS = 200
_MARGIN = 60 * SECOND


WORDS = (*SPAN, "at")
"""Parameters of this page."""


def shown(question: Question, number: str) -> Shown:
    """Returns the content of the page. Raises NotThere if there is no such job, or if it belongs to another
    user; RequestError, StoreError."""
    # The agent escapes control characters in ids, so no stored id contains one.
    if not number or any(letter < " " or letter == "\x7f" for letter in number):
        raise NotThere
    job = lived(question, OneJob(question.site.ids, number, question.seen))
    within = whole_span(question, job)
    parts = as_rows(questions.parts(question.store, job, within))
    totals = [row for row in parts if row["part"] == "place"]
    places = [str(row["place"]) for row in totals]
    place = question.asked.place if question.asked.place in places else (places[0] if places else SERVERS)
    systems = sorted({name for row in totals for name in listed(row["file_systems"])})
    found = state(question, within, clients=False) if systems else None
    totals = [_with_zeros(row, found) for row in totals]
    happened = {name: marks(question, found, name) for name in systems} if found else {}
    every = tuple(mark for one in happened.values() for mark in one)
    own = [replace(chart, marks=every) for chart in _own(question, job, within, place)]
    below = _systems(question, found, systems)
    others = _others(question, job, within, systems)
    users = sorted({one for row in totals for one in listed(row["users"])})
    runs = compared(question, job, users, place)
    sections = [("own", own), *[(name, charts) for name, charts in below], ("others", others)]
    return Shown(
        "job.html", question.text.gettext("Job {job}", job=shortened(number, 40)), within.begin, within.end,
        [_totals(question, totals), *_parts(question, parts, place), *(runs.tables if runs else [])],
        [chart for _, charts in sections for chart in charts],
        {
            "within": within, "default_range": "", "number": number,
            "own_charts": own, "below": below, "others": others, "marks": happened,
            "users": sorted({login(one) for one in users}), "runs": runs,
            "commands": _commands(totals),
            "places": {one: question.text.gettext(PLACE_TITLES[one]) for one in places}, "place": place,
            "place_note": question.text.gettext(PLACE_NOTES[place]),
        },
    )  # fmt: skip


def _with_zeros(row: dict[str, object], found: State | None) -> dict[str, object]:
    """Replaces an unknown quantity by 0 if the servers of all file systems of the job count this quantity. In
    this case the job had no such I/O."""
    if found is None or row["place"] != SERVERS:
        return row
    counted = [
        {name for one in found.by_servers if one["file_system"] == system for name in _COUNTED
         if one[name] is not None}
        for system in listed(row["file_systems"])
    ]  # fmt: skip
    known = set(_COUNTED).intersection(*counted) if counted else set()
    return {**row, **{name: 0.0 for name in known if row[name] is None}}


_COUNTED = ("read_bytes", "write_bytes", "metadata")


def lived(question: Question, job: OneJob) -> OneJob:
    """Returns JOB with `lived` set to the period in which it has rows. Raises NotThere if it has none that
    the visitor may see."""
    end = question.asked.end or question.asked.now - LAG_S * SECOND
    looked_at = span(end - _LOOKED_BACK, end, question.store.catalogue)
    moments = questions.extent(question.store, job, looked_at)
    if moments is None:
        raise NotThere
    return replace(job, lived=moments)


def whole_span(question: Question, job: OneJob) -> Span:
    """Returns the requested span, or the span of the job's whole time if none is requested."""
    chosen = question.asked.length("")
    if chosen or job.lived is None:
        return question.within(chosen)
    end = question.asked.end or question.asked.now - LAG_S * SECOND
    begin = max(job.lived[0], end - _LOOKED_BACK)
    return span(begin - _MARGIN, min(job.lived[1] + _MARGIN, end), question.store.catalogue)


def _own(question: Question, job: OneJob, within: Span, place: str) -> list[Chart]:
    text = question.text
    rows = as_rows(questions.over_time(question.store, job, within, place))
    # A step without rows means that the job moved nothing, so the curves are 0 there. Only steps whose data
    # may not have arrived yet are unknown.
    known = (within.begin, known_span([], within, question.asked.now)[1])
    moved = [
        Curve(text.gettext("read"), values(rows, "read_bytes", within, known=known), "read"),
        Curve(text.gettext("written"), values(rows, "write_bytes", within, known=known), "write"),
    ]
    charts = [Chart(text.gettext("Bytes read and written"), "bytes_rate", within, moved)]
    if place != SERVERS:
        return charts
    most = sorted(metadata_operations(), key=lambda name: -sum(_float(row[name]) for row in rows))[
        :_OPERATIONS
    ]
    curves = [
        Curve(name, values(rows, name, within, known=known), f"c{number}")
        for number, name in enumerate(most)
        if any(_float(row[name]) for row in rows)
    ]
    return [*charts, Chart(text.gettext("Metadata operations"), "rate", within, curves)]


def _systems(question: Question, found: State | None, systems: list[str]) -> list[tuple[str, list[Chart]]]:
    if found is None:
        return []
    return [(name, file_system_charts(question, found, name)) for name in systems if name in found.names]


def _others(question: Question, job: OneJob, within: Span, systems: list[str]) -> list[Chart]:
    text = question.text
    if not systems:
        return []
    heavy = as_rows(questions.heaviest_others(question.store, job, within, systems))
    ids = {one: number for number, other in enumerate(heavy) for one in listed(other["ids"])}
    found = questions.others_over_time(question.store, list(ids), systems, within)
    rows: list[Rows] = [[] for _ in heavy]
    for row in as_rows(questions.by_other(found, ids)):
        rows[int(str(row["other"]))].append(row)
    titles = {
        "bytes": (text.gettext("Bytes read and written by other jobs"), "bytes_rate"),
        "metadata": (text.gettext("Metadata operations of other jobs"), "rate"),
    }
    return [
        Chart(title, kind, within, _other_curves(question, within, heavy, rows, value))
        for value, (title, kind) in titles.items()
    ]


def _other_curves(question: Question, within: Span, heavy: Rows, rows: list[Rows], value: str) -> list[Curve]:
    known = (within.begin, known_span([], within, question.asked.now)[1])
    chosen = sorted(
        (number for number, other in enumerate(heavy) if _float(other[value]) > 0),
        key=lambda number: -_float(heavy[number][value]),
    )
    curves = []
    for place, number in enumerate(chosen[: questions.HEAVIEST]):
        label = _other_label(question, heavy[number])
        curves.append(Curve(label, values(rows[number], value, within, known=known), f"c{place}"))
    return curves


def _other_label(question: Question, other: dict[str, object]) -> str:
    """Returns the label of another job, which has the job's number and owner only if the visitor may see
    them."""
    if other["mine"] is not True:
        return question.text.gettext("another user's job")
    user = f" ({login(str(other['user']))})" if other["user"] is not None else ""
    return shortened(str(other["job"]), 30) + user


def _commands(totals: Rows) -> str:
    return shortened(", ".join(sorted({name for row in totals for name in listed(row["commands"])})), 200)


def listed(names: object) -> list[str]:
    """Returns the sorted texts in a value of a list column, without NULL."""
    return sorted(str(name) for name in names if name is not None) if isinstance(names, list) else []


def _side(text: Language, side: str, place: str) -> str:
    if place != SERVERS:
        return text.gettext(PLACE_TITLES[place])
    return text.gettext("metadata servers") if side == "mdt" else text.gettext("object servers")


def _float(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _totals(question: Question, totals: Rows) -> Table:
    text = question.text
    columns = (
        Column("counted_by", text.gettext("counted by")),
        Column("read_bytes", text.gettext("read"), "bytes"),
        Column("write_bytes", text.gettext("written"), "bytes"),
        Column("reads", text.gettext("reads"), "number"),
        Column("writes", text.gettext("writes"), "number"),
        Column("call_read_bytes", text.gettext("requested to read"), "bytes"),
        Column("call_write_bytes", text.gettext("requested to write"), "bytes"),
        Column("metadata", text.gettext("metadata"), "number"),
        Column("time_s", text.gettext("time in operations"), "seconds"),
    )
    rows = [
        {**row, "counted_by": text.gettext(PLACE_TITLES[str(row["place"])]),
         "time_s": None if row["time_us"] is None else _float(row["time_us"]) / 1e6}
        for row in totals
    ]  # fmt: skip
    note = (
        text.gettext("The same bytes are counted in several places. Do not add them up.")
        if len(rows) > 1
        else ""
    )
    return Table(
        "totals",
        text.gettext("In this period"),
        columns,
        list(rows),
        text.gettext("No data in this period"),
        note,
    )


def _parts(question: Question, parts: Rows, place: str) -> list[Table]:
    text = question.text
    nothing = text.gettext("No data in this period")
    of_place = [row for row in parts if row["place"] == place and row["name"] is not None]
    no_node = text.gettext("The ids of these jobs do not name nodes.") if place == SERVERS else nothing
    return [
        _operations(text, [row for row in of_place if row["part"] == "side"], place),
        _part(text, "nodes", text.gettext("By node"), text.gettext("node"), of_place, no_node, place),
        _part(text, "targets", text.gettext("By target"), text.gettext("target"), of_place, nothing, place),
    ]


def _part(text: Language, name: str, title: str, column: str, rows: Rows, empty: str, place: str) -> Table:
    read, write = (
        ("call_read_bytes", "call_write_bytes") if place == PROCESSES else ("read_bytes", "write_bytes")
    )
    columns = (
        Column("name", column, "machine" if name == "nodes" else "name"),
        Column("read_bytes", text.gettext("read"), "bytes"),
        Column("write_bytes", text.gettext("written"), "bytes"),
        Column("metadata", text.gettext("metadata"), "number"),
    )
    found = [
        {**row, "read_bytes": row[read], "write_bytes": row[write]}
        for row in rows
        if row["part"] == name[:-1]
    ]
    found.sort(key=lambda row: (-_moved(row), -_float(row["metadata"]), str(row["name"])))
    return Table(name, title, columns, list(found[:_MOST_PARTS]), empty)


def _moved(row: dict[str, object]) -> float:
    return _float(row["read_bytes"]) + _float(row["write_bytes"])


def _operations(text: Language, sides: Rows, place: str) -> Table:
    columns = (
        Column("name", text.gettext("operation"), "name"),
        Column("side", text.gettext("counted by")),
        Column("count", text.gettext("count"), "integer"),
    )
    names = ("reads", "writes", "read_calls", "write_calls", *metadata_operations())
    rows = [
        {
            "name": name,
            "side": _side(text, str(row["name"]), place),
            "count": row[name],
            "exact": row["exact"],
        }
        for row in sides
        for name in names
        if _float(row[name])
    ]
    rows.sort(key=lambda row: -_float(row["count"]))
    return Table(
        "operations",
        text.gettext("By operation"),
        columns,
        list(rows),
        text.gettext("No data in this period"),
    )
