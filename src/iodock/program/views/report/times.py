"""Makes the time series of the page: the run's throughput and the machine's state on one time axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iodock.program.relations.spread import round_interval
from iodock.program.store import Store
from iodock.program.views.report.ask import PageTable, Row, ask, page_table, rows_of
from iodock.shared.units import BYTES, BYTES_PER_SECOND, COUNT, COUNT_PER_SECOND, PERCENT, measured

TIMELINE_COLUMNS = (
    "interval", "read_bytes", "written_bytes", "read_count", "write_count", "read_time_ns",
    "write_time_ns",
)  # fmt: skip
TIMELINE_ASKED = (
    "interval", "spread_read_bytes", "spread_written_bytes", "read_count", "write_count",
    "spread_read_time_ns", "spread_write_time_ns",
)  # fmt: skip
"""Columns of the analyses for the columns of TIMELINE_COLUMNS, in the same order."""
_MOST_OF_SOURCE = {"pressure": 2, "llite": 4, "mountstats": 4, "diskstats": 3, "loadavg": 1}
"""Number of series that are drawn for each source. The sources that best explain waiting come first."""
_TELLING = {
    "pressure": ("some_us", "full_us"),
    "llite": ("read_bytes", "write_bytes"),
    "mountstats": ("server_read_bytes", "server_written_bytes"),
    "diskstats": ("busy_time_ms", "read_bytes", "written_bytes"),
    "loadavg": ("load_1min",),
}


@dataclass(frozen=True, slots=True)
class Axis:
    """Divides the time of a run into equal intervals."""

    start: int | None
    """Start of the run, ns; None if nothing has a time."""
    span_ns: int
    every_ns: int
    intervals: int

    @classmethod
    def of(cls, store: Store, wanted: int) -> Axis:
        """Divides the run into at most about `wanted` intervals. The length of an interval is 1, 2 or 5
        times a power of ten."""
        first, last = store.manifest.first_ts, store.manifest.last_ts
        if first is None or last is None:
            return cls(None, 0, 1, 0)
        every = round_interval(last - first, wanted)
        return cls(
            first, max(1, store.manifest.wall_ns or last - first), every, last // every - first // every + 1
        )


def series(rows: list[Row], axis: Axis) -> PageTable:
    """Makes a table in the page's form from rows of TIMELINE_COLUMNS."""
    return page_table(TIMELINE_COLUMNS, rows) | {"every_ns": axis.every_ns, "intervals": axis.intervals}


def timeline_series(store: Store, axis: Axis) -> PageTable | None:
    """Makes the time series of reads and writes of the whole run. Returns None if no call has a time."""
    if axis.start is None:
        return None
    answer = ask(store, "timeline", every=f"{axis.every_ns}ns")
    first = axis.start // axis.every_ns
    rows = [
        [max(0, ts // axis.every_ns - first), *values]
        for ts, *values in rows_of(answer, ("ts", *TIMELINE_ASKED[1:]))
        if any(values)
    ]
    return series(rows, axis)


def sample_series(store: Store, axis: Axis) -> list[dict[str, Any]]:
    """Makes the most important time series of the machine's state. Each has a unit, and points with ns
    since the run's start and a value."""
    if axis.start is None:
        return []
    answer = ask(store, "machine", every=f"{max(axis.every_ns, 1_000_000_000)}ns")
    found: dict[tuple[str, str, str, str], list[Row]] = {}
    for ts, *key, value in rows_of(answer, ("ts", "source", "target", "metric", "kind", "value")):
        found.setdefault((key[0], key[1], key[2], key[3]), []).append([ts - axis.start, value])
    drawn = [_drawn(*key, points, axis) for key, points in found.items() if _telling(*key[:3])]
    drawn.sort(key=lambda one: -_highest(one))
    chosen = (one for source, most in _MOST_OF_SOURCE.items() for one in _moving(drawn, source)[:most])
    return list(chosen)


def _telling(source: str, target: str, metric: str) -> bool:
    return metric in _TELLING.get(source, ()) and (source != "pressure" or target == "io")


def _moving(drawn: list[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """Returns the series of a source that are not always zero. They are ordered by target, then by
    importance."""
    own = [one for one in drawn if one["source"] == source and _highest(one) > 0]
    order = list(dict.fromkeys(one["target"] for one in own))
    return sorted(own, key=lambda one: (order.index(one["target"]), _TELLING[source].index(one["metric"])))


def _highest(one: dict[str, Any]) -> float:
    return max((point[1] for point in one["points"]), default=0.0)


def _drawn(source: str, target: str, metric: str, kind: str, points: list[Row], axis: Axis) -> dict[str, Any]:
    unit, factor = _unit(metric, kind)
    inside = [[max(0, at), value * factor] for at, value in points if at <= axis.span_ns + 2_000_000_000]
    return {"source": source, "target": target, "metric": metric, "unit": unit, "points": inside}


def _unit(metric: str, kind: str) -> tuple[str, float]:
    """Returns the number format of a value on the page, and the factor that converts the value. Both
    follow from the metric's name and kind."""
    unit, factor = measured(metric, kind)
    # The page formats shares as numbers from 0 to 1, not as percentages.
    return ("share", factor / 100) if unit is PERCENT else (_UNITS[unit], factor)


_UNITS = {BYTES_PER_SECOND: "byterate", BYTES: "bytes", COUNT_PER_SECOND: "rate", COUNT: "count"}
