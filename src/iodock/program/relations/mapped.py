"""Files that were mapped into memory. Calls do not show what was read and written there."""

from __future__ import annotations

from iodock.program.relations.selection import SHARED_LIBRARY
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted


def mapped_files(store: Store, most: int) -> tuple[str, ...]:
    """Returns the names of the MOST important files: shared libraries come last, large files first. Files
    whose page faults are known are left out."""
    rows = store.rows(
        f"""SELECT f.name FROM files f
WHERE f.file_id IN (SELECT e.file_id FROM events e
  WHERE e.call_id IN (SELECT id FROM calls WHERE family = 'mmap')
    AND e.errno_id IS NULL AND e.result IS NOT NULL)
  AND f.file_id NOT IN (SELECT file_id FROM faults)
ORDER BY regexp_full_match(f.name, {quoted(SHARED_LIBRARY)}), f.size_bytes DESC NULLS LAST, f.name
LIMIT {most}"""
    )
    return tuple(row["name"] for row in rows)
