"""Queries page faults in mapped files, and derives the accesses that caused them.

Only the first access of a process to a page causes a fault. If neighbouring pages are in memory already, the
kernel maps them, too: up to FAULT_AROUND_BYTES around the fault, or a whole large folio. A process that reads
a file sequentially therefore has one fault in 16 pages, or fewer. The gaps between the faults of one task
count as accessed if the faults are in ascending order. After the last of them, a piece counts that is as long
as the gap before it, up to the end of the file. A page that is first read and then written has two faults.
"""

from __future__ import annotations

from iodock.program.store import Store

PAGE_BYTES = 4096
FAULT_AROUND_BYTES = 65536
"""Number of bytes that Linux maps around a fault if their pages are in memory (fault_around_bytes)."""
FOLIO_BYTES = 2097152
"""Number of bytes that Linux maps at most if the pages are in one large folio, from the folio's beginning
on."""
NEAR = f"""(step > 0 AND (step <= {FAULT_AROUND_BYTES}
    OR (step <= {FOLIO_BYTES} AND offset_bytes % {2 * FAULT_AROUND_BYTES} = 0 AND NOT is_major)))"""
"""SQL condition on a row of `steps`: everything since the previous fault may have been accessed without a
fault."""
RUN_FAULTS = 4
"""A run needs this number of faults in small ascending steps, because fewer arise by chance."""


def are_known(store: Store) -> bool:
    """Returns whether the store contains page faults, which show the accesses to mapped files."""
    return _state(store) == "recorded" or bool(store.manifest.rows.get("faults"))


def sees_page_faults(store: Store) -> bool:
    """Returns whether the recording would have contained page faults in mapped files. Unlike `are_known`, it
    also returns true if the program mapped no data file."""
    return are_known(store) or _state(store) == "not-needed"


def _state(store: Store) -> str | None:
    state: str | None = (store.manifest.raw.get("captured") or {}).get("page_faults")
    return state


def steps(source: str = "faults", where: str = "") -> str:
    """Returns the SQL for each fault of SOURCE with two numbers: the distance in bytes from the previous
    fault of the same task in the same file, and the number of the ascending run that the fault belongs to.
    The distance is NULL for the first fault, and for pages that were in memory when recording began."""
    return f"""SELECT *, sum(CASE WHEN step = 0 OR {NEAR} THEN 0 ELSE 1 END)
    OVER (PARTITION BY file_id, utid, is_major IS NULL ORDER BY ts ROWS UNBOUNDED PRECEDING) AS run
FROM (SELECT *, CASE WHEN is_major IS NOT NULL THEN offset_bytes - lag(offset_bytes)
      OVER (PARTITION BY file_id, utid, is_major IS NULL ORDER BY ts) END AS step
  FROM {source} {where})"""


def ranges(stepped: str) -> str:
    """Returns the SQL for the accessed parts of each file without overlaps (`lower_bytes` to `upper_bytes`),
    with the number of faults in each. STEPPED is a table with the columns that `steps` returns."""
    return f"""WITH runs AS (
  SELECT *, count(*) FILTER (WHERE step IS DISTINCT FROM 0)
    OVER (PARTITION BY file_id, utid, is_major IS NULL, run) AS length
  FROM {stepped}),
rising AS (
  SELECT file_id, min(offset_bytes) AS lower_bytes, max(offset_bytes) + {PAGE_BYTES} AS seen_bytes,
    max(offset_bytes) + arg_max(step, offset_bytes) FILTER (WHERE step > 0) AS next_bytes, count(*) AS faults,
    count(*) FILTER (WHERE is_major) AS major_faults, min(ts) AS first_ts, max(ts) AS last_ts
  FROM runs WHERE length >= {RUN_FAULTS} AND is_major IS NOT NULL GROUP BY file_id, utid, run),
pieces AS (
  SELECT file_id, lower_bytes, greatest(seen_bytes,
      least(next_bytes, (coalesce(files.size_bytes, 0) + {PAGE_BYTES - 1}) // {PAGE_BYTES} * {PAGE_BYTES})
    ) AS upper_bytes,
    faults, major_faults, first_ts, last_ts
  FROM rising LEFT JOIN files USING (file_id)
  UNION ALL
  SELECT file_id, offset_bytes, offset_bytes + {PAGE_BYTES}, count(is_major),
    count(*) FILTER (WHERE is_major), min(ts), max(ts)
  FROM runs WHERE length < {RUN_FAULTS} OR is_major IS NULL GROUP BY file_id, offset_bytes),
before AS (SELECT *, max(upper_bytes) OVER (PARTITION BY file_id ORDER BY lower_bytes, upper_bytes
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM pieces),
numbered AS (SELECT *, sum(CASE WHEN reached >= lower_bytes THEN 0 ELSE 1 END)
    OVER (PARTITION BY file_id ORDER BY lower_bytes, upper_bytes ROWS UNBOUNDED PRECEDING) AS number
  FROM before)
SELECT file_id, min(lower_bytes) AS lower_bytes, max(upper_bytes) AS upper_bytes,
  max(upper_bytes) - min(lower_bytes) AS bytes, CAST(sum(faults) AS BIGINT) AS faults,
  CAST(sum(major_faults) AS BIGINT) AS major_faults, min(first_ts) AS first_ts, max(last_ts) AS last_ts
FROM numbered GROUP BY file_id, number"""
