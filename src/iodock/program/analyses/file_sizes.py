"""Counts the accesses of several files by size in one pass over the events. The report uses this analysis."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Request, answer, select
from iodock.program.analyses.sizes import BIN
from iodock.program.relations.keys import KEYS
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

_COLUMNS = (
    KEYS["file"].column,
    Column("direction", "str", None, "key", "read or write"),
    Column(
        "upper_bytes",
        "int",
        "bytes",
        "key",
        "size up to which the bin counts; 0 and 1 byte have their own bins",
    ),
    Column("count", "int", "calls", "measure", "number of accesses with that size"),
    Column("total_time_ns", "int", "ns", "measure", "time inside the calls, summed"),
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per file, direction and bin. A bin contains the sizes from 2^n+1 to
    2^(n+1) bytes."""
    selection = select(store, asked.filters)
    table = store.table(f"""WITH b AS (
  SELECT e.file_id, e.direction, e.bytes AS size, count(*) AS n, sum(e.dur) AS time
  FROM events e {selection.joins} {selection.and_where("e.bytes IS NOT NULL", "e.direction IN (1, 2)")}
  GROUP BY 1, 2, 3
)
SELECT n.name AS file, CASE WHEN b.direction = 1 THEN 'read' ELSE 'write' END AS direction,
  {BIN} AS upper_bytes,
  CAST(sum(b.n) AS BIGINT) AS count, CAST(sum(b.time) AS BIGINT) AS total_time_ns
FROM b JOIN files n ON n.file_id = b.file_id GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""")
    return answer(
        "file_sizes",
        "Access sizes by file",
        store,
        asked,
        table,
        _COLUMNS,
        selection,
        keys=("file", "direction"),
    )


ANALYSIS = Analysis(
    name="file_sizes",
    title="Access sizes by file",
    doc="""How many reads and writes of each size every file got, in bins 2^n+1 .. 2^(n+1). It is what `sizes`
says for one file, for all the files that the filters leave.""",
    columns=_COLUMNS,
    run=run,
    examples=("iodock show file_sizes run.iodock --file '/data/**'",),
    hidden=True,
)
