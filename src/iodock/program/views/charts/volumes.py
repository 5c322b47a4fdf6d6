"""Compares the size of each file with the bytes that were read from it and written to it."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.program.views.charts.source import CannotDraw, key_title, need_rows, row_names
from iodock.shared.answer import Answer
from iodock.shared.charts.frame import Picture, colour, theme_of, tips, values, x_measure, y_labels
from iodock.shared.charts.options import ChartOptions
from iodock.shared.text import TIP_CELLS, labels, shorten
from iodock.shared.units import BYTES, number_text

_MOST_FILES = 20
_BAR_PIXELS = 11
_SERIES = (
    ("expected: the file's size", "size_bytes", "other"),
    ("read", "read_bytes", "read"),
    ("written", "written_bytes", "write"),
)


def draw_volume(answer: Answer, options: ChartOptions) -> Picture:
    """Size of each file and the bytes that were read and written; most redundant bytes first."""
    import altair

    need_rows(answer)
    # The sizes of the files are drawn whatever series the user selects, because the bytes are compared with
    # them.
    series = [one for one in _SERIES if one[0] == _SERIES[0][0] or options.keeps(_short(one[0]))]
    moved = [column for _, column, _ in series[1:]]
    has_moved = [pc.greater(pc.fill_null(answer.table.column(column), 0), 0) for column in moved]
    rows = answer.table.filter(reduce(pc.or_, has_moved)) if moved else answer.table.slice(0, 0)
    if rows.num_rows == 0:
        raise CannotDraw("no bytes were read or written in this selection")
    shown = rows.slice(0, _MOST_FILES).to_pylist()
    names = row_names(_of(answer, shown), pa.array(range(len(shown))))
    places = labels(names)
    bars = [
        _bar(label, name, what, row, column)
        for label, name, row in zip(places, names, shown, strict=True)
        for what, column, _ in series
    ]
    theme = theme_of(options)
    drawn = [what for what, _, _ in series]
    offset = altair.YOffset(field="series", type="nominal", sort=None, scale=altair.Scale(domain=drawn))
    base = altair.Chart(values(bars)).encode(y=y_labels(places, key_title(answer)), yOffset=offset)
    marks = base.mark_bar().encode(
        x=x_measure("bytes", "bytes", BYTES, max(bar["bytes"] for bar in bars)),
        color=colour("series", drawn, [getattr(theme, one[2]) for one in series]),
        tooltip=tips(("name", "file"), ("series", "what"), ("text", "bytes"), ("factor", "of its size")),
    )
    texts = base.mark_text(align="left", dx=4, fontSize=9, color=theme.quiet).encode(
        x=altair.X(field="bytes", type="quantitative"), text="beside:N"
    )
    of = answer.totals.of if answer.totals else rows.num_rows
    notes = [f"the first {len(shown):,} of {of:,} files"] if len(shown) < of else []
    height = max(60, len(shown) * (_BAR_PIXELS * len(series) + 6))
    return Picture(altair.layer(marks, texts), "Expected and actual volume by file", notes, height)


def _short(series: str) -> str:
    return {"written": "write"}.get(series, series)


def _of(answer: Answer, rows: list[dict[str, Any]]) -> Answer:
    import dataclasses

    return dataclasses.replace(answer, table=pa.Table.from_pylist(rows, schema=answer.table.schema))


def _bar(label: str, name: str, what: str, row: dict[str, Any], column: str) -> dict[str, Any]:
    value, size = row[column], row["size_bytes"]
    factor = value / size if value is not None and size else None
    return {
        "label": label,
        "name": shorten(name, TIP_CELLS),
        "series": what,
        "bytes": value or 0,
        "text": BYTES.text(value),
        "beside": BYTES.text(value) if value else "",
        "factor": "not known" if factor is None else f"{number_text(factor)} times",
    }
