"""Draws a histogram of the sizes of reads and writes. Both axes are logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from iodock.program.views.charts.source import CannotDraw, need_durations, need_rows
from iodock.shared.answer import Answer
from iodock.shared.charts.frame import Picture, colour, theme_of, tips, values
from iodock.shared.charts.options import ChartOptions
from iodock.shared.charts.theme import Theme
from iodock.shared.units import BYTES, COUNT, NANOSECONDS, Unit, decades

# A histogram maps a direction to its values by size in bytes.
Histogram = Mapping[str, Mapping[int, float]]

# `--exact` may return as many sizes as there are calls. More dots than this can't be distinguished.
_MOST_DOTS = 4000


def draw_size(answer: Answer, options: ChartOptions) -> Picture:
    """Number of reads and writes of each size."""
    return _draw(answer, options, "count", "calls", COUNT, "Reads and writes by size")


def draw_size_time(answer: Answer, options: ChartOptions) -> Picture:
    """Time spent in the reads and writes of each size."""
    need_rows(answer)
    need_durations(answer, "total_time_ns")
    title = "Time in reads and writes by size"
    return _draw(answer, options, "total_time_ns", "total time", NANOSECONDS, title)


def _draw(
    answer: Answer, options: ChartOptions, column: str, axis_title: str, unit: Unit, title: str
) -> Picture:
    need_rows(answer)
    found = _histogram(answer, options, column)
    if not found:
        wanted = " or ".join(options.only) or "read or write"
        raise CannotDraw(f"no {wanted} in this selection")
    sizes = sorted({size for sizes in found.values() for size in sizes})
    if not answer.options.get("exact") and all(size == 0 or size & (size - 1) == 0 for size in sizes):
        return _bins(answer, found, sizes, options, axis_title, unit, title)
    return _exact(answer, found, sizes, options, axis_title, unit, title)


def _histogram(answer: Answer, options: ChartOptions, column: str) -> dict[str, dict[int, float]]:
    """Returns the answer's values by direction and size. A histogram has few rows, unless it is exact."""
    size_column = "size_bytes" if "size_bytes" in answer.table.column_names else "upper_bytes"
    table = answer.table.select(["direction", size_column, column])
    result: dict[str, dict[int, float]] = {}
    for direction, size, value in zip(*(one.to_pylist() for one in table.columns), strict=True):
        if direction is None or size is None or not value or not options.keeps(direction):
            continue
        sizes = result.setdefault(direction, {})
        sizes[size] = sizes.get(size, 0.0) + float(value)
    return result


def _bins(
    answer: Answer,
    found: Histogram,
    sizes: list[int],
    options: ChartOptions,
    axis_title: str,
    unit: Unit,
    title: str,
) -> Picture:
    import altair

    theme, bins = theme_of(options), _every_bin(sizes)
    lowest, highest = _limits(found)
    ticks = decades(lowest, highest)
    # A bar on a logarithmic axis can't start at zero, so it starts below the smallest value.
    floor = ticks[0] * 0.6
    directions = _directions(found)
    rows = [
        _row(direction, _bin_label(size), _bin_range(size), found[direction][size], unit) | {"floor": floor}
        for direction in directions
        for size in bins
        if size in found[direction]
    ]
    order = [_bin_label(size) for size in bins]
    scale = altair.Scale(type="log", domain=[floor, max(ticks[-1], highest)], nice=False)
    chart = (
        altair.Chart(values(rows))
        .mark_bar()
        .encode(
            x=altair.X(
                field="label",
                type="ordinal",
                title=f"{_size_noun(answer)} up to",
                sort=None,
                scale=altair.Scale(domain=order, paddingInner=0.15, paddingOuter=0.1),
                axis=altair.Axis(labelAngle=-45 if len(order) > 9 else 0, labelOverlap=True, grid=False),
            ),
            xOffset=altair.XOffset(field="direction", type="nominal", scale=altair.Scale(domain=directions)),
            y=altair.Y(
                field="value",
                type="quantitative",
                title=f"{axis_title} (logarithmic)",
                scale=scale,
                axis=altair.Axis(values=ticks, labelExpr=unit.log_label_expression()),
            ),
            y2="floor:Q",
            color=colour("direction", directions, _colours(directions, theme), of_several=True),
            tooltip=tips(("size", "size"), ("direction", "direction"), ("text", axis_title)),
        )
    )
    return Picture(chart, title)


