"""Combines files with similar names into one line of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iodock.program.comparison.sums import RunSums
from iodock.program.relations.patterns import patterns_sql
from iodock.program.store.engine import Engine


def fold_into_patterns(engine: Engine, before: Sequence[RunSums], after: Sequence[RunSums]) -> None:
    """Replaces the keys of files that share a pattern in one of the runs by one key, in the tables `keyed`
    and `keys`. A file that is the only one with its pattern keeps its own key and name."""
    runs = [*before, *after]
    engine.bring("named", pa.concat_tables([_numbered(run.files, at) for at, run in enumerate(runs)]))
    engine.keep("patterned", patterns_sql("named", "run"))
    engine.keep(
        "shared",
        """SELECT pattern, min(key_id) AS line_id, unnest(list(key_id)) AS key_id FROM (
  SELECT k.key_id, arg_min(p.pattern, p.run) AS pattern
  FROM keyed k JOIN patterned p ON p.run = k.run AND p.file_id = k.file_id WHERE p.several GROUP BY 1
) t GROUP BY 1 HAVING count(*) > 1""",
    )
    engine.keep(
        "keyed",
        """SELECT k.run, k.file_id, coalesce(s.line_id, k.key_id) AS key_id
FROM keyed k LEFT JOIN shared s ON s.key_id = k.key_id""",
    )
    engine.keep(
        "keys",
        f"""WITH files AS (SELECT key_id, run, count(*) AS files FROM keyed GROUP BY ALL),
counted AS (SELECT key_id, max(files) FILTER (WHERE run < {len(before)}) AS files_before,
    max(files) FILTER (WHERE run >= {len(before)}) AS files_after FROM files GROUP BY 1)
SELECT k.key_id, coalesce(s.pattern, k.name) AS name,
  CASE WHEN s.pattern IS NULL THEN k.matched ELSE 'pattern' END AS matched, c.files_before, c.files_after
FROM keys k JOIN counted c ON c.key_id = k.key_id LEFT JOIN shared s ON s.key_id = k.key_id""",
    )


def _numbered(files: pa.Table, run: int) -> pa.Table:
    return files.append_column("run", pa.array([run] * files.num_rows, pa.int32()))
