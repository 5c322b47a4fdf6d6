"""Shows where and when each of several files was read and written. Accesses are counted in cells of time and
offset, so the answer stays small however many accesses there are."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations.keys import KEYS
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

_COLUMNS = (
    KEYS["file"].column,
    Column("low_bytes", "int", "bytes", "detail", "lowest offset accessed in the file"),
    Column(
        "high_bytes",
        "int",
        "bytes",
        "detail",
        "highest offset accessed in the file, plus the size of that access",
    ),
    Column("time_bin", "int", None, "time", "number of the time bin from the start of the run"),
    Column("offset_bin", "int", None, "detail", "number of the offset bin from `low_bytes`"),
    Column("read_count", "int", "calls", "measure", "reads that began in this cell"),
    Column("write_count", "int", "calls", "measure", "writes that began in this cell"),
    Column(
        "start_ns",
        "int",
        "ns",
        "detail",
        "start since that of the run, for an access that is alone in its cell",
    ),
    Column("offset_bytes", "int", "bytes", "detail", "lowest offset in the cell"),
    Column("size_bytes", "int", "bytes", "detail", "largest access of the cell"),
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per file and cell of time and offset that contains an access."""
    selection = select(store, asked.filters)
    where = selection.and_where(
        "e.offset_bytes IS NOT NULL", "e.direction IN (1, 2)", "e.bytes IS NOT NULL", f"{_AT} IS NOT NULL"
    )
    source = f"FROM events e {selection.joins}"
    store.keep(
        "file_extents",
        f"""SELECT e.file_id, min(e.offset_bytes) AS low, max(e.offset_bytes + e.bytes) AS high
{source} {where} GROUP BY 1""",
    )
    table = store.table(_sql(store, asked, source, where))
    return answer(
        "file_offsets", "Offsets over time by file", store, asked, table, _COLUMNS, selection, keys=("file",)
    )


_AT = "coalesce(e.ts, e.end_ts)"


def _sql(store: Store, asked: Request, source: str, where: str) -> str:
    span = max(1, store.manifest.wall_ns or 1)
    times, places = int(asked.options["time_bins"]), int(asked.options["offset_bins"])
    start = store.manifest.first_ts or 0
    return f"""WITH cells AS (
  SELECT e.file_id, r.low AS low_bytes, r.high AS high_bytes,
    CAST(greatest(0, least({times - 1}, floor(CAST({_AT} - {start} AS DOUBLE) * {times} / {span}))) AS BIGINT)
      AS time_bin,
    CAST(least({places - 1},
      floor(CAST(e.offset_bytes - r.low AS DOUBLE) * {places} / greatest(1, r.high - r.low))) AS BIGINT)
      AS offset_bin,
    count(*) FILTER (WHERE e.direction = 1) AS read_count,
    count(*) FILTER (WHERE e.direction = 2) AS write_count,
    min({_AT}) - {start} AS start_ns, min(e.offset_bytes) AS offset_bytes, max(e.bytes) AS size_bytes
  {source} JOIN file_extents r ON r.file_id = e.file_id {where} GROUP BY 1, 2, 3, 4, 5
)
SELECT n.name AS file, c.low_bytes, c.high_bytes, c.time_bin, c.offset_bin, c.read_count, c.write_count,
  CASE WHEN c.read_count + c.write_count = 1 THEN c.start_ns END AS start_ns, c.offset_bytes, c.size_bytes
FROM cells c JOIN files n ON n.file_id = c.file_id ORDER BY 1, 4, 5"""


ANALYSIS = Analysis(
    name="file_offsets",
    title="Offsets over time by file",
    doc="""Where in each file the reads and writes were, and when: counts per cell of a grid over the run's
time and the file's range of offsets. A cell with a single access also says exactly when that was.""",
    columns=_COLUMNS,
    run=run,
    options=(
        Option("time_bins", "int", 120, "number of cells along the time"),
        Option("offset_bins", "int", 60, "number of cells along the offsets"),
    ),
    examples=("iodock show file_offsets run.iodock --file '/data/**'",),
    hidden=True,
)
