"""Builds the page of one machine with its disks, load, pressure, jobs and events, for operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from iodock.centre.monitor.event_kinds import TITLES
from iodock.centre.monitor.questions import file_systems, jobs, machine
from iodock.centre.monitor.questions.counted import PLACES, SERVERS
from iodock.centre.monitor.questions.events import WantedEvents, events
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.spans import HOUR, SECOND, Span
from iodock.centre.portal.charts import Chart, Curve, Mark, values
from iodock.centre.portal.forms import check_names, shortened
from iodock.centre.portal.shown.events import end_of, happened, served
from iodock.centre.portal.shown.file_systems import MOST_MARKS, machines
from iodock.centre.portal.shown.jobs import MOST, table
from iodock.centre.portal.shown.page import SPAN, NotThere, Question, Shown
from iodock.centre.portal.shown.pictures import pictures
from iodock.centre.portal.tables import Column, Table

Rows = list[dict[str, object]]
_MOST_DISKS = 6
"""Number of disks that have their own curve. The table has all disks."""


WORDS = (*SPAN, "host", "at", "sort", "order")
"""Parameters of this page."""


def shown(question: Question) -> Shown:
    """Returns the content of the page of the requested machine, or a list of machines if none is requested.
    Raises NotThere for users who are not operators; RequestError, StoreError."""
    if not question.visitor.may_see_all:
        raise NotThere
    text, within, host = question.text, question.within("1h"), question.asked.text("host")
    if not host:
        check_names(question.asked.values, (*SPAN, "host"))
        seen = as_rows(file_systems.servers(question.store, within))
        more: dict[str, object] = {"within": within, "default_range": "1h", "host": ""}
        tables = [machines(question, seen)]
        return Shown("machine.html", text.gettext("Machines"), within.begin, within.end, tables, more=more)
    disks = as_rows(machine.disks(question.store, host, within))
    load = as_rows(machine.load(question.store, host, within))
    waited = as_rows(machine.pressure(question.store, host, within))
    what = _events(question, host, within)
    read = machine.last_read(question.store, host, within)
    known = _known(within, [*disks, *load, *waited], read)
    charts = _charts(question, within, known, disks, load, waited)
    charts = [replace(chart, marks=_marks(question, what)) for chart in charts]
    drawn = pictures(question, host, within, _marks(question, what))
    used, is_much = _jobs(question, host, within)
    tables = [
        _disks(question, known, disks), used, happened(question, what),
        _over_time(question, within, disks), _states(question, within, load, waited),
        *(drawn.tables if drawn else ()),
    ]  # fmt: skip
    more = {
        "within": within, "default_range": "1h", "host": host, "charts": charts, "read": read,
        "is_much": is_much, "pictures": drawn,
    }  # fmt: skip
    title = text.gettext("Machine {machine}", machine=shortened(host, 60))
    charts = [*(drawn.charts if drawn else ()), *charts]
    return Shown("machine.html", title, within.begin, within.end, tables, charts, more)


def _events(question: Question, host: str, within: Span) -> Rows:
    wanted = WantedEvents(host=host)
    end = end_of(question, within)
    return as_rows(events(question.store, within.begin, end, served(question), wanted, MOST_MARKS))


def _marks(question: Question, what: Rows) -> tuple[Mark, ...]:
    return tuple(
        Mark(int(str(row["ts"])), str(row["severity"]),
             question.text.gettext(TITLES.get(str(row["kind"]), str(row["kind"]))))
        for row in what if row["severity"] != "note"
    )  # fmt: skip


Known = tuple[int, int]
"""First and last reading of a machine, ns since the epoch."""


def _known(within: Span, rows: Rows, read: int | None) -> Known:
    """Returns the period in which the curves of a machine are known. It ends at the last reading READ and not
    at the last row, because an idle disk has no rows and its curve should be 0."""
    steps = [int(str(row["bucket"])) for row in rows]
    first, last = min(steps, default=0), max(steps, default=-1)
    begin, end = (within.begin + step * within.step for step in (first, last + 1))
    return begin, max(end, read or 0)


def _charts(
    question: Question, within: Span, known: Known, disks: Rows, load: Rows, waited: Rows
) -> list[Chart]:
    text, second = question.text, float(SECOND)
    share = within.step / second * 1e6
    names = _busiest(disks)

    def of_disks(title: str, kind: str, column: str, divide: float | None = None) -> Chart:
        made = [
            Curve(shortened(name, 30), _curve(within, known, disks, name, column, divide), f"c{place}")
            for place, name in enumerate(names)
        ]
        return Chart(title, kind, within, made)

    return [
        of_disks(text.gettext("Read from disks"), "bytes_rate", "read_bytes"),
        of_disks(text.gettext("Written to disks"), "bytes_rate", "write_bytes"),
        of_disks(text.gettext("Requests to disks"), "rate", "operations"),
        of_disks(text.gettext("Share of time in which disks were busy"), "share", "busy_us", share),
        _load(question, within, load),
        _pressure(question, within, known, waited, share),
    ]


def _curve(
    within: Span, known: Known, rows: Rows, target: str, column: str, divide: float | None
) -> list[float | None]:
    own = [row for row in rows if row["target"] == target]
    return values(own, column, within, known=known, divide=divide)


def _busiest(disks: Rows) -> list[str]:
    """Returns the names of the busiest disks. Disks are never added up, because a volume of a volume manager
    is a disk, too, and its bytes are also counted at its physical disks."""
    busy = _sums(disks)
    names = sorted(busy, key=lambda name: (-busy[name]["busy_us"], -_moved(busy[name]), name))
    return [name for name in names if busy[name]["operations"] or _moved(busy[name])][:_MOST_DISKS]


def _moved(sums: dict[str, float]) -> float:
    return sums["read_bytes"] + sums["write_bytes"]


_SUMMED = ("read_bytes", "write_bytes", "operations", "busy_us")


def _sums(disks: Rows) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in disks:
        sums = found.setdefault(str(row["target"]), dict.fromkeys(_SUMMED, 0.0))
        for name in _SUMMED:
            sums[name] += _float(row[name])
    return found


def _load(question: Question, within: Span, rows: Rows) -> Chart:
    found: list[float | None] = [None] * within.steps
    for row in rows:
        place = int(str(row["bucket"]))
        if 0 <= place < len(found):
            found[place] = _float(row["load"])
    text = question.text
    curves = [Curve(text.gettext("tasks"), found, "c0")] if rows else []
    return Chart(text.gettext("Load: tasks that run or wait"), "number", within, curves)


_RESOURCES: tuple[tuple[str, str], ...] = (
    ("io", "some"), ("io", "full"), ("cpu", "some"), ("memory", "some"), ("memory", "full"),
)  # fmt: skip


def _pressure(question: Question, within: Span, known: Known, rows: Rows, share: float) -> Chart:
    text = question.text
    labels: dict[tuple[str, str], Callable[[], str]] = {
        ("io", "some"): lambda: text.gettext("I/O, some tasks"),
        ("io", "full"): lambda: text.gettext("I/O, all tasks"),
        ("cpu", "some"): lambda: text.gettext("processor, some tasks"),
        ("memory", "some"): lambda: text.gettext("memory, some tasks"),
        ("memory", "full"): lambda: text.gettext("memory, all tasks"),
    }
    there = {str(row["target"]) for row in rows}
    curves = [
        Curve(labels[resource, who](), _curve(within, known, rows, resource, f"{who}_us", share), f"c{place}")
        for place, (resource, who) in enumerate(_RESOURCES)
        if resource in there
    ]
    return Chart(text.gettext("Share of time in which tasks waited (pressure)"), "share", within, curves)


def _jobs(question: Question, host: str, within: Span) -> tuple[Table, bool]:
    """Returns a table of the jobs that used a machine, and whether there are more jobs than the table has
    rows."""
    store, ids = question.store, question.site.ids
    end = question.asked.end or question.asked.now
    numbers = tuple(sorted(machine.jobs_on(store, ids, host, within, end)))
    counted = jobs.places(store, within) if numbers else []
    place = question.asked.place or next((one for one in PLACES if one in counted), SERVERS)
    asked = question.asked
    wanted = jobs.Wanted(place, only=numbers, sort=asked.sort, descending=asked.is_descending, most=MOST)
    found, _ = table(question, within, wanted)
    title = question.text.gettext("Jobs that ran on this machine or used it")
    note = question.text.gettext("The I/O of each job in this period on all machines.")
    if within.end - within.begin > HOUR:
        note += " " + question.text.gettext("For a file server: jobs of the last hour of this period.")
    return replace(found, title=title, note=note), len(numbers) > MOST


def _disks(question: Question, known: Known, disks: Rows) -> Table:
    text = question.text
    columns = (
        Column("target", text.gettext("disk"), "name"),
        Column("read_rate", text.gettext("read/s"), "bytes_rate"),
        Column("write_rate", text.gettext("written/s"), "bytes_rate"),
        Column("rate", text.gettext("requests/s"), "rate"),
        Column("busy", text.gettext("busy"), "share"),
        Column("read_bytes", text.gettext("read"), "bytes"),
        Column("write_bytes", text.gettext("written"), "bytes"),
        Column("operations", text.gettext("requests"), "number"),
    )
    seconds = max(known[1] - known[0], SECOND) / SECOND
    rows: list[dict[str, object]] = [
        {
            "target": name, **sums, "read_rate": sums["read_bytes"] / seconds,
            "write_rate": sums["write_bytes"] / seconds, "rate": sums["operations"] / seconds,
            "busy": sums["busy_us"] / 1e6 / seconds,
        }
        for name, sums in sorted(_sums(disks).items(), key=lambda one: (-one[1]["busy_us"], one[0]))
    ]  # fmt: skip
    note = text.gettext(
        "Means over this period. Bytes of a volume are also counted at its disks. Do not add them up."
    )
    empty = text.gettext("No disk activity was read in this period")
    return Table("disks", text.gettext("Disks"), columns, list(rows), empty, note, has_bounds=False)


def _over_time(question: Question, within: Span, disks: Rows) -> Table:
    """Returns a table with the values of the disks' curves, which is only available for download."""
    text = question.text
    columns = (
        Column("begin_ts", text.gettext("step begins"), "time"),
        Column("target", text.gettext("disk"), "name"),
        Column("read_bytes", text.gettext("read"), "bytes"),
        Column("write_bytes", text.gettext("written"), "bytes"),
        Column("operations", text.gettext("requests"), "number"),
        Column("busy_us", text.gettext("busy"), "plain"),
    )
    rows = [
        {**row, "begin_ts": within.begin + int(str(row["bucket"])) * within.step}
        for row in disks if int(str(row["bucket"])) < within.steps
    ]  # fmt: skip
    return Table("disks_over_time", text.gettext("Disks over time"), columns, list(rows), "")


def _states(question: Question, within: Span, load: Rows, waited: Rows) -> Table:
    """Returns a table with load and pressure, which is only available for download."""
    text = question.text
    columns = (
        Column("begin_ts", text.gettext("step begins"), "time"),
        Column("what", text.gettext("what"), "name"),
        Column("load", text.gettext("load"), "number"),
        Column("greatest", text.gettext("maximum load"), "number"),
        Column("some_us", text.gettext("some tasks waited"), "plain"),
        Column("full_us", text.gettext("all tasks waited"), "plain"),
    )
    every = [*({**row, "what": "load"} for row in load), *({**row, "what": row["target"]} for row in waited)]
    rows = [
        {**row, "begin_ts": within.begin + int(str(row["bucket"])) * within.step}
        for row in every if 0 <= int(str(row["bucket"])) < within.steps
    ]  # fmt: skip
    return Table("load_over_time", text.gettext("Load and pressure over time"), columns, list(rows), "",
                 has_bounds=False)  # fmt: skip


def _float(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
