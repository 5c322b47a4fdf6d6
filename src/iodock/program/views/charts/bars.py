"""Draws ranked horizontal bars for rows that are grouped by any key, as the COUNT, TIME and IO plots of
IO-Dock do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iodock.program.views.charts.source import (
    Bar,
    CannotDraw,
    all_null,
    has,
    key_title,
    need_durations,
    need_rows,
    numbers,
    ranked,
    unit_in,
)
from iodock.shared.answer import Answer
from iodock.shared.charts.frame import (
    Picture,
    bars_height,
    colour,
    theme_of,
    tips,
    values,
    x_measure,
    y_labels,
)
from iodock.shared.charts.options import ChartOptions
from iodock.shared.text import TIP_CELLS, shorten
from iodock.shared.units import BYTES, NANOSECONDS, Unit, decades

_AMOUNTS = ("bytes", "ns")
# A series has a name, a column, and the name of its colour in the theme.
Series = tuple[str, str, str]

_COUNTS: tuple[Series, ...] = (
    ("success", "success", "success"),
    ("not failed", "not_failed", "success"),
    ("failed", "failed", "failed"),
    ("no result", "no_result", "no_result"),
)
_BYTES: tuple[Series, ...] = (("read", "read_bytes", "read"), ("written", "written_bytes", "write"))
_RANKS: tuple[Series, ...] = (
    ("reading", "read_time_ns", "read"),
    ("writing", "write_time_ns", "write"),
    ("metadata", "metadata_time_ns", "failed"),
    ("sync", "sync_time_ns", "both"),
    ("waiting", "waiting_time_ns", "no_result"),
)


def draw_count(answer: Answer, options: ChartOptions) -> Picture:
    """Calls per row; succeeded, failed and without a result stacked, or only some of them."""
    need_rows(answer)
    if not has(answer, "success") and has(answer, "count", "failed"):
        answer = _with_not_failed(answer)
    return _stacked(answer, options, _COUNTS, f"Calls{_per(answer)}", "calls")


def _with_not_failed(answer: Answer) -> Answer:
    """Adds the number of calls that did not fail, for analyses that count only failures. These calls may
    have succeeded or have no result."""
    import dataclasses

    import pyarrow.compute as pc

    rest = pc.subtract(numbers(answer, "count"), pc.fill_null(numbers(answer, "failed"), 0.0))
    return dataclasses.replace(answer, table=answer.table.append_column("not_failed", rest))


def draw_io(answer: Answer, options: ChartOptions) -> Picture:
    """Bytes transferred per row; read and written stacked, or one of them."""
    need_rows(answer)
    return _stacked(answer, options, _BYTES, f"Bytes read and written{_per(answer)}", "bytes transferred")


def draw_time(answer: Answer, options: ChartOptions) -> Picture:
    """Time spent inside the calls of each row, summed over all threads."""
    need_rows(answer)
    column = "total_time_ns"
    if all_null(answer, column) and not all_null(answer, "sys_cpu_time_ns"):
        column = "sys_cpu_time_ns"
    need_durations(answer, column)
    elapsed = column == "total_time_ns"
    title = f"{'Time' if elapsed else 'System CPU time'} in calls{_per(answer)}"
    axis = (
        "total time (summed over threads)" if elapsed else "system CPU time (this source has no elapsed time)"
    )
    series: tuple[Series, ...] = (("time", column, "read"),)
    return _stacked(answer, options, series, title, axis)


def draw_ranks(answer: Answer, options: ChartOptions) -> Picture:
    """Time that each rank spent reading, writing, in calls about files, in syncs and waiting, stacked."""
    need_rows(answer)
    need_durations(answer, "io_time_ns")
    return _stacked(answer, options, _RANKS, "I/O time by rank", "time inside calls (summed over threads)")


def draw_time_range(answer: Answer, options: ChartOptions) -> Picture:
    """Shortest, mean and longest call of each row, on a logarithmic axis."""
    need_rows(answer)
    need_durations(answer, "mean_time_ns")
    columns = ("min_time_ns", "mean_time_ns", "max_time_ns")
    return _ranges(answer, options, columns, NANOSECONDS, f"Shortest, mean and longest call{_per(answer)}")


def draw_size_range(answer: Answer, options: ChartOptions) -> Picture:
    """Smallest, mean and largest transfer of each row, on a logarithmic axis."""
    need_rows(answer)
    columns = ("min_size_bytes", "mean_size_bytes", "max_size_bytes")
    if all_null(answer, columns[1]):
        raise CannotDraw("no call of this selection transferred any bytes")
    return _ranges(answer, options, columns, BYTES, f"Smallest, mean and largest transfer{_per(answer)}")


def draw_first_measure(answer: Answer, options: ChartOptions) -> Picture:
    """The most important number of any answer, per key: for analyses that declare no chart of their own."""
    need_rows(answer)
    # If several columns are equally important, bytes and times come first, because they say more than counts.
    for column in sorted(answer.with_role("measure"), key=lambda one: (one.place, one.unit not in _AMOUNTS)):
        if column.type in ("int", "float") and has(answer, column.name) and not all_null(answer, column.name):
            series: tuple[Series, ...] = ((column.name, column.name, "read"),)
            title = f"{column.name.replace('_', ' ')}{_per(answer)}"
            return _stacked(answer, options, series, title, column.name.replace("_", " "))
    raise CannotDraw("this result has no column of numbers")


def _per(answer: Answer) -> str:
    """Returns the end of a chart's title, which names the keys of the bars."""
    keys = answer.keys or tuple(column.name for column in answer.with_role("key"))
    return f" by {' and '.join(keys[:3])}" if keys and keys != ("call",) else ""


