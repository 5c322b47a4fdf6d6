"""Draws numbers over time. Each unit has a panel of its own, and the panels are below each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.program.views.charts.clock import run_start, time_axis
from iodock.program.views.charts.source import CannotDraw, extent, need_rows
from iodock.shared.answer import Answer
from iodock.shared.charts.frame import WIDTH, Picture, colour, theme_of, tips, values
from iodock.shared.charts.options import ChartOptions
from iodock.shared.charts.theme import Theme
from iodock.shared.labels import SAMPLES
from iodock.shared.text import labels
from iodock.shared.units import (
    BYTES,
    BYTES_PER_SECOND,
    COUNT,
    COUNT_PER_SECOND,
    NANOSECONDS,
    PERCENT,
    Unit,
    measured,
)

_KEYS = ["source", "target", "metric", "kind"]
_MOST_SERIES = 6
_MOST_STEPS = 500
_PANEL_HEIGHT = 150
_SECOND = 1e9
_AXES = {
    BYTES_PER_SECOND: "throughput",
    PERCENT: "share of the time",
    COUNT_PER_SECOND: "rate",
    BYTES: "bytes",
    COUNT: "number",
}
"""Maps a unit to the title of its axis, in the order of the panels."""


@dataclass(frozen=True, slots=True)
class Series:
    """Describes one line: its name, its unit, and its points (time in ns since the axis's 0, and value)."""

    name: str
    unit: Unit
    points: tuple[tuple[float, float], ...]

    @property
    def highest(self) -> float:
        return max(value for _, value in self.points)


def draw_machine(answer: Answer, options: ChartOptions) -> Picture:
    """The machine during the run: throughput, shares of the time, and load; a panel for each unit."""
    need_rows(answer)
    if (times := extent(answer.table.column("ts"))) is None:
        raise CannotDraw("these samples have no time stamps")
    origin = run_start(answer, times[0])
    folded = _folded(answer.table, int(times[0]))
    every = list(_series(folded, times[0] - origin))
    panels = [chosen for unit in _AXES if (chosen := _largest(every, unit))]
    if not panels:
        raise CannotDraw("no data was transferred on this machine in that time")
    found = folded.select(_KEYS).group_by(_KEYS).aggregate([]).num_rows
    left_out = found - sum(map(len, panels))
    notes = [f"{left_out:,} more series are in the table"] if left_out else []
    return Picture(_below_each_other(answer, panels, origin, options), "The machine during the run", notes)


def _folded(table: pa.Table, first: int) -> pa.Table:
    """Returns the samples with a column `at`, in ns since FIRST. If any series has too many samples, all
    are replaced by their means in each step."""
    known = table.filter(pc.and_(table.column("ts").is_valid(), table.column("value").is_valid()))
    at = pc.subtract(known.column("ts"), first)
    samples = known.select([*_KEYS, "value"]).append_column("at", at)
    counts = samples.group_by(_KEYS).aggregate([("value", "count")]).column("value_count")
    if samples.num_rows == 0 or pc.max(counts).as_py() <= _MOST_STEPS:
        return samples
    step = pc.max(at).as_py() // _MOST_STEPS + 1
    steps = samples.append_column("step", pc.divide(at, step)).group_by([*_KEYS, "step"])
    means = steps.aggregate([("value", "mean"), ("at", "mean")])
    return means.select([*_KEYS, "value_mean", "at_mean"]).rename_columns([*_KEYS, "value", "at"])


def _series(samples: pa.Table, start: float) -> Iterator[Series]:
    """Yields the most important series. If the answer has none of these, it yields all."""
    found: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
    columns = (samples.column(name).to_pylist() for name in (*_KEYS, "at", "value"))
    for source, target, metric, kind, at, value in zip(*columns, strict=True):
        found.setdefault((source, target or "", metric, kind), []).append((start + at, value))
    telling = {key for key in found if f"{key[0]}.{key[2]}" in SAMPLES} or set(found)
    for (source, target, metric, kind), points in found.items():
        unit, factor = measured(metric, kind)
        what = SAMPLES.get(f"{source}.{metric}", f"{source} {metric}")
        name = f"{what} ({target})" if target else what
        scaled = tuple((at, value * factor) for at, value in sorted(points))
        if (source, target, metric, kind) in telling:
            yield Series(name, unit, scaled)


def _largest(every: list[Series], unit: Unit) -> list[Series]:
    """Returns the series of this unit with the largest values. A series that is always zero is left out."""
    own = [one for one in every if one.unit == unit and one.highest > 0]
    return sorted(own, key=lambda one: -one.highest)[:_MOST_SERIES]


def _below_each_other(
    answer: Answer, panels: list[list[Series]], origin: float, options: ChartOptions
) -> Any:
    import altair

    end = max(at for panel in panels for one in panel for at, _ in one.points) or _SECOND
    height = max(60, options.height // len(panels)) if options.height else _PANEL_HEIGHT
    drawn = [
        _panel(answer, panel, origin, end, theme_of(options)).properties(
            width=options.width or WIDTH, height=height
        )
        for panel in panels
    ]
    return altair.vconcat(*drawn).resolve_scale(color="independent")


def _panel(answer: Answer, panel: list[Series], origin: float, end: float, theme: Theme) -> Any:
    import altair

    unit = panel[0].unit
    highest = max(one.highest for one in panel)
    ticks = unit.ticks(highest, 3)
    names = labels([one.name for one in panel])
    rows = [
        {"at": at, "value": value, "series": name, "text": unit.text(value), "when": NANOSECONDS.text(at)}
        for one, name in zip(panel, names, strict=True)
        for at, value in one.points
    ]
    y = altair.Y(
        field="value",
        type="quantitative",
        title=_AXES[unit],
        scale=altair.Scale(domain=[0, ticks[-1]], nice=False),
        axis=altair.Axis(values=ticks, labelExpr=unit.label_expression(highest)),
    )
    lines = altair.Chart(values(rows)).mark_line(point=altair.OverlayMarkDef(size=18), strokeWidth=1.8)
    return lines.encode(
        x=time_axis(answer, origin, end),
        y=y,
        color=colour("series", names, theme.categories[: len(names)], of_several=True),
        tooltip=tips(("series", "what"), ("text", "value"), ("when", "at")),
    )
