"""Queries the pages that the kernel loaded into the page cache. The bpf back end records them as runs of
adjacent pages of one file."""

from __future__ import annotations

from iodock.program.store import Store

READ = "is_written IS FALSE"
"""SQL condition on a row of `pages`: the pages were loaded for reading."""


def are_known(store: Store) -> bool:
    """Returns whether the store contains the loads into the page cache."""
    captured = store.manifest.raw.get("captured") or {}
    return captured.get("page_cache") == "recorded"


def ranges(source: str) -> str:
    """Returns the SQL for the loaded parts of each file without overlaps (`lower_bytes` to `upper_bytes`).
    `brought_bytes` counts a page each time it was loaded. SOURCE is a table with the columns of `pages`."""
    return f"""WITH before AS (SELECT *, max(offset_bytes + bytes) OVER (PARTITION BY file_id
    ORDER BY offset_bytes, bytes ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM {source}),
numbered AS (SELECT *, sum(CASE WHEN reached >= offset_bytes THEN 0 ELSE 1 END)
    OVER (PARTITION BY file_id ORDER BY offset_bytes, bytes ROWS UNBOUNDED PRECEDING) AS number FROM before)
SELECT file_id, min(offset_bytes) AS lower_bytes, max(offset_bytes + bytes) AS upper_bytes,
  max(offset_bytes + bytes) - min(offset_bytes) AS bytes, CAST(sum(bytes) AS BIGINT) AS brought_bytes,
  min(ts) AS first_ts, max(end_ts) AS last_ts
FROM numbered GROUP BY file_id, number"""