def _stacked(
    answer: Answer, options: ChartOptions, series: Sequence[Series], title: str, axis_title: str
) -> Picture:
    import altair

    kept = [one for one in series if _wanted(options, one[0]) and not all_null(answer, one[1])]
    if not kept:
        raise CannotDraw(
            f"unknown for all calls in this selection: {', '.join(name for name, _, _ in series)}"
        )
    columns = [column for _, column, _ in kept]
    bars, notes = ranked(_with_order(answer, columns), [*columns], by=_ORDER, fold=columns)
    bars = [bar for bar in bars if any(bar.values.values())]
    if not bars:
        raise CannotDraw(f"{axis_title}: all values are zero in this selection")
    if len(kept) < len(series) and options.only:
        notes = [f"{' and '.join(name for name, _, _ in kept)} only", *notes]
    unit, theme = unit_in(answer, columns[0]), theme_of(options)
    bars, notes = _without_giant(bars, notes, unit)
    drawn = [one for one in kept if any(bar.values[one[1]] for bar in bars)]
    rows = [row for bar in bars for row in _rows(bar, drawn, unit)]
    longest = max(map(_length, bars))
    order = [bar.label for bar in bars]
    base = altair.Chart(values(rows)).encode(y=y_labels(order, key_title(answer)))
    x = x_measure("start", axis_title, unit, longest)
    marks = base.mark_bar().encode(
        x=x,
        x2="end:Q",
        color=colour(
            "series",
            [one[0] for one in drawn],
            [getattr(theme, one[2]) for one in drawn],
            of_several=len(series) > 1,
        ),
        tooltip=tips(("name", "name"), ("series", "series"), ("text", "value"), ("total", "together")),
    )
    texts = base.mark_text(align="left", dx=4, color=theme.quiet, fontSize=10.5).encode(
        x="start:Q", text="total:N"
    )
    texts = texts.transform_filter("datum.last").encode(x=altair.X(field="sum", type="quantitative"))
    return Picture(altair.layer(marks, texts), title, notes, bars_height(len(bars)))


def _without_giant(bars: list[Bar], notes: list[str], unit: Unit) -> tuple[list[Bar], list[str]]:
    """Moves the bar 'other' into the notes if it is so long that all other bars would be too short to
    compare."""
    rest = bars[-1]
    if len(bars) < 2 or not rest.is_rest or _length(rest) <= _GIANT * max(map(_length, bars[:-1])):
        return bars, notes
    return bars[:-1], [*notes, f"not drawn: {rest.name}, {unit.text(_length(rest))}"]


def _length(bar: Bar) -> float:
    return sum(value or 0.0 for value in bar.values.values())


