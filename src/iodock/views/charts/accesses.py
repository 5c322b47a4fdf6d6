"""Prepares single accesses for drawing: direction, place in time, and a grid where there are too many for dots.

Everything that is as long as the run stays in Arrow: ten million accesses become at most a few thousand cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from iodock.answer import Answer
from iodock.views.charts.clock import run_start
from iodock.views.charts.options import ChartOptions
from iodock.views.charts.source import CannotDraw, extent, has, need_rows

#: Up to here each access is drawn; above, a grid shows how many begin in each cell.
MOST_POINTS = 2000
COLUMNS, ROWS = 160, 90
#: Upper bounds of the shades of a grid, in accesses for each cell; the last shade has no bound.
SHADES = (1, 10, 100)
#: If the first access comes after this share of the run, the time axis begins with it.
_LATE = 0.7

_READ_CALLS = r"^_?(p?read|recv|sendfile|copy_file_range|splice|tee|fread|get(msg|pmsg))"
_WRITE_CALLS = r"^_?(p?write|send|fwrite|put(msg|pmsg))"


@dataclass(frozen=True, slots=True)
class Accesses:
    """Accesses with a place on the picture.

    table: at (ns since origin), y (the value drawn), duration (ns, null if unknown), bytes (null if unknown),
    direction ("read" or "write"), call. origin: the clock's ns at 0, which is `later` ns after the run's start.
    end: where the axis ends. hidden: accesses without a time or value. files: how many they lie in.
    """

    table: pa.Table
    origin: float
    later: float
    end: float
    hidden: int
    files: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of neighbouring grid cells with the same direction and shade: from `left` up to `right`."""

    left: int
    right: int
    row: int
    direction: str
    shade: int
    count: int


def select(answer: Answer, options: ChartOptions, value: str, what: str) -> Accesses:
    """The reads and writes of an answer that have a time stamp and a `value` (a column's name).

    Raises CannotDraw, with the reason, if there is none.
    """
    need_rows(answer)
    table = _with_direction(answer)
    moving = table.filter(pc.is_valid(table.column("direction")))
    for direction in ("read", "write"):
        if not options.keeps(direction):
            moving = moving.filter(pc.not_equal(moving.column("direction"), direction))
    if moving.num_rows == 0:
        wanted = " or ".join(options.only) or "read or write"
        raise CannotDraw(f"no {wanted} in this selection")
    shown = moving.filter(pc.and_(pc.is_valid(moving.column("ts")), pc.is_valid(moving.column(value))))
    around = extent(shown.column("ts"))
    if around is None:
        raise CannotDraw(f"none of the {moving.num_rows:,} reads and writes has {what}")
    origin, last = run_start(answer, around[0]), _latest(shown, around[1])
    later = around[0] - origin
    if later < _LATE * (last - origin):
        later = 0.0
    origin += later
    return Accesses(
        table=_placed(shown, value, origin),
        origin=origin,
        later=later,
        end=max((last - origin) * 1.01, 1.0),
        hidden=moving.num_rows - shown.num_rows,
        files=_file_count(shown),
    )


def _with_direction(answer: Answer) -> pa.Table:
    """The answer's table with `direction` and `bytes`, from the call's name and side where they are not there."""
    table = answer.table
    if not has(answer, "direction"):
        call = pc.cast(table.column("call"), pa.string())
        guessed = pc.case_when(
            pc.make_struct(
                pc.match_substring_regex(call, _WRITE_CALLS), pc.match_substring_regex(call, _READ_CALLS)
            ),
            "write",
            "read",
        )
        if has(answer, "side"):
            # Of a call with two ends, the input is read and the output written, whatever its name.
            side = pc.cast(table.column("side"), pa.string())
            guessed = pc.case_when(
                pc.make_struct(pc.equal(side, "out"), pc.equal(side, "in")), "write", "read", guessed
            )
        table = table.append_column("direction", guessed)
    if "bytes" not in table.column_names:
        result = table.column("result")
        table = table.append_column("bytes", pc.if_else(pc.greater_equal(result, 0), result, None))
    return table


