"""Formats an answer as a table for people. Values have readable units. In a terminal, the least important
columns are left out if the table is too wide."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from rich.cells import cell_len, chop_cells

from iodock.shared.answer import Answer, Column
from iodock.shared.clock import clock_text
from iodock.shared.language import N_, Language, language_in
from iodock.shared.tables.rows import other_row
from iodock.shared.text import visible
from iodock.shared.units import BYTES, BYTES_PER_SECOND, COUNT, NANOSECONDS

ENGLISH = language_in("en")
MOST_ROWS = 1_000
NARROWEST_NAME = 12
WIDEST_TEXT = 40
"""Largest width of texts that are not names, in a terminal."""
_NARROWEST_TERMINAL = 20
"""Serial lines and some containers report a width of 0 or 1. If the width is below this, it is not known."""
_NARROWEST_LIST = 40
"""If the terminal is narrower than this, the names of hidden columns do not fit."""
_UNITS = {"ns": NANOSECONDS, "bytes": BYTES, "bytes/s": BYTES_PER_SECOND}


@dataclass(frozen=True, slots=True)
class Shown:
    """One column with its formatted texts."""

    column: Column
    heading: str
    cells: list[str]
    right: bool

    @property
    def is_name(self) -> bool:
        """Returns whether the texts are names, such as paths. Long names are shortened in their middle, to at
        least
        NARROWEST_NAME cells."""
        return self.column.role == "key" and not self.right

    @property
    def width(self) -> int:
        return max(cell_len(self.heading), max(map(cell_len, self.cells), default=0))


def render(
    answer: Answer,
    width: int | None = None,
    colour: bool = False,
    empty_columns: bool = False,
    text: Language = ENGLISH,
) -> str:
    """Formats the table with its title and totals. WIDTH is the width of the terminal in cells. If it is
    None, all columns and texts are shown in full. EMPTY_COLUMNS keeps columns without values, because the
    user's query selected them."""
    rows = answer.table.slice(0, MOST_ROWS)
    extra = _extra_rows(answer, text)
    shown = [_shown(column, rows, answer, extra, text) for column in answer.columns]
    telling = [one for one in shown if empty_columns or _says_something(one)]
    if answer.table.num_rows == 0 and not extra:
        return text.gettext(N_("{title}: nothing to show"), title=text.told(answer.title)) + "\n"
    hidden: tuple[str, ...] = ()
    if width is None:
        kept, title = telling, text.told(answer.title)
    else:
        telling, day = _without_day(telling)
        kept = _fitting(telling, width)
        is_dated = day and any(one.column.role == "time" for one in kept)
        title = text.told(answer.title)
        title = text.listed((title, day)) if is_dated else title
        hidden = tuple(_hidden(telling, kept, width, text))
    lines = [_strong(title, colour), *_lines(kept, len(extra), colour)]
    lines += (*_below(answer, rows.num_rows, text), *hidden)
    return "\n".join(lines) + "\n"


def first_columns(answer: Answer, most: int) -> list[Shown]:
    """Returns the first MOST rows by column, formatted with units. The headings are the names of the columns
    in the Arrow table, because users of the Python API need these names."""
    rows = answer.table.slice(0, most)
    shown = ((one, _shown(one, rows, answer, (), ENGLISH)) for one in answer.columns)
    return [replace(each, heading=visible(one.name)) for one, each in shown]


def first_lines(answer: Answer, most: int, width: int) -> list[str]:
    """Formats `first_columns` as the lines of a table, with the columns that fit into WIDTH cells. The result
    is empty if the table has no rows."""
    telling = [one for one in first_columns(answer, most) if _says_something(one)]
    return list(_lines(_fitting(telling, width), 0, False)) if answer.table.num_rows else []


