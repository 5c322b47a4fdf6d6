"""An answer in a notebook: its chart above its first rows."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from iodock.answer import Answer
from iodock.views.charts.words import visible

FIRST_ROWS = 20


def html(answer: Answer) -> str:
    """The first rows as an HTML table, with each column's meaning as its tooltip."""
    heads = "".join(
        f'<th title="{escape(column.doc)}">{escape(visible(column.name))}</th>' for column in answer.columns
    )
    rows = answer.table.slice(0, FIRST_ROWS).to_pylist()
    names = [column.name for column in answer.columns]
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(row[name])}</td>" for name in names) + "</tr>" for row in rows
    )
    more = answer.table.num_rows - len(rows)
    below = f"<p>and {more:,} more rows</p>" if more > 0 else ""
    remarks = [*answer.notes, *(f"{loss.name} ({loss.count:,}): {loss.cure}" for loss in answer.losses)]
    notes = "".join(f"<p>{escape(visible(remark))}</p>" for remark in remarks)
    return (
        f"<table><caption>{escape(visible(answer.title))}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table>{below}{notes}"
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return escape(visible(value if isinstance(value, str) else str(value)))


def mimebundle(answer: Answer) -> Mapping[str, Any]:
    """The chart, where the notebook can draw it, else the rows."""
    from iodock.views.charts import render_chart

    specification = render_chart(answer).to_dict()
    # The version of the drawing language is in the address of its schema: .../vega-lite/v6.1.0.json.
    version = specification["$schema"].rsplit("/v", 1)[-1].split(".")[0]
    return {
        f"application/vnd.vegalite.v{version}+json": specification,
        "text/html": html(answer),
        "text/plain": answer.title,
    }
