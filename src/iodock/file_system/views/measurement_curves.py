"""Selects the graphs of a check-up and computes their points. `measurement_lines` draws them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from iodock.file_system.health.measurements import Cell, Remark, Unit
from iodock.file_system.health.remarks.curves import split, usable
from iodock.file_system.views.measurements_words import (
    in_common,
    operation_text,
    size_text,
    spread_text,
    test_text,
    value_text,
    variant_text,
)
from iodock.shared.language import N_, Language

_MOST_SERIES = 12
_FILES, _DIRECTORIES = "file-", "directory-"


@dataclass(frozen=True)
class Figure:
    """One graph, with its cells and the remarks on them. The position of a remark in the list, counted from
    1, is its number in the graph."""

    title: str
    cells: tuple[Cell, ...]
    remarks: tuple[Remark, ...]
    by_size: bool
    """Whether the horizontal axis is I/O size, because there is only one number of processes."""


def figures(cells: Sequence[Cell], remarks: Sequence[Remark], text: Language) -> list[Figure]:
    """Returns the graphs of a check-up. A test that transfers data has one graph per operation. The metadata
    test has one for files and one for directories. If both the number of processes and the size vary, there
    is a graph over each of them."""
    found = []
    for group in split(usable(cells), lambda cell: (cell.test, cell.unit, _panel(cell))):
        processes = {cell.processes for cell in group if cell.processes}
        sizes = {cell.size_bytes for cell in group if cell.size_bytes}
        both = len(processes) > 1 and len(sizes) > 2
        for by_size, drawn in (
            (False, len(processes) > 1),
            (True, len(sizes) > 1 and (both or len(processes) < 2)),
        ):
            if drawn:
                told = tuple(one for one in _about(group, remarks) if not both or _on_size(one) == by_size)
                title = _title(group, text)
                if both and by_size:
                    title = text.gettext(N_("{graph}, by I/O size"), graph=title)
                figure = Figure(title, tuple(group), told, by_size)
                if len({row["place"] for row in rows_of(figure, text)}) > 1:
                    found.append(figure)
    return found


def _about(group: Sequence[Cell], remarks: Iterable[Remark]) -> list[Remark]:
    operations = {cell.operation for cell in group}
    return [
        one
        for one in remarks
        if one.at.get("test") == group[0].test and one.at.get("operation") in operations
    ]


def _on_size(remark: Remark) -> bool:
    return bool({"size_bytes", "first_bytes"} & set(remark.message.values))


def _panel(cell: Cell) -> str:
    if cell.unit is Unit.BYTES_PER_S:
        return cell.operation
    return next((kind for kind in (_FILES, _DIRECTORIES) if cell.operation.startswith(kind)), "")


def _title(group: Sequence[Cell], text: Language) -> str:
    test = test_text(group[0].test, text)
    panel = _panel(group[0])
    if group[0].unit is Unit.BYTES_PER_S:
        what = operation_text(group[0].operation, text)
    else:
        what = {_FILES: text.gettext(N_("files")), _DIRECTORIES: text.gettext(N_("directories"))}.get(
            panel, ""
        )
    return text.listed(part for part in (test, what) if part)


def rows_of(figure: Figure, text: Language) -> list[dict[str, Any]]:
    """Returns one row per point with its position on the horizontal axis, the name of its line, its value and
    spread, and the numbers of the remarks about it."""
    common = in_common(figure.cells)
    by_nodes = not figure.by_size and _same_processes_on_other_nodes(figure.cells)
    series = _series(figure, text, common)
    rows = []
    for cell in figure.cells:
        if series[id(cell)] is None or _where(cell, figure.by_size) is None:
            continue
        spread = min(cell.spread or 0.0, 0.95)
        place, rank = _place(cell, figure.by_size, by_nodes)
        rows.append(
            {
                "place": place,
                "rank": rank,
                "series": series[id(cell)],
                "value": cell.value,
                "low": cell.value * (1.0 - spread),
                "high": cell.value * (1.0 + spread),
                "text": f"{value_text(cell.value, cell.unit)} {spread_text(cell.spread)}",
                "numbers": _numbers(cell, figure.remarks),
            }
        )
    return rows


def _where(cell: Cell, by_size: bool) -> int | None:
    return cell.size_bytes if by_size else cell.processes


def _same_processes_on_other_nodes(cells: Sequence[Cell]) -> bool:
    alike = split(
        cells, lambda cell: (cell.operation, cell.size_bytes, cell.processes, json.dumps(dict(cell.variant)))
    )
    return any(len({cell.nodes for cell in group}) > 1 for group in alike)


def _place(cell: Cell, by_size: bool, by_nodes: bool) -> tuple[str, float]:
    if by_size:
        return size_text(cell.size_bytes), float(cell.size_bytes or 0)
    processes = cell.processes or 0
    if by_nodes and cell.nodes:
        each = processes // cell.nodes
        return f"{cell.nodes} x {each}", cell.nodes * 1e6 + each
    return f"{processes:,}", float(processes)


def _series(figure: Figure, text: Language, common: dict[str, str]) -> dict[int, str | None]:
    """Assigns each cell to a line of the graph. Lines are distinguished by size (or by processes), by
    operation, and by other properties. More than twelve lines would be hard to distinguish, so sizes are then
    left out at regular intervals: their cells get None."""
    transfers = figure.cells[0].unit is Unit.BYTES_PER_S
    lines = sorted({line for cell in figure.cells if (line := _line(cell, figure.by_size))})
    variants = len({json.dumps(dict(cell.variant), sort_keys=True) for cell in figure.cells})
    kept = set(_spread_out(lines, max(2, _MOST_SERIES // max(variants, 1))))
    named: dict[int, str | None] = {}
    for cell in figure.cells:
        parts = [] if transfers else [operation_text(cell.operation, text)]
        line = _line(cell, figure.by_size)
        if len(lines) > 1 and line is not None:
            parts.append(
                text.gettext(N_("processes {processes}"), processes=f"{line:,}")
                if figure.by_size
                else size_text(line)
            )
        parts.append(variant_text(cell.variant, common))
        name = text.listed(part for part in parts if part) or operation_text(cell.operation, text)
        named[id(cell)] = name if line is None or line in kept else None
    return named


def _line(cell: Cell, by_size: bool) -> int | None:
    """Returns the value that distinguishes the lines of a graph: the number of processes if the horizontal
    axis shows sizes, and the size in bytes otherwise."""
    return cell.processes if by_size else cell.size_bytes


def _spread_out(sizes: Sequence[int], room: int) -> list[int]:
    if len(sizes) <= room:
        return list(sizes)
    return [sizes[round(at * (len(sizes) - 1) / (room - 1))] for at in range(room)]


def _numbers(cell: Cell, remarks: Iterable[Remark]) -> str:
    """Returns the numbers of the remarks about this point."""
    return ",".join(str(number) for number, one in enumerate(remarks, 1) if _is_point(cell, one))


def _is_point(cell: Cell, remark: Remark) -> bool:
    at, values_ = remark.at, remark.message.values
    if at.get("operation") != cell.operation:
        return False
    variant = at.get("variant")
    if isinstance(variant, dict) and variant != dict(cell.variant):
        return False
    axes = [axis for axis in ("processes", "size_bytes") if axis in values_]
    if not axes and remark.kind != "link-limit":
        return False
    return all(_agrees(getattr(cell, axis), at.get(axis)) for axis in ("processes", "size_bytes"))


def _agrees(value: int | None, said: Any) -> bool:
    if isinstance(said, list):
        # A remark may be about several points. Only the largest one is marked, because marks at all of them
        # would hide the lines.
        return bool(value == max(said))
    return bool(said is None or value == said)
