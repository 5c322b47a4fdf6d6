"""Matches the files of runs: by name, by path below the working directory, by the parts of the name that do
not vary from run to run, or by name pattern."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iodock.program.comparison.sums import RunSums
from iodock.program.store.engine import Engine
from iodock.shared.engine.sql import quoted

NO_FILE = -1
"""Stands for the file of calls that have none."""
_TEMPORARY = r"(/tmp|/var/tmp|/dev/shm)/"


def _six_random() -> str:
    """Returns a regular expression for six random letters and digits as mkstemp creates them. At least one is
    a digit or a capital letter, because six small letters may be a word."""
    choices = (f"[a-z]{{{at}}}[A-Z0-9][A-Za-z0-9]{{{5 - at}}}" for at in range(6))
    return f"(?:{'|'.join(choices)})"


VARYING = (
    (r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", "*"),
    (r"\btmp[a-z0-9_]{8}\b", "tmp*"),
    (rf"([._-]){_six_random()}(/|$)", r"\1*\2"),
    (rf"^{_TEMPORARY}(.*[._-])?[A-Za-z0-9]{{6,12}}$", r"\1/\2*"),
    (r"\b[0-9a-f]*[0-9][0-9a-f]{7,}\b", "*"),
    (r"[0-9]+", "*"),
)
"""Parts of names that vary from run to run, and their replacements: unique ids, temporary names, hashes, then
any digits (pids, dates, ranks, jobs). They are replaced in this order."""


def starred(column: str) -> str:
    """Returns the SQL that replaces the varying parts of the names in a column."""
    for expression, put in VARYING:
        column = f"regexp_replace({column}, {quoted(expression)}, {quoted(put)}, 'g')"
    return column


def match_files(engine: Engine, before: Sequence[RunSums], after: Sequence[RunSums]) -> None:
    """Creates the tables `keyed`, which maps run and file_id to key_id, and `keys` (key_id, name, matched,
    files_before, files_after). Runs are numbered from 0, those before the change first."""
    runs = [*before, *after]
    engine.bring("waiting", pa.concat_tables([_files(run, at) for at, run in enumerate(runs)]))
    own = _own_names([str(run.captured.get("working_directory") or "") for run in runs])
    first = len(before)
    engine.keep("waiting", f"SELECT *, run >= {first} AS late, {own} AS own FROM waiting")
    engine.keep("matches", "SELECT run, late, file_id, name AS key, '' AS matched FROM waiting WHERE false")
    for matched, column in (("name", "name"), ("place", "own"), ("star", "star"), ("pattern", "pattern")):
        if column == "star":
            engine.keep("waiting", f"SELECT *, {starred('own')} AS star FROM waiting")
        _take(engine, matched, column)
    _take_the_rest(engine)
    engine.keep(
        "keys",
        """SELECT dense_rank() OVER (ORDER BY key, matched) AS key_id, key AS name, matched,
  max(files) FILTER (WHERE NOT late) AS files_before, max(files) FILTER (WHERE late) AS files_after
FROM (SELECT key, matched, late, run, count(*) AS files FROM matches GROUP BY ALL) GROUP BY key, matched""",
    )
    engine.keep(
        "keyed",
        """SELECT m.run, m.file_id, k.key_id FROM matches m
  JOIN keys k ON k.name = m.key AND k.matched = m.matched""",
    )


def _files(run: RunSums, number: int) -> pa.Table:
    column = pa.array([number], pa.int32()).take(pa.array([0] * run.files.num_rows, pa.int32()))
    return run.files.append_column("run", column)


def _own_names(folders: Sequence[str]) -> str:
    """Returns the SQL for file names that are comparable between runs. If the runs were in different working
    directories, names below a run's own working directory begin with `./`."""
    if len(set(folders)) == 1:
        return "name"
    cases = [
        f"WHEN run = {run} AND starts_with(name, {quoted(folder.rstrip('/') + '/')}) "
        f"THEN './' || substr(name, {len(folder.rstrip('/')) + 2})"
        for run, folder in enumerate(folders)
        if folder
    ]
    return f"CASE {' '.join(cases)} ELSE name END"


def _take(engine: Engine, matched: str, column: str) -> None:
    """Moves files from the table `waiting` to `matches` if the value in COLUMN occurs on both sides."""
    engine.keep(
        "shared",
        f'SELECT "{column}" AS key FROM waiting GROUP BY 1 HAVING bool_or(late) AND NOT bool_and(late)',
    )
    engine.keep(
        "matches",
        f"""SELECT * FROM matches UNION ALL SELECT w.run, w.late, w.file_id, s.key, {quoted(matched)}
FROM waiting w JOIN shared s ON s.key = w."{column}\"""",
    )
    engine.keep("waiting", f'SELECT w.* FROM waiting w ANTI JOIN shared s ON s.key = w."{column}"')


def _take_the_rest(engine: Engine) -> None:
    """Adds the files that only one side has to `matches`. If several of their names differ only in varying
    parts, these files share one name with stars in place of these parts."""
    engine.keep(
        "shared",
        """SELECT late, star, count(DISTINCT name) AS names, any_value(name) AS name
FROM waiting GROUP BY 1, 2""",
    )
    engine.keep(
        "matches",
        """SELECT * FROM matches UNION ALL
SELECT w.run, w.late, w.file_id, CASE WHEN s.names > 1 THEN s.star ELSE s.name END,
  CASE WHEN w.late THEN 'after' ELSE 'before' END
FROM waiting w JOIN shared s ON s.late = w.late AND s.star = w.star""",
    )