def terminal_width() -> int | None:
    """Returns the width of the terminal in cells. Returns None if stdout is not a terminal, or if the width
    is not known."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        return None
    if columns < _NARROWEST_TERMINAL:
        told = os.environ.get("COLUMNS", "")
        columns = int(told) if told.isdecimal() else 0
    return columns if columns >= _NARROWEST_TERMINAL else None


def column_named(word: str, columns: Iterable[Column], text: Language = ENGLISH) -> str:
    """Returns the name of the column whose name or heading is WORD. Returns WORD itself if there is no such
    column, or more than one."""
    named = [
        column.name
        for column in columns
        if word in (column.name, _heading(column, ENGLISH), _heading(column, text))
    ]
    return named[0] if len(named) == 1 else word


def headings(columns: Iterable[Column]) -> list[str]:
    """Returns the English headings of the columns."""
    return [_heading(column, ENGLISH) for column in columns]


def _extra_rows(answer: Answer, text: Language) -> list[Mapping[str, Any]]:
    totals = answer.totals
    if totals is None or answer.table.num_rows == 0 or not (set(totals.total) & {"count"}):
        return []
    first = answer.table.column_names[0]
    rows: list[Mapping[str, Any]] = []
    if totals.other is not None:
        rows.append(other_row(answer) | {first: text.gettext(N_("other"))})
    if totals.of > 1:
        rows.append(dict(totals.total) | {first: text.gettext(N_("total"))})
    return rows


def _shown(
    column: Column, rows: pa.Table, answer: Answer, extra: Iterable[Mapping[str, Any]], text: Language
) -> Shown:
    values = rows.column(column.name).to_pylist()
    values += [row.get(column.name) for row in extra]
    cells = [_cell(column, value, answer) for value in values]
    numbers = (
        column.type in ("int", "float")
        and column.role != "time"
        and column.name not in ("pid", "tid", "rank")
    )
    return Shown(column, _heading(column, text), cells, numbers)


def _heading(column: Column, text: Language) -> str:
    # Only columns that iodock defines have documentation. Others come from the user's query, and keep the
    # names that the query gave them.
    if not column.doc:
        return visible(column.name)
    return text.gettext(column.heading)


def _cell(column: Column, value: Any, answer: Answer) -> str:
    if value is None or value == []:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return visible(value) if value else "(none)"
    if column.role == "time":
        return clock_text(value, answer.clock)
    if column.type == "map":
        pairs = value.items() if isinstance(value, dict) else value
        return visible(" ".join(f"{name} {count:,}" for name, count in pairs))
    if isinstance(value, dict):
        return visible(", ".join(f"{name}: {one}" for name, one in value.items()))
    if isinstance(value, list):
        return " → ".join(visible(str(one).rsplit("/", 1)[-1]) for one in value)
    if column.name == "share" or column.name.endswith("_share"):
        return f"{value:.1%}"
    if column.unit in _UNITS:
        return _UNITS[column.unit].text(value)
    if column.type == "int" and column.unit is None:
        return str(value)
    return COUNT.text(value)


def _hidden(telling: Sequence[Shown], kept: Sequence[Shown], width: int, text: Language) -> Iterable[str]:
    """Yields a line with the headings of the columns that did not fit."""
    seen = {one.column.name for one in kept}
    names = [one.heading for one in telling if one.column.name not in seen]
    if names and width < _NARROWEST_LIST:
        yield text.ngettext("{n} hidden: --wide", "{n} hidden: --wide", len(names))
    elif names:
        line = text.ngettext(
            "{n} column hidden (--wide): {names}",
            "{n} columns hidden (--wide): {names}",
            len(names),
            names=text.listed(names),
        )
        yield line if cell_len(line) <= width else chop_cells(line, width - 1)[0] + "…"


def _without_day(shown: Sequence[Shown]) -> tuple[list[Shown], str]:
    """If all times are on the same day, returns the columns with times without the day, and the day.
    Otherwise returns the columns unchanged, and an empty text."""
    times = [cell for one in shown if one.column.role == "time" for cell in one.cells if cell]
    days = {cell.split(" ")[0] for cell in times if " " in cell}
    if len(days) != 1 or not all(" " in cell for cell in times):
        return list(shown), ""
    return [
        replace(one, cells=[cell.split(" ")[-1] for cell in one.cells]) if one.column.role == "time" else one
        for one in shown
    ], days.pop()


def _says_something(shown: Shown) -> bool:
    if shown.column.role == "key":
        return True
    return any(cell not in ("", "0") for cell in shown.cells)


def _fitting(shown: Sequence[Shown], width: int) -> list[Shown]:
    """Returns the most important columns that fit into WIDTH. Columns with names share the remaining
    width."""
    kept: list[Shown] = []
    last = 2
    for one in sorted(shown, key=lambda one: one.column.place):
        if one.column.place > last:
            # A column of this importance did not fit. Less important ones are not tried, even if they are
            # narrower.
            break
        # The names are shortened to NARROWEST_NAME only for columns of the highest importance. For others,
        # names keep at least a third of the width.
        name = NARROWEST_NAME if one.column.place == 0 else max(NARROWEST_NAME, width // 3)
        needed = sum(_narrowest(each, name) + 2 for each in (*kept, one)) - 2
        if not kept or needed <= width:
            kept.append(one)
        else:
            last = one.column.place
    return _narrowed([one for one in shown if one in kept], width)


def _narrowest(one: Shown, name: int) -> int:
    return min(one.width, name if one.is_name else _most(one))


def _most(one: Shown) -> int:
    """Returns the maximum width of a column. Only texts, lists and maps may be shortened; times and numbers
    are always shown in full."""
    return WIDEST_TEXT if one.column.type in ("str", "list", "map") else one.width


def _narrowed(shown: list[Shown], width: int) -> list[Shown]:
    """Shortens texts so that the table fits into WIDTH. Columns with names share the width that the other
    columns leave."""
    names = sorted((one for one in shown if one.is_name), key=lambda one: one.width)
    rest = [one for one in shown if not one.is_name]
    spare = width - sum(_narrowest(one, width) for one in rest) - 2 * (len(shown) - 1)
    limits = {one.column.name: _most(one) for one in rest}
    for at, one in enumerate(names):
        fair = max(NARROWEST_NAME, spare // (len(names) - at))
        limits[one.column.name] = min(one.width, fair)
        spare -= limits[one.column.name]
    return [
        replace(one, cells=[elided(cell, limits[one.column.name]) for cell in one.cells]) for one in shown
    ]


def elided(text: str, width: int) -> str:
    """Shortens a text to at most WIDTH cells. Its middle is left out, because the beginning and the end of a
    path contain most information."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) * 2 // 3
    head = width - 1 - tail
    end = _last_cells(text, tail)
    start = chop_cells(text, head)[0] if head > 0 else ""
    return f"{start}…{end}"


