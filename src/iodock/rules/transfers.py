"""Questions about reads and writes by place that several rules ask alike."""

from __future__ import annotations

from collections.abc import Mapping


def by_place(sums: Mapping[str, str], where: str, having: str, first: str = "time_ns") -> str:
    """SQL for the places whose transfers fulfil HAVING, the largest FIRST on top: `place name file_count
    call` and a whole number for each of SUMS (name -> aggregate). WHERE and SUMS know `t`, a row of
    `transfers`, `p`, of `place_names`, and `c`, of `calls`."""
    columns = ",\n  ".join(f"CAST({expression} AS BIGINT) AS {name}" for name, expression in sums.items())
    return f"""SELECT p.place, p.name, p.file_count, arg_max(c.name, t.count) AS call,
  {columns}
FROM transfers t JOIN place_names p ON p.place = t.place JOIN calls c ON c.id = t.call_id
WHERE {where} GROUP BY p.place, p.name, p.file_count
HAVING {having}
ORDER BY {first} DESC NULLS LAST, count DESC, p.name"""


def again(column: str) -> dict[str, str]:
    """Sums of transfers that move bytes again, as many as COLUMN (an expression) says: `count` and
    `time_ns` in proportion, `bytes` of all, `again` of those."""
    share = f"{column} / t.bytes"
    return {
        "count": f"round(sum(t.count * {share}))",
        "bytes": "sum(t.bytes)",
        "again": f"sum({column})",
        "time_ns": f"sum(t.time_ns * ({share}))",
    }
