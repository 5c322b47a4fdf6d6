"""Lists all charts with their analyses, descriptions and drawing functions.

A chart without `only` draws all its series. If a chart has `only`, users can select the series in it one by
one (`ChartOptions.only`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iodock.shared.answer import Answer
    from iodock.shared.charts.frame import Picture
    from iodock.shared.charts.options import ChartOptions


@dataclass(frozen=True, slots=True)
class ChartKind:
    """Describes a chart of one or more analyses. The first chart of an analysis is its default."""

    name: str
    analyses: tuple[str, ...]
    title: str
    drawn_by: str
    """The function that draws the chart, as MODULE.NAME in this folder. It is imported when a chart is
    drawn."""
    only: tuple[str, ...] = ()
    needs_all: bool = False
    """Whether the chart needs all rows, because missing ones would look like zeros, or like time without
    activity."""

    @property
    def draw(self) -> Callable[[Answer, ChartOptions], Picture]:
        """Returns the function that draws the chart of an answer."""
        module, _, name = self.drawn_by.partition(".")
        found: Callable[[Answer, ChartOptions], Picture] = getattr(
            import_module(f"{__package__}.{module}"), name
        )
        return found

    @property
    def doc(self) -> str:
        """Returns a description of the chart: the first line of the drawing function's docstring."""
        return (self.draw.__doc__ or "").strip().split("\n")[0]


_GROUPED = ("summary", "files", "overview")
_SUMMARY = ("summary",)
_DIRECTIONS = ("read", "write")
_OUTCOMES = ("success", "failed")

CHARTS: tuple[ChartKind, ...] = (
    ChartKind("time", _GROUPED, "Time in calls", "bars.draw_time"),
    ChartKind("count", _GROUPED, "Calls", "bars.draw_count", ("success", "failed", "no result")),
    ChartKind("io", _GROUPED, "Bytes read and written", "bars.draw_io", _DIRECTIONS),
    ChartKind("time-range", _SUMMARY, "Shortest, mean and longest call", "bars.draw_time_range"),
    ChartKind("size-range", _SUMMARY, "Smallest, mean and largest transfer", "bars.draw_size_range"),
    ChartKind("errors", ("errors", "summary"), "Failed calls by error", "failures.draw_errors"),
    ChartKind("size", ("sizes",), "Reads and writes by size", "sizes.draw_size", _DIRECTIONS, True),
    ChartKind(
        "size-time", ("sizes",), "Time in reads and writes by size", "sizes.draw_size_time", _DIRECTIONS, True
    ),
    ChartKind(
        "throughput", ("timeline",), "Throughput over time", "intervals.draw_throughput", _DIRECTIONS, True
    ),
    ChartKind(
        "io", ("timeline",), "Bytes read and written over time", "intervals.draw_io", _DIRECTIONS, True
    ),
    ChartKind(
        "count", ("timeline",), "Reads and writes over time", "intervals.draw_count", _DIRECTIONS, True
    ),
    ChartKind("calls", ("timeline",), "Calls over time", "intervals.draw_calls", _OUTCOMES, True),
    ChartKind(
        "time", ("timeline",), "Time in reads and writes over time", "intervals.draw_time", _DIRECTIONS, True
    ),
    ChartKind("offset", ("accesses",), "Offset over time", "accesses_over_time.draw_offset", _DIRECTIONS),
    ChartKind(
        "size",
        ("accesses",),
        "Size of reads and writes over time",
        "accesses_over_time.draw_size",
        _DIRECTIONS,
    ),
    ChartKind(
        "time",
        ("accesses",),
        "Duration of reads and writes over time",
        "accesses_over_time.draw_time",
        _DIRECTIONS,
    ),
    ChartKind("offset", ("offsets",), "Offset over time", "accesses_over_time.draw_cells", _DIRECTIONS, True),
    ChartKind("processes", ("processes",), "Processes over time", "processes.draw_processes", needs_all=True),
    ChartKind("ranks", ("ranks",), "I/O time by rank", "bars.draw_ranks"),
    ChartKind("machine", ("machine",), "The machine during the run", "series.draw_machine", needs_all=True),
    ChartKind("volume", ("volume",), "Expected and actual volume", "volumes.draw_volume", _DIRECTIONS),
    ChartKind("jobs", ("ratio-history",), "CPU utilisation of jobs", "utilisation.draw_jobs"),
    ChartKind(
        "core-hours", ("ratio-history",), "Core-hours by CPU utilisation", "utilisation.draw_core_hours"
    ),
)

# This chart is for analyses that have none of their own, such as those of plug-ins.
FALLBACK = ChartKind("bars", (), "Largest values", "bars.draw_first_measure")


def kinds_for(analysis: str) -> tuple[ChartKind, ...]:
    """Returns the charts of an analysis, its default first. If it has no chart, returns only the fallback."""
    return tuple(kind for kind in CHARTS if analysis in kind.analyses) or (FALLBACK,)