def _last_cells(text: str, width: int) -> str:
    """Returns the longest end of TEXT that fits into WIDTH cells."""
    at, used = len(text), 0
    while at > 0 and (used := used + cell_len(text[at - 1])) <= width:
        at -= 1
    return text[at:]


def _lines(shown: Sequence[Shown], extra: int, colour: bool) -> Iterable[str]:
    widths = [one.width for one in shown]
    heading = "  ".join(
        _padded(one.heading, width, one.right) for one, width in zip(shown, widths, strict=True)
    )
    yield _strong(heading.rstrip(), colour)
    count = len(shown[0].cells) if shown else 0
    for row in range(count):
        if extra and row == count - extra:
            yield "─" * min(sum(widths) + 2 * (len(widths) - 1), 400)
        cells = (_padded(one.cells[row], width, one.right) for one, width in zip(shown, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space


def _strong(text: str, colour: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colour else text


def _below(answer: Answer, shown: int, text: Language) -> Iterable[str]:
    if answer.totals is not None and answer.totals.shown < answer.totals.of:
        kept = answer.totals
        # The nouns are English names of keys, such as `files`, and are not translated, so other languages get
        # a sentence without a noun.
        n_of = text.gettext(N_("{n} of {of}"), n=f"{kept.shown:,}", of=f"{kept.of:,}")
        yield kept.sentence if text.code == "en" else n_of
    if shown < answer.table.num_rows:
        rows = N_("the first {shown} of {n} rows; --format csv has all")
        yield text.gettext(rows, shown=f"{shown:,}", n=f"{answer.table.num_rows:,}")
