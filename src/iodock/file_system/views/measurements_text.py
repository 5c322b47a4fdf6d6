"""Formats measurements for the terminal: the conditions, a table with one row per cell, and the remarks."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from iodock.file_system.health.measurements import Cell, Measurements, Protocol
from iodock.file_system.views.measurements_words import (
    busy_text,
    cache_text,
    in_common,
    operation_text,
    size_text,
    spread_text,
    test_text,
    time_text,
    value_text,
    variant_text,
)
from iodock.file_system.views.remarks_text import none_text, remark_text
from iodock.shared.language import N_, Language
from iodock.shared.text import visible

WIDTH_WITHOUT_TERMINAL = 160
MOST_ROWS = 2_000
_GAP = 2


@dataclass(frozen=True)
class _Column:
    heading: str
    text: Callable[[Cell], str]
    right: bool = True
    drop: int = 0
    """If the terminal is too narrow, the columns with the largest number are omitted first. Columns with 0
    are kept."""


def render(
    measurements: Measurements,
    text: Language,
    remarks: bool = False,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """Formats the whole text. REMARKS states whether it contains the remarks. WIDTH is the width of the
    terminal in columns, or None if the output is not a terminal."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or WIDTH_WITHOUT_TERMINAL,
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
    )
    for protocol in measurements.protocol.parts or (measurements.protocol,):
        for line in _protocol(protocol, text):
            console.print(Text(visible(line), style="dim"))
    if measurements.cells:
        console.print(_table(measurements, text, console.width))
    else:
        console.print(text.gettext(N_("no cell was measured")))
    for line in _remarks(measurements, text) if remarks else ():
        console.print(Text(line))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _protocol(protocol: Protocol, text: Language) -> list[str]:
    said = [" ".join(one for one in (protocol.tool, protocol.version) if one)]
    said += [one for one in (protocol.started, protocol.host, protocol.file_system, protocol.target) if one]
    lines = [", ".join(one for one in said if one)]
    return [*lines, *(text.gettext(N_("note: {note}"), note=note) for note in protocol.notes)]


def _remarks(measurements: Measurements, text: Language) -> list[str]:
    if measurements.remarks:
        common = in_common(measurements.cells)
        said = [f"- {remark_text(remark, text, common)}" for remark in measurements.remarks]
        return ["", text.gettext(N_("Remarks")), *said]
    return ["", none_text(measurements, text)]


def _table(measurements: Measurements, text: Language, width: int) -> Table:
    cells = measurements.cells
    common = in_common(cells)
    several = len(measurements.protocol.parts) > 1
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    if common:
        table.caption = variant_text(common)
        table.caption_justify = "left"
    shown = cells[:MOST_ROWS]
    used = [column for column in _columns(text, common, several) if any(map(column.text, shown))]
    columns = _fitting(used, shown, width)
    for column in columns:
        # Long names continue on the next line, because truncated names might look the same. Numbers are never
        # truncated.
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=column.right,
            overflow="fold",
        )
    for cell in shown:
        table.add_row(*(Text(column.text(cell)) for column in columns))
    if len(cells) > len(shown):
        table.add_row(text.gettext(N_("... {n} more; --format csv has all"), n=len(cells) - len(shown)))
    return table


def _fitting(columns: list[_Column], cells: Sequence[Cell], width: int) -> list[_Column]:
    """Leaves out the least important columns until the table is no wider than the terminal."""
    widths = {
        column.heading: max(cell_len(text) for text in (column.heading, *map(column.text, cells)))
        for column in columns
    }
    kept = list(columns)
    for column in sorted(columns, key=lambda one: -one.drop):
        if column.drop and sum(widths[one.heading] + _GAP for one in kept) - _GAP > width:
            kept.remove(column)
    return kept


def _columns(text: Language, common: dict[str, str], several: bool) -> list[_Column]:
    def heading(word: str) -> str:
        return text.gettext(word)

    return [
        _Column(heading(N_("test")), lambda cell: test_text(cell.test, text), False),
        _Column(heading(N_("operation")), lambda cell: operation_text(cell.operation, text), False),
        _Column(heading(N_("how")), lambda cell: variant_text(cell.variant, common), False, 2),
        _Column(heading(N_("size")), lambda cell: size_text(cell.size_bytes)),
        _Column(heading(N_("processes")), lambda cell: _count(cell.processes)),
        _Column(heading(N_("nodes")), lambda cell: _count(cell.nodes), drop=5),
        _Column(heading(N_("value")), lambda cell: value_text(cell.value, cell.unit)),
        _Column(heading(N_("spread")), lambda cell: spread_text(cell.spread)),
        _Column(heading(N_("repeats")), lambda cell: _count(cell.repeats), drop=4),
        _Column(heading(N_("best")), _best, drop=9),
        _Column("p50", lambda cell: _time(cell, "p50"), drop=8),
        _Column("p99", lambda cell: _time(cell, "p99"), drop=3),
        _Column(heading(N_("longest")), lambda cell: _time(cell, "max"), drop=7),
        _Column(heading(N_("cache")), lambda cell: _cache(cell, text), False, 1),
        _Column(heading(N_("other load")), lambda cell: busy_text(cell, text), False, 1),
        _Column(heading(N_("from")), lambda cell: visible(_file(cell)) if several else "", False, 6),
    ]


def _time(cell: Cell, name: str) -> str:
    return time_text(getattr(cell.latency_ns, name)) if cell.latency_ns else ""


def _file(cell: Cell) -> str:
    place = (cell.source or "").rsplit("/", 1)[-1]
    name, colon, line = place.rpartition(":")
    return name if colon and line.isdigit() else place


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _best(cell: Cell) -> str:
    return value_text(cell.best, cell.unit) if cell.best != cell.value else ""


def _cache(cell: Cell, text: Language) -> str:
    return cache_text(cell.cache, text)
