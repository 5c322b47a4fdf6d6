"""Formats the largest rates as a table for a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from iodock.centre.views.amounts import amount, duration
from iodock.shared.language import N_, Language
from iodock.shared.text import visible

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, Group
    from rich.table import Table

_PLACES = {
    "servers": N_("as counted by file servers"),
    "processes": N_("as requested by processes, including page cache and pipes"),
    "cgroups": N_("as counted by the nodes' devices"),
}
_NAMES = {
    "job": N_("job"), "user": N_("user"), "node": N_("node"), "target": N_("target"),
    "file-system": N_("file system"),
}  # fmt: skip
_COLUMNS = {"read": N_("read/s"), "write": N_("written/s"), "metadata": N_("metadata/s")}
_KINDS = {"read": "bytes_rate", "write": "bytes_rate", "metadata": "rate"}
_NOTHING = N_("No activity was counted here.")
_NARROW, _WIDE = 70, 100
_LATE_S = 60.0


@dataclass(frozen=True)
class Heading:
    """The information in the lines above the table."""

    at_ns: int
    is_live: bool
    by: str
    sort: str
    place: str
    seconds: float
    having: str = ""
    health: str = ""
    """State of the servers; empty: not known, for example in a replay."""


def top_table(rows: pa.Table, heading: Heading, text: Language, width: int, height: int) -> Group:
    """Formats the table with as many rows as fit."""
    from rich.console import Group
    from rich.text import Text

    shown = rows.slice(0, max(1, height - 6 - bool(heading.health))).to_pylist()
    lines: list[Any] = [Text(line, no_wrap=True, overflow="ellipsis") for line in _head(rows, heading, text)]
    if not shown:
        return Group(*lines, Text(text.gettext(_NOTHING)))
    lines.append(_table(shown, heading, text, width))
    if rows.num_rows and rows.column("total")[0].as_py() > len(shown):
        lines.append(
            Text(
                text.gettext(
                    N_("{shown} of {total}"), shown=len(shown), total=rows.column("total")[0].as_py()
                )
            )
        )
    if not all(row["exact"] for row in shown):
        lines.append(Text(text.gettext(N_("≥: this much or more")), style="dim"))
    return Group(*lines)


def _head(rows: pa.Table, heading: Heading, text: Language) -> Iterator[str]:
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(heading.at_ns // 1_000_000_000))
    live = text.gettext(N_("live")) if heading.is_live else text.gettext(N_("replay"))
    place = text.gettext(_PLACES[heading.place])
    yield f"{clock} {live} · {place}"
    begin = time.localtime(heading.at_ns / 1e9 - heading.seconds)
    # The date is shown only if it is not that of the reading.
    form = "%H:%M:%S" if clock.startswith(time.strftime("%Y-%m-%d", begin)) else "%Y-%m-%d %H:%M:%S"
    mean = text.gettext(
        N_("rates are means over {took}, since {since}"),
        took=duration(heading.seconds), since=time.strftime(form, begin),
    )  # fmt: skip
    found = text.gettext(N_("containing {part}"), part=visible(heading.having)) if heading.having else ""
    yield " · ".join(part for part in (mean, found) if part)
    if heading.health:
        yield visible(heading.health)


def _table(rows: list[dict[str, Any]], heading: Heading, text: Language, width: int) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, expand=False)
    table.add_column(text.gettext(_NAMES[heading.by]), no_wrap=True, overflow="ellipsis", min_width=8)
    for name, title in _COLUMNS.items():
        style = "bold" if name == heading.sort else ""
        mark = " ▾" if name == heading.sort else ""
        table.add_column(text.gettext(title) + mark, justify="right", no_wrap=True, style=style)
    details = _details(heading, width)
    for detail in details:
        table.add_column(text.gettext(detail[1]), no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*_cells(row, heading, text), *(_detail(row[name]) for name, _ in details))
    return table


def _details(heading: Heading, width: int) -> list[tuple[str, str]]:
    """Returns the keys and titles of further columns, as many as fit into WIDTH."""
    details = [("user", N_("user")), ("file_systems", N_("file systems")), ("nodes", N_("nodes")),
               ("command", N_("command"))]  # fmt: skip
    if heading.by == "job":
        details.insert(1, ("job_name", N_("name")))
    own = {"user": "user", "node": "nodes", "file-system": "file_systems"}.get(heading.by)
    room = 0 if width < _NARROW else 2 if width < _WIDE else 5
    return [detail for detail in details if detail[0] != own][:room]


def _cells(row: dict[str, Any], heading: Heading, text: Language) -> Iterator[Any]:
    from rich.text import Text

    yield Text(visible(row["name"]) or text.gettext(N_("(none)")))
    at_least = "" if row["exact"] else "≥ "
    for name, kind in _KINDS.items():
        shown = amount(row[f"{name}_rate"], kind)
        yield Text(at_least + shown if shown else "")


def _detail(value: object) -> Any:
    from rich.text import Text

    return Text("" if value is None else visible(str(value)))


def printed(group: Group, width: int, colour: bool) -> str:
    """Renders the table as text."""
    from rich.console import Console

    out = StringIO()
    console: Console = Console(file=out, width=width, force_terminal=colour, highlight=False)
    console.print(group)
    return out.getvalue()
