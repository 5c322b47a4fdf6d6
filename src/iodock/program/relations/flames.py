"""Sums time, bytes and calls by the path that leads to a call: program, functions, call, files.

A path begins with the program that made the call. The functions of the call's stack follow, outermost first,
then the call, and then the file or the pattern of files. In a store without stacks, the file comes before the
call. Each frame has a number, and a path is stored as a list of these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from iodock.program.relations.patterns import FILES, keep_patterns
from iodock.program.relations.selection import Selection
from iodock.program.relations.sites import BASE, PLACE
from iodock.program.store import Store

FRAMES = "flame_frames"
PATHS = "flame_paths"
FUNCTIONS = "flame_functions"
STACKS = "flame_stacks"
PROGRAMS = "flame_programs"
UNKNOWN = "(stack unknown)"

_CELLS = "flame_cells"
_ALL = "flame_every_frame"
_FILES = "flame_files"

_PROGRAMS = f"""SELECT p.utid, coalesce(nullif(any_value({BASE.format("r.path")}), ''),
    CASE WHEN any_value(p.pid) IS NULL THEN '?' ELSE concat('pid ', any_value(p.pid)) END) AS name
FROM processes p LEFT JOIN (SELECT t.upid, arg_max(c.path, coalesce(c.ts, 0)) AS path
  FROM commands c JOIN processes t ON t.utid = c.utid GROUP BY 1) r ON r.upid = p.upid GROUP BY 1"""
_EVERY_FRAME = f"""SELECT t.stack_id, t.depth, coalesce(y.level, 0) AS level, 'function' AS kind,
  coalesce(y.function, {PLACE}, '?') AS name, y.file, y.line, s.module, s.build_id
FROM stacks t JOIN sites s ON s.site_id = t.site_id LEFT JOIN symbols y ON y.site_id = t.site_id"""


@dataclass(frozen=True, slots=True)
class Frame:
    """Holds one frame of a flame graph: a program, function, call or file."""

    kind: str
    """One of program, function, call, file or unknown."""
    name: str
    file: str | None = None
    line: int | None = None
    module: str | None = None
    build_id: str | None = None

    @property
    def title(self) -> str:
        """Returns the text for the frame. For a function, this is its name with the source file and line, if
        these are known."""
        if self.file is None or self.line is None:
            return self.name
        return f"{self.name} {self.file.rpartition('/')[2]}:{self.line}"


def keep_flames(store: Store, selection: Selection) -> None:
    """Creates the tables `flame_frames` and `flame_paths`. The first gives each frame a number. The second
    has for each path the numbers of its frames, outermost first, with calls, time and bytes. The sums over
    all paths are those of all chosen calls."""
    keep_stacks(store)
    keep_patterns(store)
    store.keep(_FILES, f"SELECT f.file_id, coalesce(f.pattern, f.name) AS name FROM {FILES} f")
    keep_programs(store)
    store.keep(_CELLS, _cells_sql(selection))
    store.keep(FRAMES, _frames_sql())
    store.keep(PATHS, _paths_sql(bool(store.rows_of("sites"))))


def keep_stacks(store: Store) -> None:
    """Creates the tables `flame_functions` and `flame_stacks`. The first gives each frame of a stack a
    number. The second has for each stack the numbers of its frames, outermost first."""
    store.keep(_ALL, _EVERY_FRAME)
    columns = "kind, name, file, line, module, build_id"
    store.keep(
        FUNCTIONS,
        f"""SELECT CAST(row_number() OVER (ORDER BY {columns}) AS INTEGER) AS id, *
FROM (SELECT DISTINCT {columns} FROM {_ALL}) z""",
    )
    store.keep(
        STACKS,
        f"""SELECT a.stack_id, array_agg(f.id ORDER BY a.depth DESC, a.level DESC) AS ids
FROM {_ALL} a JOIN {FUNCTIONS} f ON f.name = a.name AND f.file IS NOT DISTINCT FROM a.file
  AND f.line IS NOT DISTINCT FROM a.line AND f.module IS NOT DISTINCT FROM a.module
  AND f.build_id IS NOT DISTINCT FROM a.build_id GROUP BY 1""",
    )


def keep_programs(store: Store) -> None:
    """Creates the table `flame_programs`, which has for each task the name of the program that it executed
    last."""
    store.keep(PROGRAMS, _PROGRAMS)


def _cells_sql(selection: Selection) -> str:
    counted = f"NOT {selection.again}"
    return f"""SELECT r.name AS program, e.stack_id, c.name AS call, x.name AS file,
  count(*) FILTER (WHERE {counted}) AS count,
  CAST(sum(e.dur) FILTER (WHERE {counted}) AS BIGINT) AS time_ns, CAST(sum(e.bytes) AS BIGINT) AS bytes
FROM events e {selection.joins} LEFT JOIN {PROGRAMS} r ON r.utid = e.utid
  LEFT JOIN calls c ON c.id = e.call_id LEFT JOIN {_FILES} x ON x.file_id = e.file_id
{selection.where} GROUP BY ALL"""


def _frames_sql() -> str:
    names = " UNION ".join(
        f"SELECT '{kind}' AS kind, {name} AS name, NULL::VARCHAR AS file, NULL::UINTEGER AS line, "
        f"NULL::VARCHAR AS module, NULL::VARCHAR AS build_id {rows}"
        for kind, name, rows in (
            ("program", "coalesce(program, '?')", f"FROM {_CELLS}"),
            ("call", "coalesce(call, '?')", f"FROM {_CELLS}"),
            ("file", "file", f"FROM {_CELLS} WHERE file IS NOT NULL"),
            ("unknown", f"'{UNKNOWN}'", ""),
        )
    )
    first = f"coalesce((SELECT max(id) FROM {FUNCTIONS}), 0)"
    return f"""SELECT id, kind, name, file, line, module, build_id FROM {FUNCTIONS} UNION ALL
SELECT CAST({first} + row_number() OVER (ORDER BY kind, name) AS INTEGER) AS id, * FROM ({names}) z"""


def _paths_sql(has_stacks: bool) -> str:
    unknown = f"(SELECT list(id) FROM {FRAMES} WHERE kind = 'unknown')"
    file = "CASE WHEN x.id IS NULL THEN CAST([] AS INTEGER[]) ELSE [x.id] END"
    between = (
        f"list_concat(coalesce(s.ids, {unknown}), [c.id], {file})"
        if has_stacks
        else f"list_concat({file}, [c.id])"
    )
    return f"""SELECT list_concat([p.id], {between}) AS path, CAST(sum(i.count) AS BIGINT) AS count,
  CAST(sum(i.time_ns) AS BIGINT) AS time_ns, CAST(sum(i.bytes) AS BIGINT) AS bytes
FROM {_CELLS} i JOIN {FRAMES} p ON p.kind = 'program' AND p.name = coalesce(i.program, '?')
  JOIN {FRAMES} c ON c.kind = 'call' AND c.name = coalesce(i.call, '?')
  LEFT JOIN {FRAMES} x ON x.kind = 'file' AND x.name = i.file
  LEFT JOIN {STACKS} s ON s.stack_id = i.stack_id
GROUP BY 1"""


def frames_of(store: Store) -> dict[int, Frame]:
    """Returns the frames that occur in paths, by their number. `keep_flames` must have created the tables."""
    used = f"SELECT DISTINCT unnest(path) AS id FROM {PATHS}"
    return {
        row.pop("id"): Frame(**row)
        for row in store.rows(
            f"SELECT id, kind, name, file, line, module, build_id FROM {FRAMES} "
            f"WHERE id IN ({used}) ORDER BY id"
        )
    }
