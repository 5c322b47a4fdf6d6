"""Combines many files with similar names into one line: the pattern of their names, which is a glob that
matches them all.

The store has a pattern for each file (docs/explanation/store.md). This module uses a pattern only if it
covers several files and still has enough fixed text. It removes stars for parts that are equal in all of
these files. A file whose pattern is not used keeps a line of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from iodock.program.relations.derived import view
from iodock.program.relations.run_facts import LEAST_FILES, RunFacts
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted

MOST_NAMES = 2_000
"""Number of names in a list that are looked up."""
PATTERNED = "file_patterns"
FILES = f"""(SELECT f.* REPLACE (p.pattern AS pattern)
  FROM files f JOIN {PATTERNED} p ON p.file_id = f.file_id)"""
"""SQL for the table of files, with these patterns instead of the store's."""


def patterns_sql(files: str, side: str) -> str:
    """Returns the SQL of the view `file_patterns`, applied to the rows of FILES (with the columns `name`,
    `pattern` and `kind`). Files with different values in the column SIDE never share a pattern."""
    return view(PATTERNED).sql(RunFacts(files=files, side=f"{side}, "))


def in_lines(store: Store, names: Sequence[str]) -> list[str]:
    """Replaces NAMES that share a pattern by this pattern. NAMES are names of files, or patterns that the
    store assigned to files. The table `file_patterns` must exist."""
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
    """Creates the table `file_patterns`, which has the name pattern of each file."""
    store.keep(PATTERNED, view(PATTERNED).sql(RunFacts()))
