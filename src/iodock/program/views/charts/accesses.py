"""Prepares single accesses for drawing: their direction and position in time, and a grid of counts if there
are too many accesses.

Columns as long as the run stays in Arrow and are read twice, piece by piece: first for the range of times and
values, then to count accesses. Ten million accesses become at most a few thousand cells, without a second
copy in memory.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from iodock.program.views.charts.clock import run_start
from iodock.program.views.charts.source import CannotDraw, extent, need_rows
from iodock.shared.answer import Answer
from iodock.shared.charts.options import ChartOptions

# Up to this number of accesses, the chart draws each of them. If there are more, a grid shows how many begin
# in each cell.
MOST_POINTS = 2000
COLUMNS, ROWS = 160, 90
# Upper bounds of the shades of a grid, in accesses per cell. The last shade has no upper bound.
SHADES = (1, 10, 100)
# If the first access comes after this share of the run, the time axis starts at the first access.
_LATE = 0.7
_PIECE_ROWS = 1 << 19

# These map the name of a direction, or the side of a call with two ends, to whether it is a write.
_DIRECTIONS: dict[str | None, bool] = {"read": False, "write": True}
_SIDES: dict[str | None, bool] = {"in": False, "out": True}
_READ_CALLS = re.compile(
    r"_?(p?read(?!link|ahead)|recv|sendfile|copy_file_range|splice|tee|fread|get(p?msg)$)"
)
_WRITE_CALLS = re.compile(r"_?(p?write|send(?!file)|fwrite|put(p?msg)$)")


@dataclass(frozen=True, slots=True)
class Source:
    """Describes where the accesses come from: an answer, the requested directions, and the column to draw."""

    answer: Answer
    directions: tuple[str, ...]
    value: str

    def pieces(self) -> Iterator[pa.Table]:
        """Yields the reads and writes, piece by piece, with the columns ts, took, bytes, writes (bool),
        call and y. The value y may be null."""
        there = set(self.answer.table.column_names)
        wanted = ("ts", "end_ts", "dur", "call", "side", "direction", "result", "bytes", self.value)
        table = self.answer.table.select([name for name in dict.fromkeys(wanted) if name in there])
        for batch in table.to_batches(max_chunksize=_PIECE_ROWS):
            yield self._moving(batch)

    def _moving(self, batch: pa.RecordBatch) -> pa.Table:
        names = batch.schema.names
        writes = _writes(batch)
        result = batch["bytes"] if "bytes" in names else batch["result"]
        kept = pc.and_(pc.is_valid(writes), pc.fill_null(pc.greater_equal(result, 0), False))
        if "write" not in self.directions:
            kept = pc.and_not(kept, pc.fill_null(writes, False))
        if "read" not in self.directions:
            kept = pc.and_(kept, pc.fill_null(writes, False))
        # A source that records only the ends of calls (truss) has no start times. The end of a call is then
        # the best approximation of its start.
        stamps = pc.coalesce(batch["ts"], batch["end_ts"]) if "end_ts" in names else batch["ts"]
        value = result if self.value == "bytes" else batch[self.value]
        table = pa.table(
            {
                "ts": pc.cast(stamps, pa.int64()),
                "took": _float(batch["dur"]),
                "bytes": _float(result),
                "writes": writes,
                "call": batch["call"],
                "y": _float(value),
            }
        )
        return table.filter(kept)


@dataclass(frozen=True, slots=True)
class Span:
    """Describes the displayed time. `origin` is the time at the axis's 0, in the clock's ns; it is `later`
    ns after the run's start. `end` is the length of the axis."""

    origin: float
    later: float
    end: float


@dataclass(frozen=True, slots=True)
class Accesses:
    """Holds the accesses that can be placed in the picture.

    `low` and `high` are the smallest and largest value to draw. `count` is the number of accesses with a
    position, `hidden` that of accesses without a time or value. `few` has the accesses themselves (columns as
    in `Source.pieces`), if there are at most MOST_POINTS.
    """

    source: Source
    span: Span
    low: float
    high: float
    count: int
    hidden: int
    few: pa.Table | None


@dataclass(frozen=True, slots=True)
class Cell:
    """Describes neighbouring grid cells of one row with the same direction and shade, from column `left`
    up to `right`."""

    left: int
    right: int
    row: int
    direction: str
    shade: int
    count: int


