"""Shows where in a file, and when, bytes were transferred, on a grid of time and offset."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answered, select
from iodock.program.relations.profiled.traced import TRACED, keep_lowest, keep_traced
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

COLUMNS = (
    Column("ts", "int", "ns", "time", "start of the cell in time, ns (see `clock`)", importance="first"),
    Column("end_ts", "int", "ns", "time", "end time of the cell (exclusive)"),
    Column("offset_bytes", "int", "bytes", "key", "first offset of the cell"),
    Column(
        "end_offset_bytes",
        "int",
        "bytes",
        "detail",
        "offset after the cell; for long transfers offset after their last cell",
    ),
    Column("direction", "str", None, "key", "read or write"),
    Column(
        "count", "int", "calls", "measure", "number of transfers that begin in the cell", importance="first"
    ),
    Column("bytes", "int", "bytes", "measure", "bytes that the calls transferred", importance="first"),
    Column("total_time_ns", "int", "ns", "measure", "time inside the calls, over all threads"),
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per direction, cell in which transfers begin and cell in which they end.
    Combinations without a transfer have no row."""
    source, where, notes = _source(store, asked)
    across, up = asked.options["time_cells"], asked.options["offset_cells"]
    store.keep("extent", extent_sql(source, where, across, up))
    table = store.table(cells_sql(source, where))
    return answered("offsets", "Offset over time", store, asked, table, COLUMNS, notes)


_TS = "coalesce(e.ts, e.end_ts)"
_PLACED = ("e.direction IN (1, 2)", "e.bytes IS NOT NULL", "e.offset_bytes IS NOT NULL", f"{_TS} IS NOT NULL")


def _source(store: Store, asked: Request) -> tuple[str, str, tuple[str, ...]]:
    """Returns the SQL clauses FROM and WHERE for transfers with a known offset (table alias `e`), and the
    notes for the answer."""
    if store.manifest.profiles_only:
        notes = (*keep_traced(store, asked.filters), *keep_lowest(store))
        return f"FROM {TRACED} e", f"WHERE {' AND '.join(_PLACED)}", notes
    selection = select(store, asked.filters)
    return f"FROM events e {selection.joins}", selection.and_where(*_PLACED), selection.notes


def extent_sql(source: str, where: str, across: int, up: int) -> str:
    """Returns the SQL for the origin of the grid and for the size of its cells."""
    return f"""SELECT low_ts, low_offset, greatest((high_ts - low_ts) // {across} + 1, 1) AS width,
  greatest((high_offset - low_offset) // {up} + 1, 1) AS height FROM (
  SELECT min({_TS}) AS low_ts, max({_TS}) AS high_ts, min(e.offset_bytes) AS low_offset,
    max(e.offset_bytes + greatest(e.bytes - 1, 0)) AS high_offset {source} {where}) z"""


def cells_sql(source: str, where: str) -> str:
    """Returns the SQL that counts transfers by the cell in which they begin and the cell in which they end. A
    transfer across several cells thus stays apart from transfers that begin in the same cell and end
    there."""
    return f"""WITH g AS (SELECT ({_TS} - x.low_ts) // x.width AS at,
    (e.offset_bytes - x.low_offset) // x.height AS place,
    (e.offset_bytes + greatest(e.bytes - 1, 0) - x.low_offset) // x.height AS last, e.direction,
    count(*) AS count, CAST(sum(e.bytes) AS BIGINT) AS bytes, CAST(sum(e.dur) AS BIGINT) AS total_time_ns
  {source} CROSS JOIN extent x {where} GROUP BY 1, 2, 3, 4)
SELECT x.low_ts + g.at * x.width AS ts, x.low_ts + (g.at + 1) * x.width AS end_ts,
  x.low_offset + g.place * x.height AS offset_bytes,
  x.low_offset + (g.last + 1) * x.height AS end_offset_bytes,
  CASE g.direction WHEN 1 THEN 'read' ELSE 'write' END AS direction, g.count, g.bytes, g.total_time_ns
FROM g CROSS JOIN extent x ORDER BY 1, 3, 4, 5"""


ANALYSIS = Analysis(
    name="offsets",
    title="Offset over time",
    doc="""Reads and writes on a grid of time and offset, so that ten million of them stay readable. Choose
one file with --file. A transfer that is longer than a cell is in a row that reaches to its end. Transfers
with an unknown offset (sockets, appends) are left out; `accesses` has each call. For Darshan's logs these are
the accesses that DXT kept.""",
    columns=COLUMNS,
    run=run,
    profiles=True,
    options=(
        Option("time_cells", "int", 400, "number of cells along the time"),
        Option("offset_cells", "int", 200, "number of cells along the offset"),
    ),
    examples=("iodock show offsets run.iodock --file out.dat --format png -o offsets.png",),
)
