"""Queries the activity of one metadata server over time: requests received and handled, waiting requests, and
the load of its processors.

A report on the file system of the K computer shows the same quantities (IPSJ SIG Technical Report, Vol.
2017-HPC-162 No. 12, figures 2 to 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from statistics import median_low

from iodock.centre.monitor import summaries
from iodock.centre.monitor.questions.counted import PLACES, SERVERS, sums, text
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.servers import MACHINE, MACHINE_SUMS
from iodock.centre.monitor.questions.spans import Span, spread
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

_TOGETHER = 2
"""If two readings are more than this number of samples apart, there is a gap between them."""
_ASKED = ("opens", "closes", "creates")


@dataclass(frozen=True)
class Step:
    """Activity of a server in one step that has a reading. A value is None if it is not counted."""

    operations: float | None = None
    """Metadata operations of all jobs."""
    opens: float | None = None
    closes: float | None = None
    creates: float | None = None
    handled: float | None = None
    """Requests handled per second."""
    waiting: float | None = None
    """Mean number of waiting requests, if some requests were handled."""
    wait_s: float | None = None
    """Mean waiting time of the handled requests."""
    cpu: float | None = None
    """Share of the time of all its processors that was used."""


NAMES = tuple(field.name for field in fields(Step))


def over_time(store: MonitorTables, host: str, within: Span, until: int, sample_ns: int) -> list[Step | None]:
    """Returns one entry for each step of the span, which is None if the step has no sample. UNTIL is the time
    until which all data has arrived, in ns since the epoch; later steps are None. SAMPLE_NS is the time
    between two samples. Raises StoreError, QueryError."""
    machine = _by_step(_machine(store, host, within))
    asked = _by_step(_asked(store, host, within))
    rows = (*machine.values(), *asked.values())
    counts = {name for row in rows for name, value in row.items() if value is not None}
    read = known_steps(_readings(store, host, within), within, sample_ns)
    return [
        _step(machine.get(place, {}), asked.get(place, {}), counts)
        if place in read and within.begin + (place + 1) * within.step <= until
        else None
        for place in range(within.steps)
    ]


def known_steps(readings: list[int], within: Span, sample_ns: int) -> set[int]:
    """Returns the steps whose values are known. READINGS are the steps in which a reading ends, in ascending
    order. If readings are further apart than steps, the steps between two successive readings are known, too,
    unless the gap is so long that readings are missing."""
    found, pairs = set(readings), list(pairwise(readings))
    usual = median_low(after - before for before, after in pairs) if pairs else 1
    apart = max(sample_ns, within.step * usual if usual > 1 else 0)
    for before, after in pairs:
        if (after - before) * within.step <= _TOGETHER * apart:
            found |= set(range(before + 1, after))
    return found


def _step(machine: Mapping[str, float | None], asked: Mapping[str, float | None], counts: set[str]) -> Step:
    def counted(row: Mapping[str, float | None], name: str) -> float | None:
        """Returns a value of a row, or 0 if it is missing: a counter that did not grow has no row."""
        value = row.get(name)
        return 0.0 if value is None and name in counts else value

    busy, idle = counted(machine, "busy_us"), counted(machine, "idle_us")
    whole = (busy or 0.0) + (idle or 0.0)
    return Step(
        operations=counted(asked, "metadata"), opens=counted(asked, "opens"),
        closes=counted(asked, "closes"), creates=counted(asked, "creates"),
        handled=counted(machine, "handled"), waiting=_quotient(machine, "queued", "queue_samples"),
        wait_s=_quotient(machine, "waited_us", "handled", 1e-6),
        cpu=busy / whole if busy is not None and whole else None,
    )  # fmt: skip


def _quotient(row: Mapping[str, float | None], above: str, below: str, factor: float = 1.0) -> float | None:
    divisor = row.get(below)
    return (row.get(above) or 0.0) * factor / divisor if divisor else None


def _by_step(rows: list[dict[str, object]]) -> dict[int, dict[str, float | None]]:
    return {
        int(str(row["bucket"])): {
            name: float(value) if isinstance(value, (int, float)) else None for name, value in row.items()
        }
        for row in rows
    }


def _machine(store: MonitorTables, host: str, within: Span) -> list[dict[str, object]]:
    values = {name: f"CASE WHEN {where} THEN value END" for name, where in MACHINE_SUMS.items()}
    rows = f"targets WHERE host = {text(host)} AND source IN ({_SOURCES}) AND NOT is_level"
    return _of_targets(store, spread(rows, "host", values, within), within)


def _readings(store: MonitorTables, host: str, within: Span) -> list[int]:
    sql = f"""
        SELECT DISTINCT (end_ts - 1 - {within.begin}) // {within.step} AS bucket FROM targets
        WHERE host = {text(host)} AND source IN ({_SOURCES}) ORDER BY bucket
    """
    found = (int(str(row["bucket"])) for row in _of_targets(store, sql, within))
    return [place for place in found if 0 <= place < within.steps]


_SOURCES = ", ".join(map(text, MACHINE))


def _of_targets(store: MonitorTables, sql: str, within: Span) -> list[dict[str, object]]:
    need = Need(MACHINE, is_presence=True)
    found = store.table(sql, begin=within.begin, end=within.end, resolution=within.resolution, need=need)
    return as_rows(found)


def _asked(store: MonitorTables, host: str, within: Span) -> list[dict[str, object]]:
    summed = {"metadata": "metadata", **{name: name for name in _ASKED}}
    found = summaries.asked(
        store, summaries.SYSTEMS, within,
        lambda rows: spread(f"{rows} WHERE host = {text(host)}", "host", summed, within),
        within.resolution, Need(PLACES[SERVERS], sums(SERVERS)),
    )  # fmt: skip
    return as_rows(found)