# If the bar 'other' is more than this many times longer than the longest other bar, it is not drawn.
_GIANT = 4
# Name of the column that `_with_order` adds.
_ORDER = "chart order"


def _with_order(answer: Answer, columns: Sequence[str]) -> Answer:
    """Returns the rows that have a value in any of `columns`. A column with the sum of these values is
    added, by which the rows are ranked."""
    import dataclasses

    import pyarrow.compute as pc

    total = pc.fill_null(numbers(answer, columns[0]), 0.0)
    for column in columns[1:]:
        total = pc.add(total, pc.fill_null(numbers(answer, column), 0.0))
    table = answer.table.append_column(_ORDER, total)
    return dataclasses.replace(answer, table=table.filter(pc.greater(total, 0.0)))


def _wanted(options: ChartOptions, series: str) -> bool:
    # `--only write` and `--only written` select the same series. Series about success have two names, too.
    synonyms = {
        "written": ("write", "written"),
        "success": ("success", "succeeded"),
        "not failed": ("success", "not failed"),
    }
    return any(options.keeps(name) for name in synonyms.get(series, (series,)))


def _rows(bar: Bar, series: Sequence[Series], unit: Unit) -> list[dict[str, Any]]:
    total = sum(bar.values[column] or 0.0 for _, column, _ in series)
    rows, start = [], 0.0
    for index, (name, column, _) in enumerate(series):
        value = bar.values[column] or 0.0
        row = {
            "label": bar.label,
            "name": shorten(bar.name, TIP_CELLS),
            "series": name,
            "start": start,
            "end": start + value,
            "text": unit.text(value),
            "total": unit.text(total),
            "sum": total,
            "last": index == len(series) - 1,
        }
        rows.append(row)
        start += value
    return rows


def _ranges(
    answer: Answer, options: ChartOptions, columns: tuple[str, str, str], unit: Unit, title: str
) -> Picture:
    import altair

    by = "total_time_ns" if unit is NANOSECONDS and not all_null(answer, "total_time_ns") else columns[1]
    bars, notes = ranked(answer, columns, by=by)
    rows = [row for bar in bars if (row := _range_row(bar, columns, unit)) is not None]
    theme = theme_of(options)
    if not rows:
        raise CannotDraw("no row of this selection has a value")
    # A logarithmic axis has no 0. A call of 0 ns or of 0 bytes is drawn at the left end of the axis, and its
    # label says 0.
    ticks = decades(max(1.0, min(row["low"] for row in rows)), max(row["high"] for row in rows))
    scale = altair.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False, clamp=True)
    axis = altair.Axis(values=ticks, labelExpr=unit.log_label_expression(), labelOverlap=True)
    x = altair.X(field="low", type="quantitative", title="shortest - mean - longest", scale=scale, axis=axis)
    if unit is BYTES:
        x = x.title("smallest - mean - largest")
    shown = tips(("name", "name"), ("low_text", "least"), ("mean_text", "mean"), ("high_text", "most"))
    base = altair.Chart(values(rows)).encode(
        y=y_labels([row["label"] for row in rows], key_title(answer)), tooltip=shown
    )
    line = base.mark_rule(strokeWidth=5, strokeCap="round", color=theme.success, opacity=0.75).encode(
        x=x, x2="high:Q"
    )
    mean = base.mark_point(filled=True, size=55, color=theme.ink, opacity=1).encode(x="mean:Q")
    text = base.mark_text(align="left", dx=8, fontSize=10.5, color=theme.quiet).encode(
        x="high:Q", text="high_text:N"
    )
    return Picture(
        altair.layer(line, mean, text), title, (*notes, "The dot is the mean."), bars_height(len(rows))
    )


def _range_row(bar: Bar, columns: tuple[str, str, str], unit: Unit) -> dict[str, Any] | None:
    low, mean, high = (bar.values[column] for column in columns)
    if mean is None:
        return None
    low, high = mean if low is None else low, mean if high is None else high
    return {
        "label": bar.label,
        "name": shorten(bar.name, TIP_CELLS),
        "low": max(1.0, low),
        "mean": max(1.0, mean),
        "high": max(1.0, high),
        "low_text": unit.text(low),
        "mean_text": unit.text(mean),
        "high_text": unit.text(high),
    }
