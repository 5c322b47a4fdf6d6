"""For every call its costliest files, in one answer: the second step of the drill-down, for the report."""

from __future__ import annotations

from iodock.analyses.base import Analysis, Option, Request, answer, select
from iodock.answer import Answer, Column
from iodock.relations.grouping import CELLS, MEASURES, Grouping, cells_sql, groups_sql
from iodock.relations.keys import KEYS, Key
from iodock.store import Store

# By number, not by name: names come in only for the few rows that are left.
_FILE = Key("file_id", "file", "{f}.file_id", "int", "files", "the file's number")
_GROUPING = Grouping((KEYS["call"], _FILE))
_SHOWN = (
    "count", "success", "failed", "total_time_ns", "mean_time_ns", "min_time_ns", "max_time_ns",
    "sys_cpu_time_ns", "read_bytes", "written_bytes",
)  # fmt: skip
_MEASURES = tuple(column for column in MEASURES if column.name in _SHOWN)
_COLUMNS = (
    KEYS["call"].column,
    KEYS["file"].column,
    Column(
        "others", "bool", None, "detail", "the row stands for the call's files beyond the first N together"
    ),
    Column("file_count", "int", "files", "measure", "files that the row stands for"),
    *_MEASURES,
)


def run(store: Store, asked: Request) -> Answer:
    """The first N files of every call, and what the others add up to."""
    selection = select(store, asked.filters)
    store.keep(CELLS, cells_sql(_GROUPING, selection))
    table = store.table(_sql(int(asked.options["top"])))
    return answer(
        "call_files", "Files of every call", store, asked, table, _COLUMNS, selection, keys=("call", "file")
    )


def _sql(top: int) -> str:
    """Files beyond the first N are one group per call; a call with both ends among them counts at each."""
    sums = ("count", "success", "failed", "total_time_ns", "sys_cpu_time_ns", "read_bytes", "written_bytes")
    summed = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in sums)
    return f"""WITH g AS ({groups_sql(_GROUPING)}), ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY call ORDER BY total_time_ns DESC NULLS LAST, count DESC, file_id) AS place FROM g
)
SELECT r.call, n.name AS file, place > {top} AS others,
  count(*) AS file_count, {summed},
  CAST(sum(total_time_ns) AS DOUBLE) / nullif(sum(count), 0) AS mean_time_ns,
  min(min_time_ns) AS min_time_ns, max(max_time_ns) AS max_time_ns
FROM ranked r LEFT JOIN files n ON n.file_id = r.file_id AND r.place <= {top}
GROUP BY r.call, n.name, least(place, {top} + 1), place > {top}
ORDER BY r.call, others, min(place)"""


ANALYSIS = Analysis(
    name="call_files",
    title="Files of every call",
    doc="""For every system call the files on which it cost most, and the rest of its files as one row. It is
what `summary --by call,file` says, cut to the first N files of each call.""",
    columns=_COLUMNS,
    run=run,
    options=(Option("top", "int", 20, "files of each call"),),
    examples=("iodock show call_files run.iodock --top 5",),
    hidden=True,
)