def _exact(
    answer: Answer,
    found: Histogram,
    sizes: list[int],
    options: ChartOptions,
    axis_title: str,
    unit: Unit,
    title: str,
) -> Picture:
    import altair

    theme = theme_of(options)
    lowest, highest = _limits(found)
    ticks = decades(lowest, highest)
    floor = ticks[0] * 0.6
    directions = _directions(found)
    rows = [
        _row(direction, "", f"{size:,} B", value, unit) | {"at": _place(size), "floor": floor}
        for direction in directions
        for size, value in found[direction].items()
    ]
    total = len(rows)
    rows = sorted(rows, key=lambda row: -float(row["value"]))[:_MOST_DOTS]
    x_ticks = _powers(sizes)
    x = altair.X(
        field="at",
        type="quantitative",
        title=f"exact {_size_noun(answer)} (logarithmic)",
        scale=altair.Scale(type="log", base=2, domain=[x_ticks[0] / 1.3, x_ticks[-1] * 1.3], nice=False),
        axis=altair.Axis(
            values=x_ticks, labelExpr=f"datum.value < 1 ? '0 B' : {BYTES.log_label_expression()}"
        ),
    )
    y = altair.Y(
        field="value",
        type="quantitative",
        title=f"{axis_title} (logarithmic)",
        scale=altair.Scale(type="log", domain=[floor, max(ticks[-1], highest)], nice=False),
        axis=altair.Axis(values=ticks, labelExpr=unit.log_label_expression()),
    )
    base = altair.Chart(values(rows)).encode(
        x=x, color=colour("direction", directions, _colours(directions, theme), of_several=True)
    )
    stems = base.mark_rule(strokeWidth=1.2, opacity=0.7).encode(y=y, y2="floor:Q")
    shown = tips(("size", "size"), ("direction", "direction"), ("text", axis_title))
    dots = base.mark_point(filled=True, size=36, opacity=1).encode(
        y=y, shape=_shapes(directions), tooltip=shown
    )
    left = [f"the {_MOST_DOTS:,} most frequent of {total:,} sizes"] if total > _MOST_DOTS else []
    return Picture(altair.layer(stems, dots), title, left)


def _size_noun(answer: Answer) -> str:
    return "requested size" if answer.options.get("requested") else "size transferred"


def _shapes(directions: list[str]) -> Any:
    import altair

    shapes = ["circle" if direction == "read" else "triangle-up" for direction in directions]
    return altair.Shape(
        field="direction",
        type="nominal",
        sort=None,
        title=None,
        scale=altair.Scale(domain=directions, range=shapes),
        legend=altair.Legend() if len(directions) > 1 else None,
    )


def _directions(found: Histogram) -> list[str]:
    known = [name for name in ("read", "write") if name in found]
    return known + sorted(set(found) - set(known))


def _colours(directions: list[str], theme: Theme) -> list[str]:
    return [{"read": theme.read, "write": theme.write}.get(name, theme.other) for name in directions]


def _limits(found: Histogram) -> tuple[float, float]:
    every = [value for sizes in found.values() for value in sizes.values()]
    return max(1.0, min(every)), max(1.0, max(every))


def _row(direction: str, label: str, size: str, value: float, unit: Unit) -> dict[str, Any]:
    text = unit.text(value)
    return {"direction": direction, "label": label, "size": size, "value": max(1.0, value), "text": text}


def _every_bin(sizes: list[int]) -> list[int]:
    """Returns 0 if there are calls of 0 bytes, and all powers of two from the smallest to the largest
    size. Empty bins are included, so that the chart shows gaps."""
    positive = [size for size in sizes if size > 0]
    bins = [0] if 0 in sizes else []
    if positive:
        first, last = int(math.log2(positive[0])), int(math.log2(positive[-1]))
        bins += [2**power for power in range(first, last + 1)]
    return bins


def _bin_label(size: int) -> str:
    return BYTES.text(size)


def _bin_range(size: int) -> str:
    """Formats the range of the bin that ends at `size` bytes: from `size` / 2 + 1 to `size`. The sizes 0,
    1 and 2 have bins of their own."""
    return f"{size:,} B" if size <= 2 else f"{size // 2 + 1:,} to {size:,} B"


def _place(size: int) -> float:
    # The axis is logarithmic and has no 0. Calls of 0 bytes are drawn at half a byte.
    return float(size) if size > 0 else 0.5


def _powers(sizes: list[int]) -> list[float]:
    places = [_place(size) for size in sizes]
    first, last = math.floor(math.log2(min(places))), math.ceil(math.log2(max(places)))
    stride = max(1, math.ceil((last - first) / 12))
    return [2.0**power for power in range(first, last + stride, stride)]