def select(answer: Answer, options: ChartOptions, value: str, missing: str) -> Accesses:
    """Returns the reads and writes of an answer that have a time stamp and a `value` (a column's name, or
    `bytes`).

    Raises CannotDraw, with the reason, if there is none.
    """
    need_rows(answer)
    source = Source(answer, tuple(name for name in ("read", "write") if options.keeps(name)), value)
    moving = count = 0
    kept: list[pa.Table] = []
    limits: list[tuple[float, float, float, float, float]] = []
    for piece in source.pieces():
        moving += piece.num_rows
        placed = _placed(piece)
        count += placed.num_rows
        if placed.num_rows:
            limits.append(_limits(placed))
        kept = [*kept, placed] if count <= MOST_POINTS else []
    if moving == 0:
        raise CannotDraw(f"no {' or '.join(source.directions) or 'access'} in this selection")
    if count == 0:
        raise CannotDraw(missing.format(moving=f"{moving:,}"))
    firsts, lasts, ends, lows, highs = zip(*limits, strict=True)
    span = span_of(answer, min(firsts), max(*lasts, *ends))
    few = pa.concat_tables(kept) if count <= MOST_POINTS else None
    return Accesses(source, span, min(lows), max(highs), count, moving - count, few)


def span_of(answer: Answer, first: float, last: float) -> Span:
    """Makes the time axis for events from `first` to `last`, which are times of the source's clock in ns."""
    origin = run_start(answer, first)
    later = first - origin
    later = later if later >= _LATE * (last - origin) else 0.0
    return Span(origin + later, later, max((last - origin - later) * 1.01, 1.0))


def _placed(piece: pa.Table) -> pa.Table:
    return piece.filter(pc.and_(pc.is_valid(piece.column("ts")), pc.is_valid(piece.column("y"))))


def _limits(piece: pa.Table) -> tuple[float, float, float, float, float]:
    """Returns the first start, last start, last end, lowest value and highest value. The piece must not be
    empty."""
    first, last = extent(piece.column("ts")) or (0.0, 0.0)
    ends = extent(pc.add(_float(piece.column("ts")), pc.fill_null(piece.column("took"), 0.0)))
    low, high = extent(piece.column("y")) or (0.0, 0.0)
    return first, last, ends[1] if ends else last, low, high


def _writes(batch: pa.RecordBatch) -> pa.Array:
    """Returns true for a write, false for a read, and null for any other call."""
    if "direction" in batch.schema.names:
        return _by_name(batch["direction"], _DIRECTIONS.get)
    writes = _by_name(batch["call"], _call_writes)
    if "side" not in batch.schema.names:
        return writes
    # A call with two ends reads from its input and writes to its output, whatever its name is.
    return pc.coalesce(_by_name(batch["side"], _SIDES.get), writes)


def _by_name(names: pa.Array, meaning: Callable[[str | None], bool | None]) -> pa.Array:
    """Returns the meaning of each name. It looks up each distinct name once, not once per row."""
    encoded = names if pa.types.is_dictionary(names.type) else pc.dictionary_encode(names)
    meanings = pa.array([meaning(name) for name in encoded.dictionary.to_pylist()], pa.bool_())
    return meanings.take(encoded.indices)


def _call_writes(call: str | None) -> bool | None:
    if call is None:
        return None
    if _WRITE_CALLS.match(call):
        return True
    return False if _READ_CALLS.match(call) else None


def _float(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.float64(), safe=False)


def since(span: Span, stamps: pa.ChunkedArray) -> pa.ChunkedArray:
    """Converts time stamps to ns since the axis's 0. It subtracts them as integers, because a float64
    represents times since 1970 in ns only in steps of 256 ns."""
    return _float(pc.subtract(stamps, pa.scalar(int(span.origin), pa.int64())))


def grid(accesses: Accesses, low: float, high: float, logarithmic: bool = False) -> list[Cell]:
    """Counts accesses in a grid of COLUMNS x ROWS cells for values between `low` and `high`. Neighbouring
    cells with the same direction and shade are merged."""
    total, written = Counter[int](), Counter[int]()
    for piece in accesses.source.pieces():
        for number, writes, count in _counted(accesses, _placed(piece), low, high, logarithmic):
            total[number] += count
            written[number] += writes
    return cells_of(total, written)


