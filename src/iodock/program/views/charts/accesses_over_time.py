"""Draws accesses over time by offset, size or duration. If there are many accesses, it draws their density
on a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.program.views.charts.accesses import (
    COLUMNS,
    ROWS,
    SHADES,
    Accesses,
    Cell,
    Span,
    counted_cells,
    grid,
    select,
    since,
    span_of,
)
from iodock.program.views.charts.clock import time_axis
from iodock.program.views.charts.source import CannotDraw, extent, has, need_rows
from iodock.shared.answer import Answer
from iodock.shared.charts.frame import Picture, colour, theme_of, tips, values
from iodock.shared.charts.options import ChartOptions
from iodock.shared.charts.theme import Theme
from iodock.shared.units import BYTES, COUNT, NANOSECONDS, Unit, decades


@dataclass(frozen=True, slots=True)
class Vertical:
    """Describes the vertical axis: its range, ticks and unit. `reach` is the value that determines the
    unit of a linear axis."""

    title: str
    unit: Unit
    low: float
    high: float
    ticks: Sequence[float]
    reach: float = 1.0
    logarithmic: bool = False

    def edge(self, row: int) -> float:
        """Returns the value at the lower edge of a grid row."""
        share = row / ROWS
        if self.logarithmic:
            return float(self.low * math.exp(share * math.log(self.high / self.low)))
        return self.low + share * (self.high - self.low)


def draw_offset(answer: Answer, options: ChartOptions) -> Picture:
    """Where in the file each read and write began, over time."""
    accesses = select(
        answer, options, "offset_bytes", "a known offset (pipes, sockets and appends have none)"
    )
    reach = max(accesses.high if accesses.few is None else _furthest(accesses.few), 1.0)
    vertical = Vertical("offset in the file", BYTES, 0.0, reach * 1.02, BYTES.ticks(reach), reach)
    return _draw(answer, accesses, vertical, options, "Offset over time", spans=True)


def draw_cells(answer: Answer, options: ChartOptions) -> Picture:
    """Where in the file reads and writes began, over time, from transfers already counted on a grid."""
    need_rows(answer)
    table = answer.table
    for name in ("read", "write"):
        if not options.keeps(name):
            table = table.filter(pc.not_equal(table.column("direction"), name))
    times, places = extent(table.column("ts")), extent(table.column("end_offset_bytes"))
    if times is None or places is None:
        raise CannotDraw(
            f"no {' or '.join(options.only) or 'transfer'} with a known offset in this selection"
        )
    last = extent(table.column("end_ts")) or times
    span = span_of(answer, times[0], last[1])
    reach = max(places[1], 1.0)
    vertical = Vertical("offset in the file", BYTES, 0.0, reach * 1.02, BYTES.ticks(reach), reach)
    cells = counted_cells(table, span, vertical.high)
    count = COUNT.text(pc.sum(table.column("count")).as_py())
    note = f"{count} accesses, each over its whole range; darker: more accesses"
    chart = _density(answer, span, cells, vertical, theme_of(options))
    return Picture(chart, "Offset over time", [note], height=360)


def draw_size(answer: Answer, options: ChartOptions) -> Picture:
    """Size of each read and write, over time."""
    accesses = select(
        answer,
        options,
        "bytes",
        missing="none of the {moving} reads and writes has a known size and a time stamp",
    )
    return _draw(
        answer, accesses, _log_axis(accesses, "size", BYTES), options, "Size of reads and writes over time"
    )


def draw_time(answer: Answer, options: ChartOptions) -> Picture:
    """Duration of each read and write, over time."""
    accesses = select(
        answer,
        options,
        "dur",
        missing="none of the {moving} reads and writes has a duration and a time stamp: strace records "
        "durations with -T",
    )
    vertical = _log_axis(accesses, "duration", NANOSECONDS)
    return _draw(answer, accesses, vertical, options, "Duration of reads and writes over time")


def _log_axis(accesses: Accesses, title: str, unit: Unit) -> Vertical:
    low, high = accesses.low, accesses.high
    if unit is BYTES:
        first, last = math.floor(math.log2(max(low, 1.0))), math.ceil(math.log2(max(high, 2.0)))
        if first == last:
            first, last = max(0, first - 1), last + 1
        stride = max(1, math.ceil((last - first) / 8))
        ticks = [2.0**power for power in range(first, last + stride, stride)]
    else:
        ticks = decades(max(low, 1.0), max(high, 2.0))
    bottom = ticks[0] / 1.3
    # A logarithmic axis has no 0. Accesses of 0 bytes or 0 ns are drawn at its lower end, and the title of
    # the axis says so.
    floor = " (0 at the bottom)" if low == 0 else ""
    return Vertical(
        f"{title}, logarithmic{floor}", unit, bottom, ticks[-1] * 1.3, ticks, ticks[-1], logarithmic=True
    )


def _furthest(few: pa.Table) -> float:
    places, sizes = (few.column(name).to_pylist() for name in ("y", "bytes"))
    return max(float(place) + float(size or 0.0) for place, size in zip(places, sizes, strict=True))


def _draw(
    answer: Answer,
    accesses: Accesses,
    vertical: Vertical,
    options: ChartOptions,
    title: str,
    spans: bool = False,
) -> Picture:
    theme, count, few = theme_of(options), accesses.count, accesses.few
    notes = []
    files = len(pc.unique(answer.table.column("file"))) if has(answer, "file") else 1
    if files > 1 and spans:
        notes.append(f"{files:,} files on top of each other")
    if accesses.hidden:
        notes.append(f"{COUNT.text(accesses.hidden)} more have no known time or offset")
    if few is not None:
        notes = [f"{count:,} access{'es' if count > 1 else ''}, each drawn", *notes]
        chart = _points(answer, accesses, few, vertical, theme, spans)
    else:
        notes = [f"{COUNT.text(count)} accesses; darker: more accesses start there", *notes]
        cells = grid(accesses, vertical.low, vertical.high, vertical.logarithmic)
        chart = _density(answer, accesses.span, cells, vertical, theme)
    return Picture(chart, title, ["; ".join(notes)], height=360)


def _y(vertical: Vertical, field: str = "y") -> Any:
    import altair

    labels = (
        vertical.unit.log_label_expression()
        if vertical.logarithmic
        else vertical.unit.label_expression(vertical.reach)
    )
    return altair.Y(
        field=field,
        type="quantitative",
        title=vertical.title,
        scale=altair.Scale(
            type="log" if vertical.logarithmic else "linear", domain=[vertical.low, vertical.high], nice=False
        ),
        axis=altair.Axis(values=[tick for tick in vertical.ticks if tick <= vertical.high], labelExpr=labels),
    )


def _points(
    answer: Answer, accesses: Accesses, few: pa.Table, vertical: Vertical, theme: Theme, spans: bool
) -> Any:
    """Draws each access as a mark at its beginning. If `spans` is set, a line leads to its end."""
    import altair

    placed = zip(since(accesses.span, few.column("ts")).to_pylist(), few.to_pylist(), strict=True)
    rows = [_point(row | {"at": at}, accesses, vertical, spans) for at, row in placed]
    present = [name for name in ("read", "write") if any(row["direction"] == name for row in rows)]
    colours = [getattr(theme, name) for name in present]
    base = altair.Chart(values(rows)).encode(
        x=time_axis(answer, accesses.span.origin, accesses.span.end, accesses.span.later),
        y=_y(vertical),
        color=colour("direction", present, colours, of_several=True),
        tooltip=tips(
            ("call", "call"),
            ("when", "at"),
            ("place", "offset" if spans else vertical.title.split(",")[0]),
            ("size", "size"),
            ("took", "took"),
        ),
    )
    shape = altair.Shape(
        field="direction",
        type="nominal",
        sort=None,
        title=None,
        scale=altair.Scale(
            domain=present, range=[{"read": "circle", "write": "triangle-up"}[name] for name in present]
        ),
        legend=altair.Legend(),
    )
    dots = base.mark_point(filled=True, size=22 if len(rows) > 300 else 36, opacity=0.9).encode(shape=shape)
    if not spans:
        return altair.layer(dots)
    return altair.layer(base.mark_rule(strokeWidth=2, opacity=0.8).encode(x2="end:Q", y2="top:Q"), dots)


def _point(row: dict[str, Any], accesses: Accesses, vertical: Vertical, spans: bool) -> dict[str, Any]:
    place, size, took = row["y"], row["bytes"], row["took"]
    return {
        "at": row["at"],
        "end": row["at"] + (took or 0.0),
        "y": max(place, vertical.low),
        "top": place + (size or 0.0),
        "direction": "write" if row["writes"] else "read",
        "call": row["call"],
        "when": NANOSECONDS.text(accesses.span.later + row["at"]),
        "place": f"{place:,.0f} B" if spans else vertical.unit.text(place),
        "size": BYTES.text(size),
        "took": NANOSECONDS.text(took),
    }


def _density(answer: Answer, span: Span, cells: list[Cell], vertical: Vertical, theme: Theme) -> Any:
    """Draws a grid of cells, in which the hue shows the direction, and the shade the number of accesses."""
    import altair

    rows = [_rectangle(cell, span, vertical) for cell in cells]
    present = [name for name in ("read", "write", "both") if any(row["direction"] == name for row in rows)]
    shades = sorted({cell.shade for cell in cells})
    names = [_shade_name(shade) for shade in shades]
    opacity = altair.Opacity(
        field="shade",
        type="ordinal",
        title="accesses in a cell",
        sort=None,
        # This scale must be ordinal. With another type, vega-lite would spread the shades evenly between the
        # first two.
        scale=altair.Scale(type="ordinal", domain=names, range=[theme.shades[shade] for shade in shades]),
        legend=altair.Legend(symbolFillColor=theme.ink, symbolStrokeWidth=0, titleOrient="left")
        if len(shades) > 1
        else None,
    )
    base = altair.Chart(values(rows)).mark_rect(strokeWidth=0)
    return altair.layer(
        base.encode(
            x=time_axis(answer, span.origin, span.end, span.later),
            x2="end:Q",
            y=_y(vertical),
            y2="top:Q",
            color=colour("direction", present, [getattr(theme, name) for name in present], of_several=True),
            opacity=opacity,
            tooltip=tips(
                ("direction", "direction"), ("count", "accesses"), ("when", "from"), ("place", "above")
            ),
        )
    )


def _shade_name(shade: int) -> str:
    bounds = (0, *SHADES)
    first = bounds[shade] + 1
    if shade == len(SHADES):
        return f"over {SHADES[-1]}"
    return f"{first}" if first == SHADES[shade] else f"{first} to {SHADES[shade]}"


def _rectangle(cell: Cell, span: Span, vertical: Vertical) -> dict[str, Any]:
    stride = span.end / COLUMNS
    left, low = cell.left * stride, vertical.edge(cell.row)
    return {
        "at": left,
        "end": cell.right * stride,
        "y": low,
        "top": vertical.edge(cell.row + 1),
        "direction": cell.direction,
        "shade": _shade_name(cell.shade),
        "count": COUNT.text(cell.count),
        "when": NANOSECONDS.text(span.later + left),
        "place": vertical.unit.text(low),
    }
