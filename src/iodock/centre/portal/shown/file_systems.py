"""Builds the page that shows the load of file systems now and over time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from iodock.centre.monitor.event_kinds import TITLES
from iodock.centre.monitor.questions import file_systems
from iodock.centre.monitor.questions.events import WantedEvents, events, has_events
from iodock.centre.monitor.questions.rows import as_rows, means
from iodock.centre.monitor.questions.spans import SECOND, Span
from iodock.centre.portal.charts import Chart, Curve, Mark, values
from iodock.centre.portal.forms import shortened
from iodock.centre.portal.shown.page import SPAN, Question, Shown, known_span
from iodock.centre.portal.tables import Column, Table, total
from iodock.shared.language import N_

Rows = list[dict[str, object]]
_SOURCES = {
    "servers": N_("file servers, by job"),
    "mdt_md_stats": N_("metadata targets"),
    "llite_stats": N_("clients with an agent"),
}
_NOW_S = 60
_SILENT_S = 60
"""A server that was silent for this time is marked. Agents read more often."""
MOST_MARKS = 200
_MOST_PROBES = 6
_MOST_LIMITS = 3
_PROBE_STANDS_S = 300


@dataclass(frozen=True)
class State:
    """The data of one span about all file systems, as rows of the queries."""

    within: Span
    by_servers: Rows
    by_clients: Rows
    waiting: Rows
    servers: Rows
    probes: Rows
    happened: Rows
    """Rows of events with a severity above note."""

    @property
    def names(self) -> list[str]:
        found = {str(row["file_system"]) for row in (*self.by_servers, *self.by_clients)}
        found |= {str(row["file_system"]) for row in (*self.servers, *self.probes) if row["file_system"]}
        return sorted(found)

    def source(self, name: str) -> tuple[str, Rows]:
        """Returns the source whose counts are shown for this file system, and its rows. This is `servers`
        (counts by job on file servers) if it has rows, and else the source of clients that counted most
        bytes."""
        of_servers = [row for row in self.by_servers if row["file_system"] == name]
        if of_servers:
            return "servers", of_servers
        others = [row for row in self.by_clients if row["file_system"] == name]
        best = max({str(row["source"]) for row in others}, key=lambda one: _moved(others, one), default="")
        return best, [row for row in others if row["source"] == best]

    def read_until(self, name: str) -> int:
        """Returns the time of the last reading of this file system's servers in ns since the epoch. If no
        server counts this file system by job, returns the end of the span."""
        read = [int(str(row["read_ts"])) for row in self.servers if row["file_system"] == name]
        return max(read) if read and self.source(name)[0] == "servers" else self.within.end

    def services(self, name: str) -> dict[tuple[str, str], Rows]:
        """Returns the rows of `waiting` for the file system's metadata servers, by host and service."""
        hosts = {row["host"] for row in self.servers if row["file_system"] == name}
        found: dict[tuple[str, str], Rows] = {}
        for row in self.waiting:
            if row["host"] in hosts:
                found.setdefault((str(row["host"]), str(row["target"])), []).append(row)
        return found


def _moved(rows: Rows, source: str) -> float:
    return sum(
        _float(row["read_bytes"]) + _float(row["write_bytes"]) for row in rows if row["source"] == source
    )