def _placed(table: pa.Table, value: str, origin: float) -> pa.Table:
    # Subtracted as integers: a float64 holds an epoch in ns only to 256 ns.
    at = pc.cast(
        pc.subtract(table.column("ts"), pa.scalar(int(origin), pa.int64())), pa.float64(), safe=False
    )
    return pa.table(
        {
            "at": at,
            "y": pc.cast(table.column(value), pa.float64(), safe=False),
            "duration": pc.cast(table.column("dur"), pa.float64(), safe=False),
            "bytes": pc.cast(table.column("bytes"), pa.float64(), safe=False),
            "direction": pc.cast(table.column("direction"), pa.string()),
            "call": table.column("call"),
        }
    )


def _latest(table: pa.Table, last_start: float) -> float:
    ends = pc.add(pc.cast(table.column("ts"), pa.float64(), safe=False), _or_zero(table, "dur"))
    around = extent(ends)
    return max(last_start, around[1] if around else last_start)


def _or_zero(table: pa.Table, column: str) -> pa.ChunkedArray:
    return pc.fill_null(pc.cast(table.column(column), pa.float64(), safe=False), 0.0)


def _file_count(table: pa.Table) -> int:
    return pc.count_distinct(table.column("file")).as_py() if "file" in table.column_names else 1


def grid(accesses: Accesses, low: float, high: float, logarithmic: bool = False) -> list[Cell]:
    """Accesses counted in COLUMNS x ROWS cells between `low` and `high`; equal neighbours in a row are joined."""
    table = accesses.table
    column = _index(table.column("at"), 0.0, accesses.end, COLUMNS)
    y = table.column("y")
    if logarithmic:
        row = _index(pc.ln(pc.max_element_wise(y, low)), math.log(low), math.log(high), ROWS)
    else:
        row = _index(y, low, high, ROWS)
    written = pc.cast(pc.equal(table.column("direction"), "write"), pa.int64())
    cell = pc.add(pc.multiply(row, COLUMNS), column)
    counted = (
        pa.table({"cell": cell, "written": written})
        .group_by("cell")
        .aggregate([("written", "sum"), ("written", "count")])
    )
    counted = counted.sort_by("cell")
    rows = zip(
        *(counted.column(name).to_pylist() for name in ("cell", "written_sum", "written_count")), strict=True
    )
    return _joined([_cell(number, writes, total) for number, writes, total in rows])


def _cell(number: int, writes: int, total: int) -> Cell:
    row, column = divmod(number, COLUMNS)
    direction = "both" if 0 < writes < total else "write" if writes else "read"
    shade = sum(total > bound for bound in SHADES)
    return Cell(column, column + 1, row, direction, shade, total)


def _joined(cells: list[Cell]) -> list[Cell]:
    """Runs of alike cells as one: long streams become a few hundred rectangles, not fourteen thousand."""
    joined: list[Cell] = []
    for cell in cells:
        last = joined[-1] if joined else None
        if last and _alike(last, cell):
            joined[-1] = Cell(
                last.left, cell.right, cell.row, cell.direction, cell.shade, last.count + cell.count
            )
        else:
            joined.append(cell)
    return joined


def _alike(last: Cell, cell: Cell) -> bool:
    return (last.row, last.right, last.direction, last.shade) == (
        cell.row,
        cell.left,
        cell.direction,
        cell.shade,
    )


def _index(values: pa.ChunkedArray, low: float, high: float, cells: int) -> pa.ChunkedArray:
    """Number of the cell, 0 to cells - 1, that each value falls in."""
    share = pc.divide(pc.subtract(values, low), max(high - low, 1e-300))
    index = pc.cast(pc.floor(pc.multiply(share, float(cells))), pa.int64(), safe=False)
    return pc.max_element_wise(pc.min_element_wise(index, cells - 1), 0)


def numbers_of(accesses: Accesses, column: str) -> tuple[float, float]:
    """Smallest and largest value of a column of `table`; (0, 0) if none is known."""
    return extent(accesses.table.column(column)) or (0.0, 0.0)
