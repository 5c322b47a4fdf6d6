"""Draws a flame graph in a terminal as a tree of frames. A bar shows the share of each frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len

from iodock.shared.answer import Answer
from iodock.shared.language import Language
from iodock.shared.tables.table import elided
from iodock.shared.text import visible
from iodock.shared.units import BYTES, COUNT, NANOSECONDS

_LEAST_SHARE = 0.01
_BAR = 10
_NARROWEST = 16
_EIGHTHS = " ▏▎▍▌▋▊▉"
_AMOUNTS = {"total_time_ns": NANOSECONDS, "bytes": BYTES, "count": COUNT}
_WEIGHTS = {"time": "total_time_ns", "bytes": "bytes", "calls": "count"}

Row = dict[str, Any]


def flame_text(answer: Answer, width: int | None, is_coloured: bool, text: Language) -> str:
    """Draws the tree, with a line end after each line. WIDTH is in cells; if it is None, no line is cut."""
    rows = answer.table.to_pylist()
    if not rows:
        return text.gettext("{title}: nothing to show", title=text.told(answer.title)) + "\n"
    shown = [row for row in rows if row["share"] >= _LEAST_SHARE]
    column = _column(answer, rows)
    titles = {
        "total_time_ns": text.gettext("I/O time by program, function, call and file"),
        "bytes": text.gettext("Bytes read and written by program, function, call and file"),
        "count": text.gettext("Calls by program, function, call and file"),
    }
    lines = [f"\x1b[1m{titles[column]}\x1b[0m" if is_coloured else titles[column]]
    amounts = [_AMOUNTS[column].text(row[column]) for row in shown]
    widest = max(map(cell_len, amounts), default=0)
    for row, amount, before in zip(shown, amounts, _branches(shown), strict=True):
        head = f"{row['share']:6.1%} {' ' * (widest - cell_len(amount))}{amount} {_bar(row['share'])} "
        room = None if width is None else max(_NARROWEST, width - cell_len(head))
        lines.append((head + _named(before, visible(row["frame"]), room)).rstrip())
    if len(shown) < len(rows):
        lines.append(
            text.ngettext(
                "{n} frame of less than 1 % is not shown; --format csv has it",
                "{n} frames of less than 1 % are not shown; --format csv has them",
                len(rows) - len(shown),
            )
        )
    return "\n".join(lines) + "\n"


def _column(answer: Answer, rows: Sequence[Row]) -> str:
    """Returns the name of the column whose shares are shown: the requested one, or else the first that has
    values."""
    if asked := answer.options.get("weigh"):
        return _WEIGHTS[asked]
    return next((one for one in _WEIGHTS.values() if any(row[one] for row in rows)), "count")


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    full, part = divmod(eighths, 8)
    return f"{'█' * full}{_EIGHTHS[part] if part else ''}".ljust(_BAR)


def _named(before: str, name: str, room: int | None) -> str:
    """Formats a frame's name after the lines of its branches. If there is too little space, these lines
    are cut before the name."""
    if room is None:
        return before + name
    kept = before[-max(0, room - _NARROWEST) :] if room > _NARROWEST else ""
    return kept + elided(name, room - cell_len(kept))


def _branches(rows: Sequence[Row]) -> Iterator[str]:
    """Yields the lines that lead to each name. A frame that is the only child of its parent is not
    indented further. Otherwise stacks of 30 functions would not fit on the screen."""
    inside = _children(rows)
    open_: list[tuple[int, str]] = []
    for at, row in enumerate(rows):
        while open_ and open_[-1][0] >= row["depth"]:
            open_.pop()
        around = open_[-1][1] if open_ else ""
        parent = _parent(rows, at)
        siblings = inside[parent]
        if len(siblings) == 1 or parent is None:
            yield around
            below = around
        else:
            is_last = siblings[-1] == at
            yield around + ("└ " if is_last else "├ ")
            below = around + ("  " if is_last else "│ ")
        open_.append((row["depth"], below))


def _parent(rows: Sequence[Row], at: int) -> int | None:
    return next((one for one in range(at - 1, -1, -1) if rows[one]["depth"] < rows[at]["depth"]), None)


def _children(rows: Sequence[Row]) -> dict[int | None, list[int]]:
    found: dict[int | None, list[int]] = {}
    for at in range(len(rows)):
        found.setdefault(_parent(rows, at), []).append(at)
    return found
