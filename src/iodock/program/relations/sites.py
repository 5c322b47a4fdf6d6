"""Finds the places from which calls were made: the line of each site, and the frames of each stack, with
names instead of numbers.

A site is an address in code. If a function was inlined there, the site has several functions and lines: those
of the inlined function, and those of the function that it was compiled into. The innermost line outside of
libraries is used.
"""

from __future__ import annotations

from iodock.program.store import Store
from iodock.shared.errors import RequestError

LINES = "site_lines"
FRAMES = "stack_frames"
CALLERS = "stack_callers"
_HOW = "record with --stacks sites, or import a log of strace -k (or -kk)"

BASE = "regexp_extract({}, '[^/]*$')"
PLACE = f"concat({BASE.format('s.module')}, '+0x', format('{{:x}}', s.offset_bytes))"
_OF_LIBRARIES = (
    "(starts_with({0}, '/usr/') OR starts_with({0}, '/rustc/') OR contains({0}, '/.cargo/registry/'))"
)
_LINES = f"""WITH ranked AS (SELECT *, row_number() OVER (PARTITION BY site_id
    ORDER BY file IS NULL OR {_OF_LIBRARIES.format("file")}, level) AS place FROM symbols)
SELECT s.site_id, s.is_installed, coalesce(s.module, y.file) AS module, y.function, y.file,
  y.line AS source_line,
  CASE WHEN y.file IS NOT NULL AND y.line IS NOT NULL THEN concat({BASE.format("y.file")}, ':', y.line)
    ELSE coalesce(y.function, {PLACE}) END AS line
FROM sites s LEFT JOIN ranked y ON y.site_id = s.site_id AND y.place = 1"""

_NAMED = f"""coalesce(y.function, {PLACE}, '?')
  || CASE WHEN y.file IS NOT NULL AND y.line IS NOT NULL
    THEN concat(' ', {BASE.format("y.file")}, ':', y.line) ELSE '' END"""
_FRAMES = f"""SELECT t.stack_id, array_agg({_NAMED} ORDER BY t.depth, y.level) AS frames,
  string_agg(coalesce(y.function, {PLACE}, '?'), ' < ' ORDER BY t.depth, y.level) AS stack
FROM stacks t JOIN sites s ON s.site_id = t.site_id LEFT JOIN symbols y ON y.site_id = t.site_id
GROUP BY 1"""

# If an installed library calls a function of the program (a callback, or `main`), that function has no caller
# in the program. The condition on `distance` therefore requires adjacent frames.
_CALLERS = f"""WITH own AS (SELECT t.stack_id, t.depth, y.function, y.file, y.line AS source_line,
    CASE WHEN y.file IS NOT NULL AND y.line IS NOT NULL THEN concat({BASE.format("y.file")}, ':', y.line)
      ELSE coalesce(y.function, {PLACE}) END AS line,
    row_number() OVER (PARTITION BY t.stack_id ORDER BY t.depth, y.level) AS place,
    t.depth - lag(t.depth) OVER (PARTITION BY t.stack_id ORDER BY t.depth, y.level) AS distance
  FROM stacks t JOIN sites s ON s.site_id = t.site_id LEFT JOIN symbols y ON y.site_id = t.site_id
  WHERE NOT s.is_installed AND (y.file IS NULL OR NOT {_OF_LIBRARIES.format("y.file")}))
SELECT stack_id, line, function, file, source_line FROM own WHERE place = 2 AND distance <= 1"""


def need_sites(store: Store) -> None:
    """Raises RequestError if the store does not contain the places from which calls were made."""
    if not store.rows_of("sites"):
        raise RequestError(f"{store.name}: does not contain the lines from which its calls were made", _HOW)


def keep_lines(store: Store) -> None:
    """Creates the table `site_lines`. For each site it has `line`, `function` and `module`, and the source as
    `file` and `source_line`."""
    store.keep(LINES, _LINES)


def keep_frames(store: Store) -> None:
    """Creates the table `stack_frames`, which has for each stack the functions with their lines, innermost
    first."""
    store.keep(FRAMES, _FRAMES)


def keep_callers(store: Store) -> None:
    """Creates the table `stack_callers`. For each stack it has the line of the program that calls the
    function in which the call was made: `line`, `function`, `file` and `source_line`. Stacks without such a
    line have no row."""
    store.keep(CALLERS, _CALLERS)
