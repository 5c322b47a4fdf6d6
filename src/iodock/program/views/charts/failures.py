"""Draws failed calls by error name, divided by the call or file that failed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.program.views.charts.source import MOST_BARS, CannotDraw, has, need_rows, row_names
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
from iodock.shared.text import TIP_CELLS, labels, shorten
from iodock.shared.units import COUNT

# Number of colours that can be distinguished in one chart. Further series are combined into one, 'other'.
_MOST_SERIES = 6


def draw_errors(answer: Answer, options: ChartOptions) -> Picture:
    """Failed calls per error name (ENOENT, EAGAIN, ...), split by call or by whatever the rows are about."""
    import altair

    need_rows(answer)
    found = Counter[tuple[str, str]]()
    for errno, series, count in _failures(answer):
        found[errno, series] += count
    errnos, weights = Counter[str](), Counter[str]()
    for (errno, series), count in found.items():
        errnos[errno] += count
        weights[series] += count
    if not errnos:
        raise CannotDraw("no call of this selection failed")
    theme = theme_of(options)
    order = [errno for errno, _ in errnos.most_common(MOST_BARS - 1)]
    named = [series for series, _ in weights.most_common(_MOST_SERIES)]
    short = dict(zip(named, labels(named, 30), strict=True))
    has_rest = len(weights) > len(named)
    legend = [*short.values(), *(["other"] if has_rest else [])]
    rows = _rows(found, errnos, order, short)
    longest = max(errnos.values())
    base = altair.Chart(values(rows)).encode(y=y_labels(order, "error"))
    marks = base.mark_bar().encode(
        x=x_measure("start", "failed calls", COUNT, longest),
        x2="end:Q",
        color=colour(
            "series", legend, [*theme.categories[: len(short)], *([theme.other] if has_rest else [])]
        ),
        tooltip=tips(("label", "error"), ("name", "of"), ("text", "failed calls"), ("total", "together")),
    )
    texts = (
        base.transform_filter("datum.last")
        .mark_text(align="left", dx=4, fontSize=10.5, color=theme.quiet)
        .encode(x=altair.X(field="end", type="quantitative"), text="total:N")
    )
    hidden = len(errnos) - len(order)
    notes = [f"the {len(order)} most frequent of {len(errnos)} errors"] if hidden > 0 else []
    return Picture(altair.layer(marks, texts), "Failed calls by error", notes, bars_height(len(order)))


def _failures(answer: Answer) -> Iterator[tuple[str, str, int]]:
    """Yields the error, the name of the call or key that failed, and the number of failures for every row
    with failures."""
    table = answer.table
    if has(answer, "errno"):
        counts = table.column("failed" if has(answer, "failed") else "count").to_pylist()
        series = _names_beside_errno(answer)
        for errno, name, count in zip(table.column("errno").to_pylist(), series, counts, strict=True):
            if errno and count:
                yield errno, name or "(no call)", count
        return
    if not has(answer, "errnos"):
        raise CannotDraw("this result has no error names")
    places = _rows_with_errors(answer)
    for name, errnos in zip(
        row_names(answer, places), table.column("errnos").take(places).to_pylist(), strict=True
    ):
        for errno, count in _pairs(errnos):
            yield errno, name, count


def _names_beside_errno(answer: Answer) -> list[str]:
    """Returns the name of each row without its error. If the call is a key, it is the call; otherwise it
    consists of all other keys."""
    columns = [column.name for column in answer.with_role("key") if has(answer, column.name)]
    keys = [key for key in answer.keys or columns if key != "errno"]
    if not keys:
        return ["calls"] * answer.table.num_rows
    chosen = ("call",) if "call" in keys else tuple(keys)
    every = pa.array(range(answer.table.num_rows), pa.int64())
    return row_names(dataclasses.replace(answer, keys=chosen), every)


def _rows_with_errors(answer: Answer) -> Any:
    if has(answer, "failed"):
        return pc.indices_nonzero(pc.fill_null(answer.table.column("failed"), 0))
    return pc.indices_nonzero(pc.is_valid(answer.table.column("errnos")))


def _pairs(errnos: Any) -> Iterator[tuple[str, int]]:
    """Yields pairs of error and number. Arrow returns a map as a list of pairs, but a map that was written
    as JSON is a dictionary."""
    for errno, count in errnos.items() if isinstance(errnos, dict) else errnos or ():
        if count:
            yield str(errno), int(count)


def _rows(
    found: Counter[tuple[str, str]], errnos: Counter[str], order: list[str], short: dict[str, str]
) -> list[dict[str, Any]]:
    rows = []
    for errno in order:
        parts = Counter[str]()
        names: dict[str, str] = {}
        for (one, series), count in found.items():
            if one == errno:
                label = short.get(series, "other")
                parts[label] += count
                names[label] = series if series in short else "all others"
        start = 0
        ordered = sorted(parts, key=lambda label: [*short.values(), "other"].index(label))
        for label in ordered:
            row = {"label": errno, "series": label, "start": start, "end": start + parts[label]}
            row |= {"name": shorten(names[label], TIP_CELLS), "text": COUNT.text(parts[label])}
            rows.append(row | {"total": COUNT.text(errnos[errno]), "last": label == ordered[-1]})
            start += parts[label]
    return rows
