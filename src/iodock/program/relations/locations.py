"""The lines that most of a finding's calls came from."""

from __future__ import annotations

from collections.abc import Iterable

from iodock.program.findings import MOST_LOCATIONS, Location
from iodock.program.relations.sites import LINES, keep_lines
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted

_MOST_FILES = 2_000
"""Number of a finding's files that are examined, the costliest first."""
_VERBS = {"read": 1, "write": 2}


def locations_of(store: Store, call: str | None, files: Iterable[str]) -> tuple[Location, ...]:
    """The lines of the calls with that name, family or direction (None: all calls) on these files or patterns
    of files (none: all files), by number of calls. Empty if the store has no lines."""
    if not store.rows_of("sites"):
        return ()
    keep_lines(store)
    rows = store.rows(f"""WITH of_line AS (SELECT l.line, l.function, l.module, l.file, l.source_line,
    count(*) AS calls, sum(e.dur) AS time_ns
  FROM events e JOIN calls c ON c.id = e.call_id LEFT JOIN files f ON f.file_id = e.file_id
    LEFT JOIN {LINES} l ON l.site_id = e.site_id
  WHERE e.side IN (0, 1, 3) AND {_of_call(call)} AND {_of_files(tuple(files))} GROUP BY 1, 2, 3, 4, 5)
SELECT *, calls / sum(calls) OVER () AS share FROM of_line
ORDER BY calls DESC, time_ns DESC NULLS LAST, line NULLS LAST, module LIMIT {MOST_LOCATIONS + 1}""")
    known = [row for row in rows if row["line"] is not None][:MOST_LOCATIONS]
    return tuple(
        Location(
            place=row["line"],
            function=row["function"],
            module=row["module"],
            file=row["file"],
            line=row["source_line"],
            calls=row["calls"],
            share=row["share"],
        )
        for row in known
    )


def _of_call(call: str | None) -> str:
    if call is None:
        return "true"
    if call in _VERBS:
        return f"(e.direction = {_VERBS[call]} OR c.name = {quoted(call)} OR c.family = {quoted(call)})"
    family = f"(SELECT family FROM calls WHERE name = {quoted(call)})"
    return f"(c.name = {quoted(call)} OR c.family = {quoted(call)} OR c.family IN {family})"


def _of_files(files: tuple[str, ...]) -> str:
    if not files:
        return "true"
    listed = ", ".join(map(quoted, files[:_MOST_FILES]))
    return f"(f.name IN ({listed}) OR f.pattern IN ({listed}))"
