"""An answer as a table for the terminal: human units, and as many columns as fit, the most telling first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from rich.cells import cell_len, chop_cells

from iodock.answer import Answer, Column
from iodock.views.charts.units import BYTES, BYTES_PER_SECOND, COUNT, NANOSECONDS
from iodock.views.charts.words import visible
from iodock.views.clock import clock_text
from iodock.views.rows import other_row

MOST_ROWS = 1_000
NARROWEST_KEY = 12
WIDTH_WITHOUT_TERMINAL = 160
# What is left out first where the terminal is narrow; what is not named here goes before all of it.
TELLING = (
    *("count", "brought_bytes", "amplification"),
    *("total_time_ns", "failed", "read_bytes", "written_bytes", "max_time_ns", "sys_cpu_time_ns"),
    *("share", "mean_time_ns", "file_count", "mean_size_bytes", "commands", "how", "parent_pid", "exit_code"),
    *(
        "exit_signal",
        "access_pattern",
        "dur",
        "requested_bytes",
        "result",
        "offset_bytes",
        "start_ts",
        "end_ts",
    ),
    *(
        "kind",
        "size_bytes",
        "opens",
        "handles",
        "fs_type",
        "read_count",
        "write_count",
        "read_time_ns",
        "write_time_ns",
    ),
    *("touched_share", "touched_bytes", "maps", "faults", "ranges", "pattern"),
    *("success", "min_time_ns", "errnos", "io_count", "bytes_per_s", "calls_per_s", "no_result", "mount"),
    *("first_ts", "last_ts"),
)
_HEADINGS = {
    "total_time_ns": "time",
    "mean_time_ns": "mean",
    "min_time_ns": "shortest",
    "max_time_ns": "longest",
    "sys_cpu_time_ns": "system CPU",
    "read_bytes": "read",
    "written_bytes": "written",
    "mean_size_bytes": "mean size",
    "min_size_bytes": "smallest",
    "max_size_bytes": "largest",
    "upper_bytes": "up to",
    "read_time_ns": "read time",
    "write_time_ns": "write time",
    "dur": "time",
    "offset_bytes": "offset",
    "requested_bytes": "requested",
    "size_bytes": "size",
    "cpu_user_ns": "user CPU",
    "cpu_system_ns": "system CPU",
    "start_ts": "start",
    "end_ts": "end",
}
_UNITS = {"ns": NANOSECONDS, "bytes": BYTES, "bytes/s": BYTES_PER_SECOND}


@dataclass(frozen=True, slots=True)
class Shown:
    """One column, as text."""

    column: Column
    heading: str
    cells: list[str]
    right: bool

    @property
    def width(self) -> int:
        return max(cell_len(self.heading), max(map(cell_len, self.cells), default=0))


def render(
    answer: Answer, width: int | None = None, colour: bool = False, empty_columns: bool = False
) -> str:
    """The table with its heading and what it adds up to, lines ended. WIDTH is in cells; None is
    WIDTH_WITHOUT_TERMINAL. EMPTY_COLUMNS keeps columns without values, which a query has named."""
    rows = answer.table.slice(0, MOST_ROWS)
    extra = _extra_rows(answer)
    shown = [_shown(column, rows, answer, extra) for column in answer.columns]
    telling = [one for one in shown if empty_columns or _says_something(one)]
    kept = _fitting(telling, width or WIDTH_WITHOUT_TERMINAL)
    if answer.table.num_rows == 0 and not extra:
        return f"{answer.title}: nothing to show\n"
    lines = [_strong(answer.title, colour), *_lines(kept, len(extra), colour)]
    lines += _below(answer, rows.num_rows)
    lines += _left_out(telling, kept, width or WIDTH_WITHOUT_TERMINAL)
    return "\n".join(lines) + "\n"


def first_columns(answer: Answer, most: int) -> list[Shown]:
    """The first MOST rows with human units, under the columns' own names: for who goes on with the table in
    Python."""
    rows = answer.table.slice(0, most)
    return [replace(_shown(one, rows, answer, ()), heading=visible(one.name)) for one in answer.columns]


def first_lines(answer: Answer, most: int, width: int) -> list[str]:
    """`first_columns` as lines of a table, as many as fit into WIDTH cells. Empty without rows."""
    telling = [one for one in first_columns(answer, most) if _says_something(one)]
    return list(_lines(_fitting(telling, width), 0, False)) if answer.table.num_rows else []


def terminal_width() -> int | None:
    """The terminal's width; None where there is none."""
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        columns = os.environ.get("COLUMNS", "")
        return int(columns) if columns.isdigit() and int(columns) > 0 else None


