"""Lists files from counters: the operations on each file, and how evenly they are distributed over ranks."""

from __future__ import annotations

from iodock.program.analyses.base import Request, answered
from iodock.program.relations.ordering import order_sql
from iodock.program.relations.profiled import operations
from iodock.program.relations.profiled.chosen import CHOSEN, choose
from iodock.program.relations.profiled.keys import key_columns
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column, Totals

_RANKS = (
    Column("ranks", "int", None, "measure", "number of ranks for which the file was counted"),
    Column("fastest_rank", "int", None, "detail", "for all ranks together: the rank that took least time"),
    Column("fastest_time_ns", "int", "ns", "measure", "time of that rank", "last", "fastest time"),
    Column("fastest_bytes", "int", "bytes", "measure", "bytes of that rank", importance="last"),
    Column("slowest_rank", "int", None, "detail", "for all ranks together: the rank that took most time"),
    Column("slowest_time_ns", "int", "ns", "measure", "time of that rank", "last", "slowest time"),
    Column("slowest_bytes", "int", "bytes", "measure", "bytes of that rank", importance="last"),
    Column("variance_bytes", "float", None, "detail", "for all ranks together: variance of their bytes"),
    Column("variance_time_s2", "float", None, "detail", "for all ranks together: variance of their seconds"),
    Column("estimated", "str", None, "detail", "stored columns in which some value is not exact"),
)
_COUNTS = ("opens", "reads", "writes", "seeks", "stats", "syncs")
_KEYS = ("file", "interface")
_UNTOLD = {"int": "NULL::BIGINT", "str": "NULL::VARCHAR", "float": "NULL::DOUBLE"}


def columns(of_calls: tuple[Column, ...]) -> tuple[Column, ...]:
    """Returns the columns of the analysis of calls, and the interface and the columns that only counters
    have."""
    known = {column.name for column in of_calls}
    counts = (
        Column(name, "int", "calls", "measure", f"{name} that were counted", importance="last")
        for name in _COUNTS
        if name not in known
    )
    return (*key_columns(_KEYS), *of_calls[1:], *counts, *_RANKS)


def run(store: Store, asked: Request, of_calls: tuple[Column, ...]) -> Answer:
    """Returns an answer with one row per file and interface, those with most time first."""
    notes = choose(store, asked.filters)
    operations.keep_operations(store)
    shown = columns(of_calls)
    usual = ("total_time_ns DESC NULLS LAST", "count DESC NULLS LAST", "file", "interface")
    order = ", ".join(order_sql(shown, asked.options, usual))
    top = asked.options["top"]
    table = store.table(
        f"SELECT * FROM ({_rows_sql(shown)}) r ORDER BY {order}{f' LIMIT {top}' if top else ''}"
    )
    (found,) = store.rows(
        f"SELECT count(*) AS n FROM (SELECT DISTINCT file_id, file, interface FROM {CHOSEN}) z"
    )
    totals = Totals({}, None, table.num_rows, int(found["n"]), "files and interfaces")
    return answered("files", "Files", store, asked, table, shown, notes, totals, _KEYS)


def _rows_sql(shown: tuple[Column, ...]) -> str:
    """Returns the SQL for the rows. SHOWN is the columns of the answer. Columns that counters do not provide
    are empty."""
    known = {
        **_OF_PROFILES,
        "count": "s.count",
        "total_time_ns": "s.total_time_ns",
        "io_count": "s.io_count",
        "read_bytes": "s.read_bytes",
        "written_bytes": "s.written_bytes",
    }
    chosen = ", ".join(f'{known.get(one.name, _UNTOLD[one.type])} AS "{one.name}"' for one in shown)
    sums = ", ".join(f"{operations.sum_or_none('c.' + name)} AS {name}" for name in _COUNTS)
    return f"""WITH s AS (SELECT file_id, file, interface, {operations.MEASURES_SQL}
  FROM {operations.OPERATIONS} o GROUP BY 1, 2, 3),
x AS ({_ORDERS}),
p AS (SELECT c.file_id, c.file, c.interface, any_value(kind) AS kind, any_value(mount_point) AS mount,
    any_value(fs_type) AS fs_type, any_value(size_bytes) AS size_bytes, {sums},
    min(first_ts) AS first_ts, max(last_ts) AS last_ts, {_RANKS_SQL},
    {_CONSECUTIVE} AS consecutive, {_SEQUENTIAL} AS sequential
  FROM {CHOSEN} c LEFT JOIN x ON x.profile_id = c.profile_id GROUP BY 1, 2, 3)
SELECT {chosen} FROM p LEFT JOIN s ON s.file_id IS NOT DISTINCT FROM p.file_id
  AND s.file IS NOT DISTINCT FROM p.file AND s.interface = p.interface"""


# Darshan counts a consecutive access also as a sequential one, so the consecutive accesses are subtracted
# from the sequential ones. A counter that is 0 has no row in the store. A counter whose value Darshan does
# not know, as for a pipe, has a row with an empty value.
_KNOWN = "count(n.counter) = count(n.value)"
_ORDERS = f"""SELECT c.profile_id,
    CASE WHEN {_KNOWN} THEN coalesce(sum(n.value) FILTER (WHERE n.counter LIKE '%_CONSEC_%'), 0) END
      AS consecutive,
    CASE WHEN {_KNOWN} THEN coalesce(sum(n.value) FILTER (WHERE n.counter LIKE '%_SEQ_%'), 0)
      - coalesce(sum(n.value) FILTER (WHERE n.counter LIKE '%_CONSEC_%'), 0) END AS sequential
  FROM {CHOSEN} c LEFT JOIN profile_counters n ON n.profile_id = c.profile_id
    AND (n.counter LIKE '%_CONSEC_READS' OR n.counter LIKE '%_CONSEC_WRITES' OR n.counter LIKE '%_SEQ_READS'
      OR n.counter LIKE '%_SEQ_WRITES')
  WHERE c.interface IN (SELECT interface FROM profile_fields WHERE counter LIKE '%_SEQ_READS') GROUP BY 1"""
_CONSECUTIVE, _SEQUENTIAL = (operations.sum_or_none(f"x.{name}") for name in ("consecutive", "sequential"))
# Normally a file has one record for all ranks. If it has several records, the values of the fastest and
# slowest rank do not apply to all of them and stay empty.
_ONE = "CASE WHEN count(*) = 1 THEN any_value({0}) END AS {0}"
_RANKS_SQL = ", ".join(
    (
        "CASE WHEN bool_or(rank IS NULL AND ranks > 1) THEN max(ranks) "
        "ELSE nullif(count(DISTINCT rank), 0) END AS ranks",
        *(_ONE.format(one.name) for one in _RANKS[1:-1]),
        "nullif(array_to_string(list_sort(list_distinct(flatten(list(estimated)))), ', '), '') AS estimated",
    )
)
_OF_PROFILES = {
    name: f"p.{name}"
    for name in (
        *("file", "interface", "kind", "mount", "fs_type", "size_bytes", "consecutive", "sequential"),
        *_COUNTS,
        *("first_ts", "last_ts"),
        *(one.name for one in _RANKS),
    )
}