def cells_of(total: Counter[int], written: Counter[int]) -> list[Cell]:
    """Makes cells from the accesses and writes of each cell number (row * COLUMNS + column). Neighbouring
    cells with the same direction and shade are merged."""
    return _joined(
        [_cell(number, written[number], total[number]) for number in sorted(total) if total[number]]
    )


def counted_cells(table: pa.Table, span: Span, high: float) -> list[Cell]:
    """Converts the cells that the analysis `offsets` has counted to the cells of this grid."""
    starts, ends = (since(span, table.column(name)) for name in ("ts", "end_ts"))
    across = _reach(starts, ends, span.end, COLUMNS)
    up = _reach(_float(table.column("offset_bytes")), _float(table.column("end_offset_bytes")), high, ROWS)
    total, written = Counter[int](), Counter[int]()
    columns = (table.column(name).to_pylist() for name in ("direction", "count"))
    for over, above, direction, count in zip(across, up, *columns, strict=True):
        # If a cell is larger than those of this grid, its count is divided among the cells that it covers.
        share = math.ceil((count or 0) / (len(over) * len(above)))
        for number in (row * COLUMNS + column for row in above for column in over):
            total[number] += share
            written[number] += share if direction == "write" else 0
    return cells_of(total, written)


def _reach(starts: pa.ChunkedArray, ends: pa.ChunkedArray, high: float, cells: int) -> list[range]:
    """Divides the range from 0 to `high` into `cells` cells, and returns those that each interval covers.
    If no interval is longer than 1.5 cells, each counts in the cell of its middle."""
    middles = index(pc.divide(pc.add(starts, ends), 2.0), 0.0, high, cells).to_pylist()
    if (pc.max(pc.subtract(ends, starts)).as_py() or 0.0) * cells <= 1.5 * high:
        return [range(middle, middle + 1) for middle in middles]
    firsts = index(starts, 0.0, high, cells).to_pylist()
    lasts = index(ends, 0.0, high, cells).to_pylist()
    return [range(first, max(first + 1, last)) for first, last in zip(firsts, lasts, strict=True)]


def _counted(
    accesses: Accesses, piece: pa.Table, low: float, high: float, logarithmic: bool
) -> Iterator[tuple[int, int, int]]:
    """Yields the number of each cell with accesses, its writes and its accesses, for one piece."""
    column = index(since(accesses.span, piece.column("ts")), 0.0, accesses.span.end, COLUMNS)
    y = piece.column("y")
    if logarithmic:
        row = index(pc.ln(pc.max_element_wise(y, low)), math.log(low), math.log(high), ROWS)
    else:
        row = index(y, low, high, ROWS)
    cells = pa.table(
        {
            "cell": pc.add(pc.multiply(row, pa.scalar(COLUMNS, pa.int32())), column),
            "written": pc.cast(piece.column("writes"), pa.int32()),
        }
    )
    counted = cells.group_by("cell").aggregate([("written", "sum"), ("written", "count")])
    columns = (counted.column(name).to_pylist() for name in ("cell", "written_sum", "written_count"))
    yield from zip(*columns, strict=True)


def _cell(number: int, writes: int, total: int) -> Cell:
    row, column = divmod(number, COLUMNS)
    direction = "both" if 0 < writes < total else "write" if writes else "read"
    shade = sum(total > bound for bound in SHADES)
    return Cell(column, column + 1, row, direction, shade, total)


def _joined(cells: list[Cell]) -> list[Cell]:
    """Merges neighbouring cells that look the same. Long streams then become a few hundred rectangles
    instead of fourteen thousand."""
    joined: list[Cell] = []
    for cell in cells:
        last = joined[-1] if joined else None
        if last and _alike(last, cell):
            count = last.count + cell.count
            joined[-1] = Cell(last.left, cell.right, cell.row, cell.direction, cell.shade, count)
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


def index(values: pa.ChunkedArray, low: float, high: float, cells: int) -> pa.ChunkedArray:
    """Returns the number of the cell, 0 to cells - 1, that contains each value."""
    scaled = pc.multiply(pc.subtract(values, low), cells / max(high - low, 1e-300))
    inside = pc.min_element_wise(pc.max_element_wise(scaled, 0.0), float(cells - 1))
    return pc.cast(inside, pa.int32(), safe=False)
