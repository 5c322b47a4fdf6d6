"""Many files of similar names as one line: the pattern of their names, a glob that matches them all.

The store has a pattern for each file (docs/explanation/store.md). It counts here only where it covers several
files and says something, and without stars for what does not vary. A file that no pattern covers is a line of
its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from iodock.program.relations.derived import Derived
from iodock.program.relations.filters import PATH_KINDS
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted

LEAST_FILES = 4
"""Fewer files of a pattern are shown one by one."""
MOST_NAMES = 2_000
"""So many names of a list are looked up."""
PATTERNED = "file_patterns"
FILES = f"""(SELECT f.* REPLACE (p.pattern AS pattern)
  FROM files f JOIN {PATTERNED} p ON p.file_id = f.file_id)"""
"""SQL: the table of files with these patterns in place of the store's."""
_PLACED = f"kind IN ({', '.join(map(quoted, PATH_KINDS))})"
_IS_WILD = r"regexp_matches(name, '[*?\[]')"


def _escaped(text: str) -> str:
    """SQL: a name may hold what a glob reads as a wildcard; `[*]` is the letter."""
    return rf"regexp_replace({text}, '([*?\[])', '[\1]', 'g')"


_STARRED = f"""CASE WHEN NOT {_PLACED} THEN name
  WHEN {_IS_WILD} THEN regexp_replace({_escaped("name")}, '[0-9]+', '*', 'g')
  ELSE coalesce(pattern, name) END"""


def patterns_sql(files: str, side: str = "") -> str:
    """SQL: `file_id` and `pattern` of the rows of FILES (with `name`, `pattern`, `kind`); of each SIDE, a
    column of it, by itself. `several`: it is a pattern, not the file's own name."""
    own = f"{side}, " if side else ""
    # What lies between two names in their order shares the beginning that these two share.
    return f"""WITH s AS (SELECT {own}file_id, name, {_STARRED} AS starred FROM {files}),
alike AS (SELECT {own}starred, string_split(starred, '/') AS stars, string_split(min(name), '/') AS a,
    string_split(max(name), '/') AS z,
    min(split_part(name, '/', -1)) = max(split_part(name, '/', -1)) AS is_last_alike
  FROM s WHERE starred <> name AND regexp_matches(starred, '[^/*.?\\[\\]]')
  GROUP BY ALL HAVING count(*) >= {LEAST_FILES} AND min(name) <> max(name)),
places AS (SELECT *, len(stars) AS last, [n FOR n IN range(1, len(stars)) IF a[n] <> z[n]] AS varying
  FROM alike),
parts AS (SELECT {own}starred, [CASE WHEN n < coalesce(varying[1], last) OR (n = last AND is_last_alike)
    THEN {_escaped("a[n]")} ELSE stars[n] END FOR n IN range(1, last + 1)] AS parts FROM places)
SELECT {own}file_id, coalesce(array_to_string(parts, '/'), name) AS pattern, parts IS NOT NULL AS several
FROM s LEFT JOIN parts USING ({own}starred)"""


FILE_PATTERNS = Derived(
    f"every file's line in lists: the pattern of names that {LEAST_FILES} files or more share, else its name",
    {
        "file_id": "-> files",
        "pattern": "a glob that matches the names, or the file's own name",
        "several": "whether it is a pattern",
    },
    lambda store: patterns_sql("files"),
)


def in_lines(store: Store, names: Sequence[str]) -> list[str]:
    """NAMES, of files or of the store's patterns, with one pattern in place of those that share it. Needs
    `file_patterns`."""
    known = f"({', '.join(map(quoted, names[:MOST_NAMES]))})"
    of_name, of_pattern = (
        {
            row["name"]: row["pattern"]
            for row in store.rows(
                f"""SELECT f.{column} AS name, any_value(p.pattern) AS pattern
FROM files f JOIN {PATTERNED} p ON p.file_id = f.file_id
WHERE p.several AND f.{column} IN {known} GROUP BY 1"""
            )
        }
        for column in ("name", "pattern")
    )
    shared = Counter(of_name[name] for name in names if name in of_name)
    several = {*of_pattern.values(), *(one for one, count in shared.items() if count >= LEAST_FILES)}
    lines = ((of_pattern.get(name) or of_name.get(name, name), name) for name in names)
    return list(dict.fromkeys(line if line in several else name for line, name in lines))


def keep_patterns(store: Store) -> None:
    """Keeps `file_patterns`."""
    store.keep(PATTERNED, FILE_PATTERNS.sql(store))