def _float(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def state(question: Question, within: Span, clients: bool = True) -> State:
    """Reads the data of a span. The clients' counts are read if CLIENTS is true, or if there are no counts of
    servers. Raises StoreError."""
    store = question.store
    by_servers = as_rows(file_systems.by_servers(store, within))
    by_clients = as_rows(file_systems.by_clients(store, within)) if clients or not by_servers else []
    waiting = as_rows(file_systems.waiting(store, within))
    servers = as_rows(file_systems.servers(store, within))
    probes = as_rows(file_systems.probes(store, within))
    return State(within, by_servers, by_clients, waiting, servers, probes, _happened(question, within))


def _happened(question: Question, within: Span) -> Rows:
    store = question.store
    if not has_events(store):
        return []
    names = {
        str(row["host"]): str(row["file_system"]) for row in as_rows(file_systems.served(store, within.end))
    }
    wanted = WantedEvents(severity="warning", with_file_system=True)
    return as_rows(events(store, within.begin, within.end, names, wanted, MOST_MARKS))


def marks(question: Question, found: State, name: str) -> tuple[Mark, ...]:
    """Makes marks for charts from the events of a file system, the latest first. The marks do not contain the
    events' machines and texts, because all users may see them."""
    text = question.text
    return tuple(
        Mark(
            int(str(row["ts"])),
            str(row["severity"]),
            text.gettext(TITLES.get(str(row["kind"]), str(row["kind"]))),
        )
        for row in found.happened
        if row["file_system"] == name
    )


WORDS = SPAN
"""Parameters of this page."""


def shown(question: Question) -> Shown:
    """Returns the content of the page. Raises RequestError, StoreError."""
    text, within = question.text, question.within("1h")
    found = state(question, within)
    sections = [
        {"name": name, "source": text.gettext(_SOURCES.get(found.source(name)[0], found.source(name)[0])),
         "charts": charts(question, found, name), "marks": marks(question, found, name)}
        for name in found.names
    ]  # fmt: skip
    tables = [_now(question, found), _over_time(question, found)]
    if question.visitor.may_see_all:
        tables.append(machines(question, found.servers))
    return Shown(
        "file_systems.html", text.gettext("File systems"), within.begin, within.end, tables,
        [chart for section in sections for chart in section["charts"] if isinstance(chart, Chart)],
        {"sections_shown": sections, "within": within, "default_range": "1h"},
    )  # fmt: skip


def charts(question: Question, found: State, name: str) -> list[Chart]:
    """Makes the charts of one file system: bytes, metadata operations, waiting requests and probes."""
    text, within = question.text, found.within
    _, rows = found.source(name)
    begin, end = known_span(rows, within, question.asked.now)
    # If a server has sent no data for _SILENT_S, its curve ends at the last reading. Otherwise the curve
    # would show 0, as if the server were idle.
    known = (begin, end if end - found.read_until(name) < _SILENT_S * SECOND else found.read_until(name))
    moved = [
        Curve(text.gettext("read"), values(rows, "read_bytes", within, known=known), "read"),
        Curve(text.gettext("written"), values(rows, "write_bytes", within, known=known), "write"),
    ]
    operations = values(rows, "metadata", within, known=known)
    made = [
        Chart(text.gettext("Bytes read and written"), "bytes_rate", within, moved),
        Chart(
            text.gettext("Metadata operations"), "rate", within,
            [Curve(text.gettext("operations"), operations, "metadata")],
        ),
    ]  # fmt: skip
    happened = marks(question, found, name)
    return [
        replace(one, marks=happened)
        for one in (*made, *_waiting(question, found, name), *_probes(question, found, name))
    ]


def _probes(question: Question, found: State, name: str) -> list[Chart]:
    """Makes a chart with the durations of rounds of `iodock probe` and the limits that the agents
    reported."""
    text, within = question.text, found.within
    rows = [row for row in found.probes if row["file_system"] == name]
    watched = sorted({(str(row["host"]), str(row["target"])) for row in rows})
    curves = []
    for number, (host, target) in enumerate(watched[:_MOST_PROBES]):
        own = [row for row in rows if (row["host"], row["target"]) == (host, target)]
        label = f"{target} ({host})" if question.visitor.may_see_all else target
        curves.append(Curve(shortened(label, 60), _until_next(own, within), f"c{number % 6}"))
    limits = {_float(row["limit_us"]) / 1e6 for row in rows if row["limit_us"] is not None}
    for limit in sorted(limits)[:_MOST_LIMITS]:
        curves.append(Curve(text.gettext("limit"), [limit] * within.steps, "limit"))
    title = text.gettext("Response time of probes, longest round")
    return [Chart(title, "short_seconds", within, curves)] if watched else []


def _until_next(rows: Rows, within: Span) -> list[float | None]:
    """Returns the values of a curve that shows the duration of each round until the next round. If the next
    round follows after more than _PROBE_STANDS_S, the curve has a gap after the step of the round."""
    found: list[float | None] = [None] * within.steps
    patience = max(1, _PROBE_STANDS_S * SECOND // within.step)
    places = sorted((int(str(row["bucket"])), _float(row["response_us"]) / 1e6) for row in rows)
    for (place, value), (following, _) in zip(places, [*places[1:], (within.steps, 0.0)], strict=True):
        until = following if following - place <= patience else place + 1
        for step in range(max(0, place), min(until, within.steps)):
            found[step] = value
    return found


def _waiting(question: Question, found: State, name: str) -> list[Chart]:
    text, services = question.text, found.services(name)
    if not services:
        return []
    queues = [_quotients(rows, found.within, "queued", "samples", 1) for rows in services.values()]
    waits = [_quotients(rows, found.within, "waited_us", "handled", 1e6) for rows in services.values()]
    labels = [f"{host} {service}" for host, service in services]
    styles = [f"c{place % 6}" for place in range(len(labels))]
    return [
        Chart(
            text.gettext("Waiting requests of metadata servers, mean"), "number", found.within,
            [Curve(*one) for one in zip(labels, queues, styles, strict=True)],
        ),
        Chart(
            text.gettext("Mean waiting time of requests"), "short_seconds", found.within,
            [Curve(*one) for one in zip(labels, waits, styles, strict=True)],
        ),
    ]  # fmt: skip


def _quotients(rows: Rows, within: Span, above: str, below: str, by: float) -> list[float | None]:
    found: list[float | None] = [None] * within.steps
    for row in rows:
        place, count = int(str(row["bucket"])), _float(row[below])
        if 0 <= place < len(found) and count > 0:
            found[place] = _float(row[above]) / count / by
    return found


def _now(question: Question, found: State) -> Table:
    """Returns a table with the rates in the last whole minute, or in the last step if a step is longer."""
    text, within = question.text, found.within
    steps = max(1, _NOW_S * SECOND // within.step)
    # The last step is left out, because it may not be complete yet or its readings may not have arrived.
    first = within.steps - 1 - steps
    rows = [_now_of(found, name, first, steps) for name in found.names]
    columns = (
        Column("file_system", text.gettext("file system"), "name"),
        Column("read_rate", text.gettext("read"), "bytes_rate"),
        Column("write_rate", text.gettext("written"), "bytes_rate"),
        Column("metadata_rate", text.gettext("metadata operations"), "rate"),
        Column("queue", text.gettext("waiting requests"), "number"),
        Column("wait_s", text.gettext("wait"), "short_seconds"),
    )
    title = (
        text.gettext("In the last minute")
        if steps * within.step <= 60 * SECOND
        else text.gettext("In the last step")
    )
    return Table("now", title, columns, list(rows), empty(question))


def _now_of(found: State, name: str, first: int, steps: int) -> dict[str, object]:
    def is_in(row: dict[str, object]) -> bool:
        return first <= int(str(row["bucket"])) < first + steps

    _, every = found.source(name)
    rows = [row for row in every if is_in(row)]
    seconds = steps * found.within.step / SECOND
    is_read = found.read_until(name) > found.within.begin + first * found.within.step

    def rate(column: str) -> float | None:
        """Returns the mean rate of a column. A counter that did not grow has no row, so the rate is 0 without
        rows. If the column is not counted, or the server sent no data in this time, the rate is None."""
        if not is_read or total(row[column] for row in every) is None:
            return None
        return (total(row[column] for row in rows) or 0.0) / seconds

    rates = {
        "read_rate": rate("read_bytes"), "write_rate": rate("write_bytes"), "metadata_rate": rate("metadata")
    }  # fmt: skip
    services = [means([row for row in rows if is_in(row)]) for rows in found.services(name).values()]
    queues = [queue for queue, _ in services if queue is not None]
    waits = [wait for _, wait in services if wait is not None]
    exact = all(row["exact"] is not False for row in rows)
    worst = {"queue": max(queues, default=None), "wait_s": max(waits, default=None)}
    return {"file_system": name, **rates, **worst, "exact": exact}


def _over_time(question: Question, found: State) -> Table:
    """Returns a table with the values of the curves, which is only available for download."""
    text, within = question.text, found.within
    columns = (
        Column("begin_ts", text.gettext("from"), "time"),
        Column("file_system", text.gettext("file system"), "name"),
        Column("counted_by", text.gettext("counted by"), "text"),
        Column("read_bytes", text.gettext("read"), "bytes"),
        Column("write_bytes", text.gettext("written"), "bytes"),
        Column("metadata", text.gettext("metadata operations"), "integer"),
    )
    rows = [
        {**row, "begin_ts": within.begin + int(str(row["bucket"])) * within.step, "counted_by": source}
        for name in found.names
        for source, of_name in [found.source(name)]
        for row in of_name
        if int(str(row["bucket"])) < within.steps
    ]
    return Table("over_time", text.gettext("Over time"), columns, list(rows), empty(question))


def machines(question: Question, found: Rows) -> Table:
    """Returns a table of machines from rows of `questions.file_systems.servers`. Machines that have been
    silent for more than 60 s come first, the longest silence at the top."""
    text, now = question.text, question.asked.now
    columns = (
        Column("host", text.gettext("machine"), "machine"),
        Column("file_system", text.gettext("serves"), "name"),
        Column("read_ts", text.gettext("last reading"), "time"),
        Column("age_s", text.gettext("ago"), "seconds"),
    )
    rows = [{**row, "age_s": max(0.0, (now - int(str(row["read_ts"]))) / SECOND)} for row in found]
    late = sorted(
        rows, key=lambda row: (-_float(row["age_s"]) if _float(row["age_s"]) > 60 else 0, str(row["host"]))
    )
    return Table(
        "servers",
        text.gettext("Machines with an agent"),
        columns,
        list(late),
        empty(question),
        has_bounds=False,
    )


def empty(question: Question) -> str:
    """Returns the text that an empty table shows. It gives the reason why the table is empty."""
    if question.is_empty:
        return question.text.gettext(
            "No agent has pushed anything yet. On each machine run: iodock-agent run --push URL"
        )
    return question.text.gettext("No data in this period")
