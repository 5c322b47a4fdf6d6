"""Contains queries on reads and writes by place, for several rules."""

from __future__ import annotations

from collections.abc import Mapping

FEW = 8
"""If a place has fewer transfers, they show no order. The limit for reporting applies to all places together,
because a fault may be distributed over hundreds of files."""


def by_place(sums: Mapping[str, str], where: str, having: str, first: str = "time_ns") -> str:
    """Returns SQL for the places whose transfers fulfil HAVING, sorted by the column FIRST: `place name
    file_count call` and an integer for each of SUMS (a mapping of names to aggregates). WHERE and SUMS can
    use a row of `transfers` as `t`, of `place_names` as `p` and of `calls` as `c`."""
    columns = ",\n  ".join(f"CAST({expression} AS BIGINT) AS {name}" for name, expression in sums.items())
    return f"""SELECT p.place, p.name, p.file_count, arg_max(c.name, t.count) AS call,
  {columns}
FROM transfers t JOIN place_names p ON p.place = t.place JOIN calls c ON c.id = t.call_id
WHERE {where} GROUP BY p.place, p.name, p.file_count
HAVING {having}
ORDER BY {first} DESC NULLS LAST, count DESC, p.name"""


def moved() -> dict[str, str]:
    """Returns SQL for sums of transfers: `count`, `time_ns`, `bytes` and `again`. The last is the number
    of bytes that the same process had read before. Libraries read such bytes, for example, when they
    refill their buffers after a jump."""
    return {
        "count": "sum(t.count)",
        "time_ns": "sum(t.time_ns)",
        "bytes": "sum(t.bytes)",
        "again": "sum(CASE t.direction WHEN 1 THEN coalesce(t.own_read_bytes, 0) ELSE 0 END)",
    }


def again(column: str) -> dict[str, str]:
    """Returns SQL for sums of transfers that move bytes again. COLUMN is an expression for the number of
    these bytes, and `again` is its sum. `bytes` is the sum of all bytes. `count` and `time_ns` are the
    number and time of the transfers in proportion to COLUMN."""
    share = f"{column} / t.bytes"
    return {
        "count": f"round(sum(t.count * {share}))",
        "bytes": "sum(t.bytes)",
        "again": f"sum({column})",
        "time_ns": f"sum(t.time_ns * ({share}))",
    }
