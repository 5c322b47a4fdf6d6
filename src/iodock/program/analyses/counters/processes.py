"""Lists ranks and processes, as far as counters identify them."""

from __future__ import annotations

from iodock.program.analyses.base import Request, answered
from iodock.program.relations.profiled import operations
from iodock.program.relations.profiled.chosen import CHOSEN, choose
from iodock.program.relations.profiled.keys import key_columns
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

_KEYS = ("rank", "pid", "host", "interface")
_OWN = (
    Column("ranks", "int", None, "measure", "ranks that the row represents"),
    Column("file_count", "int", "files", "measure", "number of files that the row represents"),
)
_SUMS = ("count", "total_time_ns", "read_bytes", "written_bytes")
_ENDS = (
    Column(
        "fastest_time_ns",
        "int",
        "ns",
        "measure",
        "time of the rank with least time, for one file",
        own_heading="fastest",
    ),
    Column(
        "slowest_time_ns",
        "int",
        "ns",
        "measure",
        "time of the rank with most time, for one file",
        own_heading="slowest",
    ),
    Column("slowest_rank", "int", None, "detail", "number of that rank"),
)
_TOGETHER = (
    "the row without a rank has files that were counted for all ranks together: their sums are not "
    "divided among ranks. iodock show files has the fastest and slowest rank, and the variance, of "
    "each file"
)


def run(store: Store, asked: Request, of_calls: tuple[Column, ...]) -> Answer:
    """Returns an answer with one row per rank, process, host and interface. A row without a rank contains the
    records that all ranks share."""
    notes = list(choose(store, asked.filters))
    operations.keep_operations(store)
    if store.rows(f"SELECT 1 FROM {CHOSEN} WHERE rank IS NULL AND ranks > 1 LIMIT 1"):
        notes.append(_TOGETHER)
    sums = tuple(one for name in _SUMS for one in of_calls if one.name == name)
    columns = (*key_columns(_KEYS), *_OWN, *sums, *_ENDS)
    same = " AND ".join(f"s.{key} IS NOT DISTINCT FROM e.{key}" for key in _KEYS)
    keys = ", ".join(_KEYS)
    table = store.table(
        f"""WITH s AS (SELECT {keys}, max(o.ranks) AS ranks, {operations.FILE_COUNT} AS file_count,
    {operations.MEASURES_SQL} FROM {operations.OPERATIONS} o GROUP BY ALL),
e AS (SELECT {keys}, min(fastest_time_ns) AS fastest_time_ns, max(slowest_time_ns) AS slowest_time_ns,
    arg_max(slowest_rank, slowest_time_ns) AS slowest_rank FROM {CHOSEN} GROUP BY ALL)
SELECT {_listed(_KEYS)}, s.ranks, s.file_count, {_listed(_SUMS)},
  e.fastest_time_ns, e.slowest_time_ns, e.slowest_rank
FROM s JOIN e ON {same} ORDER BY s.rank NULLS FIRST, s.pid, s.host, s.interface"""
    )
    return answered("processes", "Ranks and processes", store, asked, table, columns, notes, keys=_KEYS)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"s.{name}" for name in names)
