"""Formats jobs with their load on file servers as a table for a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from iodock.centre.views.amounts import amount
from iodock.shared.language import N_, Language
from iodock.shared.text import visible

if TYPE_CHECKING:
    from rich.console import Group

Rows = list[dict[str, object]]
_COLUMNS = (
    ("job", N_("job"), ""), ("user", N_("user"), ""), ("job_name", N_("name"), ""),
    ("metadata", N_("metadata"), "number"), ("metadata_share", N_("of all"), "share"),
    ("opens", N_("opens"), "number"), ("creates", N_("files created"), "number"),
    ("object_creates", N_("objects created"), "number"), ("read_bytes", N_("read"), "bytes"),
    ("write_bytes", N_("written"), "bytes"), ("bytes_share", N_("of all"), "share"),
    ("episodes", N_("suspected"), "integer"), ("hosts", N_("nodes"), "integer"),
    ("end_ts", N_("last seen"), "time"), ("seconds", N_("active"), "seconds"),
)  # fmt: skip
_LONGEST = 24
"""Longest name that is shown in full."""
_WIDE = 150
_NARROW = ("job", "user", "metadata", "metadata_share", "opens", "object_creates", "write_bytes", "episodes")
"""Columns that are shown in a terminal narrower than _WIDE cells."""
_NOTHING = N_("File servers counted no activity of any job.")


def heavy_table(rows: Rows, total: int, sort: str, text: Language, width: int) -> Group:
    """Formats the table. TOTAL is the number of all jobs, of which ROWS has the first. Columns whose values
    are not counted are left out. If the terminal is narrow, further columns are left out."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return Group(Text(text.gettext(_NOTHING)))
    room = [one for one in _COLUMNS if width >= _WIDE or one[0] in (*_NARROW, sort)]
    shown = [one for one in room if one[0] == "job" or any(row[one[0]] is not None for row in rows)]
    table = Table(box=None, pad_edge=False, expand=False)
    for name, title, kind in shown:
        mark = " ▾" if name == sort else ""
        justify: Any = "right" if kind and kind != "time" else "left"
        longest = max(len(_cell(row, name, kind)) for row in rows)
        table.add_column(
            text.gettext(title) + mark, justify=justify, no_wrap=True, overflow="ellipsis",
            min_width=longest if kind or name == "job" else 6,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(Text(_cell(row, name, kind)) for name, _, kind in shown))
    lines: list[Any] = [table]
    if total > len(rows):
        lines.append(Text(text.gettext("{shown} of {total}", shown=len(rows), total=total)))
    if not all(row["exact"] for row in rows):
        lines.append(Text(text.gettext("≥: this much or more"), style="dim"))
    return Group(*lines)


def _cell(row: dict[str, object], name: str, kind: str) -> str:
    value = row[name]
    if value is None:
        return ""
    if kind == "time":
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(int(str(value)) / 1e9))
    if not kind:
        shown = visible(str(value))
        return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
    is_bound = row["exact"] is False and kind in ("number", "bytes") and value != 0
    return ("≥ " if is_bound else "") + amount(value, kind)
