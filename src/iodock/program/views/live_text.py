"""Formats the state of a recording in progress as a small block of lines, for a terminal of any width."""

from __future__ import annotations

from collections.abc import Sequence

from iodock.program.following import Rates, Sight, Sums
from iodock.shared.labels import HEADINGS
from iodock.shared.language import N_, Language
from iodock.shared.text import cells, shorten, visible
from iodock.shared.units import BYTES, NANOSECONDS

GAP = 2
"""Number of blanks between columns."""
_LEAST_NAME = 18
_LONG_S = 100.0
_COLUMNS = ("total_time_ns", "count", "read_bytes", "written_bytes")
"""Columns, the most important first. If there is no room, the last ones are left out."""


def live_lines(sight: Sight, text: Language, width: int, height: int) -> list[str]:
    """Returns at most HEIGHT lines, none wider than WIDTH."""
    tables = [
        (text.gettext(N_("Files by time")), sight.files),
        (text.gettext(N_("Calls on files by time")), sight.by_call),
    ]
    lines = [*_head(sight, text, width), *_tables([one for one in tables if one[1]], text, width)]
    return [_cut(line, width) for line in lines[: max(1, height)]]


def _head(sight: Sight, text: Language, width: int) -> list[str]:
    parts = []
    if sight.so_far_seconds is not None:
        parts.append(text.gettext(N_("recording for {time}"), time=_seconds(sight.so_far_seconds)))
    if sight.behind_seconds is not None:
        parts.append(
            text.gettext(N_("shown: all calls up to {time} ago"), time=_seconds(sight.behind_seconds))
        )
    return _filled(parts, width) + _filled(_rates(sight.rates, text), width)


def _rates(rates: Rates | None, text: Language) -> list[str]:
    if rates is None:
        return [text.gettext(N_("rates appear with the next calls"))]
    return [
        text.gettext(N_("read {rate}/s"), rate=BYTES.text(rates.read_bytes)),
        text.gettext(N_("written {rate}/s"), rate=BYTES.text(rates.written_bytes)),
        text.gettext(N_("{n} calls/s"), n=f"{rates.calls:,.0f}"),
        text.gettext(N_("{n} metadata calls/s"), n=f"{rates.metadata_calls:,.0f}"),
    ]


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < _LONG_S else NANOSECONDS.text(seconds * 1e9)


def _filled(parts: Sequence[str], width: int) -> list[str]:
    """Joins the parts into as few lines of WIDTH cells as possible."""
    lines: list[str] = []
    for part in parts:
        if lines and cells(lines[-1]) + GAP + cells(part) <= width:
            lines[-1] += " " * GAP + part
        else:
            lines.append(part)
    return lines


def _tables(tables: Sequence[tuple[str, Sequence[Sums]]], text: Language, width: int) -> list[str]:
    """Formats the tables below each other. They have the same columns with the same widths."""
    rows = [row for _, group in tables for row in group]
    heads = [text.gettext(HEADINGS[name]) for name in _COLUMNS]
    sizes = [
        max(cells(head), *(cells(_shown(row, name)) for row in rows), 0)
        for head, name in zip(heads, _COLUMNS, strict=True)
    ]
    while sizes and width - sum(size + GAP for size in sizes) < _LEAST_NAME:
        sizes.pop()
    longest = max((cells(name) for title, group in tables for name in (title, *_names(group))), default=0)
    room = max(0, min(width - sum(size + GAP for size in sizes), longest))
    lines = []
    for title, group in tables:
        lines += ["", _line(title, heads, sizes, room)]
        lines += [
            _line(name, [_shown(row, column) for column in _COLUMNS], sizes, room)
            for name, row in zip(_names(group), group, strict=True)
        ]
    return lines


def _names(rows: Sequence[Sums]) -> list[str]:
    return [visible(row.name) for row in rows]


def _line(name: str, values: Sequence[str], sizes: Sequence[int], room: int) -> str:
    """Formats a name and the values to its right. There are as many values as SIZES has column widths."""
    name = _cut(shorten(name, room), room)
    said = name + " " * (room - cells(name))
    for value, size in zip(values, sizes, strict=False):
        said += " " * (GAP + size - cells(value)) + value
    return said.rstrip()


def _shown(row: Sums, column: str) -> str:
    if column == "total_time_ns":
        return NANOSECONDS.text(row.time_ns)
    if column == "count":
        return f"{row.calls:,}"
    return BYTES.text(row.read_bytes if column == "read_bytes" else row.written_bytes)


def _cut(line: str, width: int) -> str:
    while cells(line) > width:
        line = line[:-1]
    return line
