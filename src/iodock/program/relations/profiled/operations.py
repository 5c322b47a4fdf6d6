"""Converts counters to operations, which take the place of calls: each profile becomes one row for opens and
one each for reads, writes, seeks, stats and syncs."""

from __future__ import annotations

from iodock.program.relations.profiled.chosen import CHOSEN
from iodock.program.store import Store

OPERATIONS = "profiled_operations"
ALL_METADATA = "all metadata"
"""Name of the rows with the time of all metadata operations. Sources measure this time as a whole but count
the operations separately."""
# Each row is an operation: its name, its class, the column with its count, and the column with its time.
_EACH = (
    ("open", "metadata", "opens", None),
    ("read", "data", "reads", "read_time_ns"),
    ("write", "data", "writes", "write_time_ns"),
    ("seek", "seek", "seeks", None),
    ("stat", "metadata", "stats", None),
    ("sync", "sync", "syncs", None),
    (ALL_METADATA, "metadata", None, "meta_time_ns"),
)
_BYTES = {"read": "read_bytes", "write": "written_bytes"}
_LONGEST = {"read": "F_MAX_READ_TIME", "write": "F_MAX_WRITE_TIME"}


def keep_operations(store: Store) -> None:
    """Creates the table `profiled_operations` from the chosen profiles. An operation that an interface counts
    for no file (such as stats of streams) is left out, because the interface does not have it. Its count is
    then 0 rather than unknown."""
    known = store.rows(
        f"""SELECT interface, {", ".join(f"count({name}) > 0 AS {name}" for name in _counted())}
FROM profiles GROUP BY interface ORDER BY interface"""
    )
    parts = [
        _part(row["interface"], *each) for row in known for each in _EACH if row[each[2] or each[3] or ""]
    ]
    # Without profiles there are no operations. The table must have its columns nevertheless.
    parts = parts or [_part("", *_EACH[0])]
    store.keep(OPERATIONS, "\nUNION ALL ".join(parts))


def _counted() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for *_, count, time in _EACH for name in (count, time) if name))


def _part(interface: str, family: str, of_class: str, count: str | None, time: str | None) -> str:
    """Returns the SQL for the rows of one operation. COUNT and TIME are names of columns, or None if the
    operation has no such column."""
    moved = f"c.{_BYTES[family]}" if family in _BYTES else "NULL::BIGINT"
    longest = "NULL::BIGINT"
    if family in _LONGEST:
        longest = f"""(SELECT CAST(round(max(x.fraction) * 1000000000) AS BIGINT) FROM profile_counters x
    WHERE x.profile_id = c.profile_id AND x.counter LIKE '%{_LONGEST[family]}' AND x.fraction > 0)"""
    return f"""SELECT c.*, '{family}' AS family, '{of_class}' AS class,
  {f"c.{count}" if count else "NULL::BIGINT"} AS count, {str(count is not None).lower()} AS is_counted,
  {f"c.{time}" if time else "NULL::BIGINT"} AS time_ns, {str(time is not None).lower()} AS is_timed,
  {moved} AS moved_bytes, {longest} AS longest_ns
FROM {CHOSEN} c WHERE c.interface = '{interface}'"""


def sum_or_none(column: str, condition: str = "true") -> str:
    """Returns the SQL for a sum that is NULL if one of its values is NULL."""
    known = f"count({column}) FILTER (WHERE {condition})"
    every = f"count(*) FILTER (WHERE {condition})"
    return f"CASE WHEN {known} = {every} THEN CAST(sum({column}) FILTER (WHERE {condition}) AS BIGINT) END"


COUNT = sum_or_none("o.count", "o.is_counted")
TIME = sum_or_none("o.time_ns", "o.is_timed")
READ = sum_or_none("o.moved_bytes", "o.family = 'read'")
WRITTEN = sum_or_none("o.moved_bytes", "o.family = 'write'")
_MOVED = sum_or_none("o.moved_bytes", "o.class = 'data'")
TRANSFERS = sum_or_none("o.count", "o.class = 'data'")
# A profile of several files has one row for each operation. All of these rows refer to the same files, which
# must count once.
_FOLDED = """list_sum([one.n FOR one IN list_distinct(list({'id': o.profile_id, 'n': o.files})
    FILTER (WHERE o.file_id IS NULL))])"""
FILE_COUNT = f"CAST(count(DISTINCT o.file_id) + coalesce({_FOLDED}, 0) AS BIGINT)"
# The time of metadata calls includes closes, which are not counted. A mean time per metadata call would
# therefore be wrong.
_PER_CALL = "bool_and(o.is_counted AND o.is_timed)"
# This SQL computes the measures, in the order of grouping.MEASURES.
MEASURES_SQL = f"""{COUNT} AS count, NULL::BIGINT AS success, NULL::BIGINT AS failed,
  NULL::BIGINT AS no_result, NULL::MAP(VARCHAR, BIGINT) AS errnos, {TIME} AS total_time_ns,
  CASE WHEN {_PER_CALL} THEN CAST({TIME} AS DOUBLE) / nullif({COUNT}, 0) END AS mean_time_ns,
  NULL::BIGINT AS min_time_ns, max(o.longest_ns) AS max_time_ns, NULL::BIGINT AS sys_cpu_time_ns,
  CASE WHEN {_PER_CALL} THEN CAST({COUNT} AS DOUBLE) * 1000000000 / nullif({TIME}, 0) END AS calls_per_s,
  CAST({_MOVED} AS DOUBLE) * 1000000000 / nullif({TIME}, 0) AS bytes_per_s,
  {READ} AS read_bytes, {WRITTEN} AS written_bytes, {TRANSFERS} AS io_count,
  CAST({_MOVED} AS DOUBLE) / nullif({TRANSFERS}, 0) AS mean_size_bytes,
  NULL::BIGINT AS min_size_bytes, NULL::BIGINT AS max_size_bytes"""
