"""Computes sums over all calls of a run. They show early that a rule has nothing to find, so that its query
need not run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
READS, WRITES = 1, 2
"""Values of the column `direction`."""
MOST_AT_ONCE = 1_000_000
"""If a run has at least this number of events, several conditions are checked in one pass."""

CALLS_SQL = """SELECT c.name, c.family, c.class, f.kind, u.direction, u.errno_id IS NOT NULL AS failed,
  coalesce(x.name IN ('ENOENT', 'ENOTDIR'), false) AS missing, u.time_ns IS NULL AS untimed,
  CAST(sum(u.count) AS BIGINT) AS count, CAST(sum(u.time_ns) AS BIGINT) AS time_ns,
  max(u.longest_ns) AS longest_ns, CAST(sum(u.bytes) AS BIGINT) AS bytes
FROM uses u JOIN calls c ON c.id = u.call_id LEFT JOIN files f ON f.file_id = u.file_id
  LEFT JOIN errnos x ON x.id = u.errno_id
GROUP BY ALL"""
_MOVED = (
    *("count", "time_ns", "bytes", "own_read_bytes", "any_read_bytes", "own_written_bytes"),
    *("any_written_bytes", "unaligned", "back"),
)
MOVED_SQL = f"""SELECT direction, pattern, size_bin, time_ns IS NULL AS untimed,
  {", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in _MOVED)}
FROM transfers GROUP BY ALL"""


ASKED_OF_EVENTS = (
    *("ts IS NOT NULL", "offset_bytes IS NOT NULL", "flags IS NOT NULL", "direction IN (1, 2)"),
    *("own_read_bytes IS NOT NULL", "own_written_bytes IS NOT NULL"),
)
ANY_SQL = "SELECT [{}] AS found FROM events".format(
    ", ".join(f"count(*) FILTER (WHERE {one}) > 0" for one in ASKED_OF_EVENTS)
)
FLAGS_SQL = "SELECT CAST(bit_or(flags) AS BIGINT) AS flags FROM opens WHERE errno_id IS NULL"


def any_sql(condition: str) -> str:
    """Returns the SQL that returns a row if an event meets the condition."""
    return f"SELECT 1 FROM events WHERE {condition} LIMIT 1"


@dataclass(frozen=True, slots=True)
class Sums:
    """Holds rows of sums, and adds up those that a caller chooses."""

    rows: Sequence[Row]

    def where(self, **chosen: object) -> Sums:
        """Returns the rows whose columns have the chosen values. For each column there is one value or
        several; `size_bin` and `pattern` may have a range."""
        return Sums([row for row in self.rows if all(_is_in(row[name], of) for name, of in chosen.items())])

    def total(self, column: str = "count") -> int:
        """Returns the sum of a column. Null counts as 0."""
        return sum(row[column] or 0 for row in self.rows)

    @property
    def time_ns(self) -> int | None:
        """Returns the time inside the calls in ns, or None if no call has a duration."""
        times = [row["time_ns"] for row in self.rows if row["time_ns"] is not None]
        return sum(times) if times else None

    @property
    def longest_ns(self) -> int:
        """Returns the duration of the longest single call in ns, or 0 if no call has a duration."""
        return max((row["longest_ns"] or 0 for row in self.rows), default=0)


def _is_in(value: object, of: object) -> bool:
    return value in of if isinstance(of, (tuple, range)) else value == of


@dataclass(frozen=True, slots=True)
class Known:
    """Holds facts about a run that are computed before rules run."""

    calls: Sums
    """Sums by `name`, `family` and `class` of the call, `kind` of the file, `direction`, `failed`,
    `missing`."""
    moved: Sums
    """Sums of reads and writes by `direction`, `pattern` and `size_bin`, as in the view `transfers`."""
    files: int
    tasks: int
    """Number of processes and threads."""
    commands: int


def known_of(rows: Callable[[str], list[dict[str, Any]]], counted: Callable[[str], int]) -> Known:
    """Computes the facts. ROWS is a function that runs a query, and COUNTED is a function that returns the
    number of rows of a table."""
    return Known(
        Sums(rows(CALLS_SQL)),
        Sums(rows(MOVED_SQL)),
        *(counted(table) for table in ("files", "processes", "commands")),
    )
