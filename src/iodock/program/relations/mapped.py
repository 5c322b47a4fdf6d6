"""Finds files that were mapped into memory. No call shows which parts of them the program read and wrote."""

from __future__ import annotations

from iodock.program.relations.selection import SHARED_LIBRARY
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted


def mapped_files(store: Store, most: int) -> tuple[str, ...]:
    """Returns the names of at most MOST mapped files, except for those whose page faults were recorded. Large
    files come first, and shared libraries last."""
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
