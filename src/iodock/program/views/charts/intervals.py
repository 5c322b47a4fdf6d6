"""Draws the values of each interval of the run: throughput, bytes, calls and time. Reads go upwards, writes
downwards.

If a long run has more intervals than the picture has columns, neighbouring intervals are summed, and a note
says this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.program.views.charts.clock import run_start, time_axis
from iodock.program.views.charts.source import CannotDraw, all_null, extent, need_durations, need_rows
from iodock.shared.answer import Answer
from iodock.shared.charts.frame import Picture, colour, theme_of, tips, values
from iodock.shared.charts.options import ChartOptions
from iodock.shared.units import BYTES, BYTES_PER_SECOND, COUNT, NANOSECONDS, Unit

# Number of steps that can be distinguished in a picture of ordinary width.
_MOST_STEPS = 400
_SECOND = 1e9


@dataclass(frozen=True, slots=True)
class Side:
    """Describes one series of an interval chart. If `below` is set, it is drawn under the zero line."""

    name: str
    column: str
    colour: str
    below: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """Holds the run in equal intervals. `origin` is the time of the axis's 0 in the clock's ns, `starts`
    are ns since the origin, and `sums` has the values by column."""

    origin: float
    starts: list[float]
    width: float
    sums: dict[str, list[float]]
    merged: int


_BYTES = (
    Side("read", "spread_read_bytes", "read"),
    Side("written", "spread_written_bytes", "write", below=True),
)
_COUNTS = (Side("reads", "read_count", "read"), Side("writes", "write_count", "write", below=True))
_CALLS = (Side("success", "success", "success"), Side("failed", "failed", "failed", below=True))
_TIMES = (
    Side("read", "spread_read_time_ns", "read"),
    Side("write", "spread_write_time_ns", "write", below=True),
)


def draw_throughput(answer: Answer, options: ChartOptions) -> Picture:
    """Bytes per second, read and written, in each interval."""
    return _draw(answer, options, _BYTES, BYTES_PER_SECOND, "Throughput over time", "throughput")


def draw_io(answer: Answer, options: ChartOptions) -> Picture:
    """Bytes read and written in each interval."""
    return _draw(answer, options, _BYTES, BYTES, "Bytes read and written over time", "bytes")


def draw_count(answer: Answer, options: ChartOptions) -> Picture:
    """Number of reads and writes in each interval."""
    return _draw(answer, options, _COUNTS, COUNT, "Reads and writes over time", "calls")


def draw_calls(answer: Answer, options: ChartOptions) -> Picture:
    """Calls that succeeded and that failed in each interval."""
    return _draw(answer, options, _CALLS, COUNT, "Calls over time", "calls")


def draw_time(answer: Answer, options: ChartOptions) -> Picture:
    """Time spent in reads and in writes in each interval, summed over all threads."""
    need_rows(answer)
    known = [side.column for side in _TIMES if not all_null(answer, side.column)]
    need_durations(answer, known[0] if known else _TIMES[0].column)
    title = "Time in reads and writes over time"
    return _draw(answer, options, _TIMES, NANOSECONDS, title, "time in calls (all threads)")


def _draw(
    answer: Answer, options: ChartOptions, sides: Sequence[Side], unit: Unit, title: str, axis_title: str
) -> Picture:
    need_rows(answer)
    kept = [side for side in sides if _wanted(options, side) and not all_null(answer, side.column)]
    if not kept:
        raise CannotDraw(f"unknown for all calls in this selection: {', '.join(side.name for side in sides)}")
    steps = _steps(answer, [side.column for side in kept])
    per = steps.width / _SECOND if unit is BYTES_PER_SECOND else 1.0
    kept = [side for side in kept if any(steps.sums[side.column])]
    if not kept:
        raise CannotDraw(
            f"{' and '.join(side.name for side in sides)}: all values are zero in this selection"
        )
    if len(kept) == 1:
        kept = [Side(kept[0].name, kept[0].column, kept[0].colour)]
    every = NANOSECONDS.text(steps.width)
    notes = [f"in steps of {every}" + (f" ({steps.merged} intervals in each)" if steps.merged > 1 else "")]
    if len(kept) == 2:
        peaks = [unit.text(max(steps.sums[side.column]) / per) for side in kept]
        places = f"{kept[0].name} above the line (up to {peaks[0]}), {kept[1].name} below (up to {peaks[1]})"
        notes = [f"{places}, {notes[0]}"]
    elif len(sides) == 2:
        notes = [f"{kept[0].name} only, {notes[0]}"]
    chart = _areas(steps, kept, per, unit, axis_title, answer, options)
    return Picture(chart, title, notes)


def _wanted(options: ChartOptions, side: Side) -> bool:
    stem = {"reads": "read", "writes": "write", "written": "write", "success": "succeeded"}
    return options.keeps(side.name) or options.keeps(stem.get(side.name, side.name))


def _areas(
    steps: Steps,
    sides: Sequence[Side],
    per: float,
    unit: Unit,
    axis_title: str,
    answer: Answer,
    options: ChartOptions,
) -> Any:
    import altair

    theme = theme_of(options)
    peaks = [max(steps.sums[side.column]) / per for side in sides]
    end = steps.starts[-1] + steps.width
    outline = [row for side in sides for row in _outline(steps, side, per)]
    boxes = [
        row for index in range(len(steps.starts)) if (row := _box(steps, sides, index, per, unit)) is not None
    ]
    names = [side.name for side in sides]
    x = time_axis(answer, steps.origin, end)
    y = altair.Y(field="value", type="quantitative", title=axis_title, **_mirrored(sides, peaks, unit))
    area = (
        altair.Chart(values(outline))
        .mark_area(interpolate="step-after", line=False, opacity=1)
        .encode(
            x=x,
            y=y.stack(None),
            color=colour("series", names, [getattr(theme, side.colour) for side in sides], of_several=True),
        )
    )
    # These marks are invisible, one per step. They show the tooltip, because an area can't show the values at
    # one position.
    shown = tips(*[(f"text{index}", name) for index, name in enumerate(names)], ("when", "from"))
    hover = (
        altair.Chart(values(boxes))
        .mark_bar(opacity=0)
        .encode(
            x=altair.X(field="at", type="quantitative"), x2="end:Q", y="low:Q", y2="high:Q", tooltip=shown
        )
    )
    zero = altair.Chart(values([{"at": 0}])).mark_rule(color=theme.quiet, strokeWidth=1).encode(y="at:Q")
    return altair.layer(area, hover, zero)


def _mirrored(sides: Sequence[Side], peaks: Sequence[float], unit: Unit) -> dict[str, Any]:
    """Returns scale and axis that cover the range of the series. Both directions have the same unit and
    distance between ticks."""
    import altair

    highest = max(peaks)
    ticks = unit.ticks(highest, 5 if len(sides) == 1 else 4)
    stride = ticks[1] - ticks[0]
    below = next((peak for side, peak in zip(sides, peaks, strict=True) if side.below), 0.0)
    above = max((peak for side, peak in zip(sides, peaks, strict=True) if not side.below), default=0.0)
    lows = [-stride * step for step in range(math.floor(1.05 * below / stride), 0, -1)]
    highs = [tick for tick in ticks if tick < above + stride * (1 - 1e-9)]
    both = lows + highs
    return {
        "scale": altair.Scale(domain=[-1.05 * below, max(both[-1], above)], nice=False),
        "axis": altair.Axis(values=both, labelExpr=unit.label_expression(highest)),
    }


def _outline(steps: Steps, side: Side, per: float) -> list[dict[str, Any]]:
    """Returns the corners of a stepped area. The area falls to zero where the next step does not follow
    directly."""
    sign = -1.0 if side.below else 1.0
    rows: list[dict[str, Any]] = []
    previous: float | None = None
    for index, (start, value) in enumerate(zip(steps.starts, steps.sums[side.column], strict=True)):
        if previous is not None and start - previous > steps.width * 1.01:
            rows.append({"at": previous + steps.width, "value": 0.0, "series": side.name})
        if index and not rows[-1]["value"] and not value and index + 1 < len(steps.starts):
            # This interval and the previous one have no values, so the outline needs no corner here.
            previous = start
            continue
        rows.append({"at": start, "value": sign * value / per, "series": side.name})
        previous = start
    rows.append({"at": steps.starts[-1] + steps.width, "value": 0.0, "series": side.name})
    return rows


def _box(steps: Steps, sides: Sequence[Side], index: int, per: float, unit: Unit) -> dict[str, Any] | None:
    amounts = [steps.sums[side.column][index] / per for side in sides]
    if not any(amounts):
        return None
    row: dict[str, Any] = {f"text{number}": unit.text(amount) for number, amount in enumerate(amounts)}
    signed = [-amount if side.below else amount for side, amount in zip(sides, amounts, strict=True)]
    start = steps.starts[index]
    row |= {"at": start, "end": start + steps.width, "low": min(0.0, *signed), "high": max(0.0, *signed)}
    return row | {"when": f"{NANOSECONDS.text(start)} into the run"}


def _steps(answer: Answer, columns: Sequence[str]) -> Steps:
    """Sums the answer's intervals into at most about _MOST_STEPS equal steps."""
    known = answer.table.filter(pc.is_valid(answer.table.column("ts")))
    around = extent(known.column("ts"))
    if around is None:
        raise CannotDraw("this source has no time stamps: strace writes them with -ttt")
    every = interval(answer, known.column("ts"))
    origin = run_start(answer, around[0])
    merged = max(1, math.ceil((around[1] - around[0] + every) / every / _MOST_STEPS))
    width = every * merged
    # Steps are counted from the first interval and not from the run's start. Each then consists of whole
    # intervals.
    shift = pc.subtract(known.column("ts"), pa.scalar(int(around[0]), pa.int64()))
    index = pc.cast(pc.floor(pc.divide(pc.cast(shift, pa.float64()), width)), pa.int64())
    sums = pa.table(
        {"step": index}
        | {name: pc.fill_null(pc.cast(known.column(name), pa.float64(), safe=False), 0.0) for name in columns}
    )
    grouped = sums.group_by("step").aggregate([(name, "sum") for name in columns]).sort_by("step")
    starts = [around[0] - origin + step * width for step in grouped.column("step").to_pylist()]
    return Steps(
        origin, starts, width, {name: grouped.column(f"{name}_sum").to_pylist() for name in columns}, merged
    )


def interval(answer: Answer, stamps: pa.ChunkedArray) -> float:
    """Returns the length of an interval in ns: the requested one, otherwise the smallest distance between
    two rows."""
    asked = answer.options.get("every")
    if isinstance(asked, int) and asked > 0:
        return float(asked)
    ordered = pc.sort_indices(stamps)
    if len(ordered) > 1:
        values_in_order = stamps.take(ordered).combine_chunks()
        steps = pc.subtract(values_in_order.slice(1), values_in_order.slice(0, len(values_in_order) - 1))
        smallest = pc.min(pc.filter(steps, pc.greater(steps, 0))).as_py()
        if smallest:
            return min(float(smallest), _SECOND)
    return _SECOND