def _extra_rows(answer: Answer) -> list[Mapping[str, Any]]:
    totals = answer.totals
    if totals is None or answer.table.num_rows == 0 or not (set(totals.total) & {"count"}):
        return []
    first = answer.table.column_names[0]
    rows: list[Mapping[str, Any]] = []
    if totals.other is not None:
        rows.append(other_row(answer) | {first: "other"})
    if totals.of > 1:
        rows.append(dict(totals.total) | {first: "total"})
    return rows


def _shown(column: Column, rows: pa.Table, answer: Answer, extra: Iterable[Mapping[str, Any]]) -> Shown:
    values = rows.column(column.name).to_pylist()
    values += [row.get(column.name) for row in extra]
    cells = [_cell(column, value, answer) for value in values]
    numbers = (
        column.type in ("int", "float")
        and column.role != "time"
        and column.name not in ("pid", "tid", "rank")
    )
    # Columns without a meaning of ours are called what the asker called them.
    named = _HEADINGS.get(column.name, column.name.replace("_", " ")) if column.doc else visible(column.name)
    return Shown(column, named, cells, numbers)


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


def _left_out(telling: Sequence[Shown], kept: Sequence[Shown], width: int) -> Iterable[str]:
    """A line that names the columns for which there was no room."""
    seen = {one.column.name for one in kept}
    names = [visible(one.column.name) for one in telling if one.column.name not in seen]
    if names:
        do = "column does" if len(names) == 1 else "columns do"
        line = f"{len(names)} {do} not fit, --format csv has all: {', '.join(names)}"
        yield line if cell_len(line) <= width else chop_cells(line, width - 1)[0] + "…"


def _says_something(shown: Shown) -> bool:
    if shown.column.role == "key":
        return True
    return any(cell not in ("", "0") for cell in shown.cells)


def _fitting(shown: Sequence[Shown], width: int) -> list[Shown]:
    """The most telling columns that fit; names of files take what is left, but at least NARROWEST_KEY."""
    keys = [one for one in shown if one.column.role in ("key", "time") and one.column.name not in TELLING]
    keys = keys or list(shown[:1])
    rest = [one for one in shown if one not in keys]
    rest.sort(key=lambda one: TELLING.index(one.column.name) if one.column.name in TELLING else len(TELLING))
    keys = _fitting_keys(keys, width)
    reserved = max(NARROWEST_KEY, width // 3)
    used = sum(min(one.width, reserved) + 2 for one in keys)
    kept = list(keys)
    for one in rest:
        needed = min(one.width, 40) + 2
        if used + needed <= width + 2:
            kept.append(one)
            used += needed
    ordered = [one for one in shown if one in kept]
    return _narrowed(ordered, keys, width)


def _fitting_keys(keys: Sequence[Shown], width: int) -> list[Shown]:
    """The keys that fit at their narrowest, those that tell most first."""
    first = ("file", "call", "ts")
    ranked = sorted(
        keys, key=lambda one: first.index(one.column.name) if one.column.name in first else len(first)
    )
    kept: list[Shown] = []
    used = 0
    for one in ranked:
        used += min(one.width, NARROWEST_KEY) + 2
        if kept and used > width + 2:
            break
        kept.append(one)
    return [one for one in keys if one in kept]


def _narrowed(shown: list[Shown], keys: list[Shown], width: int) -> list[Shown]:
    spare = width - sum(min(one.width, 40) if one not in keys else 0 for one in shown) - 2 * (len(shown) - 1)
    limits = {one.column.name: 40 for one in shown if one not in keys}
    flexible = sorted(keys, key=lambda one: one.width)
    for at, one in enumerate(flexible):
        fair = max(NARROWEST_KEY, spare // (len(flexible) - at))
        limits[one.column.name] = min(one.width, fair)
        spare -= limits[one.column.name]
    return [
        Shown(
            one.column, one.heading, [elided(cell, limits[one.column.name]) for cell in one.cells], one.right
        )
        for one in shown
    ]


def elided(text: str, width: int) -> str:
    """The text in at most WIDTH cells; what is cut is the middle, since the ends of a path say most."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) * 2 // 3
    head = width - 1 - tail
    end = text
    while cell_len(end) > tail:
        end = end[1:]
    start = chop_cells(text, head)[0] if head > 0 else ""
    return f"{start}…{end}"


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


def _below(answer: Answer, shown: int) -> Iterable[str]:
    if answer.totals is not None and answer.totals.shown < answer.totals.of:
        yield answer.totals.sentence
    if shown < answer.table.num_rows:
        yield f"the first {shown:,} of {answer.table.num_rows:,} rows; --format csv has all"
