"""Sums the calls of the runs by file, call or kind of I/O. Each quantity has one value for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iodock.program.comparison.data import MEASURES, Change, Listing, Noise, Row, Sureness
from iodock.program.comparison.lines import fold_into_patterns
from iodock.program.comparison.matching import NO_FILE, match_files
from iodock.program.comparison.noise import NOISE_SHARE
from iodock.program.comparison.significance import change
from iodock.program.comparison.sums import RunSums
from iodock.program.store.engine import Engine

WORKING = "part <> 'waiting'"
"""Selects calls that do not wait. Waiting on pipes and sockets is a separate kind of I/O, and not included
elsewhere."""
MOST_CALLS_OF_FILE = 3
_NAMED = """SELECT t.*, k.name, k.matched, k.files_before, k.files_after
FROM {source} t LEFT JOIN keys k ON k.key_id = t.key_id"""
# Names are looked up only for the rows that the answer shows, because a look-up for many files is slow.
_FILES = "greatest(coalesce(k.files_before, 0), coalesce(k.files_after, 0))"
_COUNTED = f"""SELECT count(*) AS of, CAST(coalesce(sum({_FILES}), 0) AS BIGINT) AS files
FROM ranked t LEFT JOIN keys k ON k.key_id = t.key_id"""
_TELLING_SHARE = 0.1
"""A call is listed under its file only if its change is at least this share of the largest change there."""


@dataclass(frozen=True, slots=True)
class Table:
    """Holds the calls of all runs in one database, in which equal files of different runs have the same
    key."""

    engine: Engine
    before: int
    """Number of runs before the change. These runs come first."""
    runs: int
    timed: tuple[bool, ...]
    """Whether the times of each run are known, and of the same kind as those of the others."""
    least: float = 0.0
    """If a file's difference is smaller than this, in ns, the file is neither faster nor slower. 0: numbers
    of calls are compared."""

    @property
    def ranking(self) -> str:
        """Returns the name of the measure by which rows are ranked: time, or number of calls if times are not
        comparable."""
        return "total_time_ns" if all(self.timed) else "count"

    def change(self, values: Sequence[float], measure: str = "count") -> Change:
        """Computes a change and its significance from a quantity's value in each run. Times that are not
        known are left out."""
        known: list[float | None] = [
            value if measure != "total_time_ns" or timed else None
            for value, timed in zip(values, self.timed, strict=True)
        ]
        return change(known[: self.before], known[self.before :])

    def row(self, name: str, found: Mapping[str, Any], **more: Any) -> Row:
        """Makes a row from FOUND, which has a column such as `count_0` for each measure and run."""
        changes = {
            measure: self.change([found[f"{measure}_{run}"] for run in range(self.runs)], measure)
            for measure in MEASURES
        }
        return Row(name, changes, **more)


def table_of(
    engine: Engine,
    before: Sequence[RunSums],
    after: Sequence[RunSums],
    timed: Sequence[bool],
    units: Sequence[float],
    least: float,
    by_pattern: bool,
) -> Table:
    """Loads the runs' sums into ENGINE as the table `cells`: key_id, call, class, part, run, and `MEASURES`
    per unit of work. With BY_PATTERN, files with similar names have the same key."""
    runs = [*before, *after]
    match_files(engine, before, after)
    if by_pattern:
        fold_into_patterns(engine, before, after)
    engine.bring("sums", pa.concat_tables([_numbered(run.sums, at) for at, run in enumerate(runs)]))
    engine.bring("units", pa.table({"run": pa.array(range(len(runs)), pa.int32()), "unit": units}))
    measures = ", ".join(f"s.{measure} / u.unit AS {measure}" for measure in MEASURES)
    engine.keep(
        "cells",
        f"""SELECT coalesce(k.key_id, {NO_FILE}) AS key_id, s.call, s.class, s.part, s.run, {measures}
FROM sums s JOIN units u ON u.run = s.run LEFT JOIN keyed k ON k.run = s.run AND k.file_id = s.file_id""",
    )
    table = Table(engine, len(before), len(runs), tuple(timed), least)
    _rank_files(table)
    _find_noise(table)
    return table


def _numbered(sums: pa.Table, number: int) -> pa.Table:
    return sums.append_column("run", pa.array([number] * sums.num_rows, pa.int32()))


def _columns(table: Table) -> str:
    """Returns the SQL for columns such as `count_0`. There is one for each measure and run, with the sum of
    that run."""
    return ", ".join(
        f"coalesce(sum({measure}) FILTER (WHERE run = {run}), 0) AS {measure}_{run}"
        for measure in MEASURES
        for run in range(table.runs)
    )


def _summed_columns(table: Table) -> str:
    """Returns the SQL that sums the columns of `_columns` over several rows."""
    names = (f"{measure}_{run}" for measure in MEASURES for run in range(table.runs))
    return ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in names)


def _folded(table: Table, by: str, where: str = WORKING) -> str:
    group = f"GROUP BY {by}" if by else ""
    return f"SELECT {by + ',' if by else ''} {_columns(table)} FROM cells WHERE {where} {group}"


def _medians(table: Table) -> tuple[str, str]:
    """Returns the SQL for the medians before and after the change, for the measure by which rows are
    ranked."""
    names = [f"{table.ranking}_{run}" for run in range(table.runs)]
    return _median(names[: table.before]), _median(names[table.before :])


def _difference(table: Table) -> str:
    """Returns the SQL for the median after the change minus the median before it."""
    before, after = _medians(table)
    return f"({after} - {before})"


def _median(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"list_aggregate([{', '.join(names)}], 'median')"


def _rank_files(table: Table) -> None:
    """Creates the tables `by_file_call` and `by_file`, both with the column `difference`. `by_file` also has
    `weight`, which is the larger of two sums over the file's calls: the increases and the decreases. A file
    whose calls changed in opposite directions thus has a weight, too."""
    engine, difference = table.engine, _difference(table)
    by_call = _folded(table, "key_id, call")
    engine.keep("by_file_call", f"SELECT *, {difference} AS difference FROM ({by_call}) t")
    engine.keep(
        "by_file",
        f"""SELECT *, {difference} AS difference FROM (SELECT key_id, {_summed_columns(table)},
  greatest(sum(greatest(difference, 0)), sum(greatest(-difference, 0))) AS weight
FROM by_file_call GROUP BY key_id) t""",
    )


def _find_noise(table: Table) -> None:
    """Creates the table `noise` with the keys of files whose difference is too small, or within the spread of
    the runs."""
    engine, (before, after) = table.engine, _medians(table)
    little = f"weight < greatest({table.least!r}, {NOISE_SHARE} * greatest({before}, {after}))"
    engine.keep(
        "noise", f"SELECT key_id FROM by_file WHERE difference <> 0 AND {little if table.least else 'false'}"
    )
    if table.runs <= 2:
        return
    found = engine.rows(
        f"""SELECT * FROM by_file_call c WHERE abs(difference) >= {table.least!r} AND difference <> 0
  AND NOT EXISTS (SELECT 1 FROM noise n WHERE n.key_id = c.key_id)
UNION ALL BY NAME SELECT * EXCLUDE (weight) FROM by_file f
WHERE difference <> 0 AND NOT EXISTS (SELECT 1 FROM noise n WHERE n.key_id = f.key_id)"""
    )
    judged = {(one["key_id"], table.row("", one).changes[table.ranking].sureness) for one in found}
    sure = {key for key, sureness in judged if sureness is not Sureness.NOISE}
    spread = pa.array(sorted({key for key, _ in judged} - sure), pa.int64())
    engine.bring("spread", pa.table({"key_id": spread}))
    engine.keep("noise", "SELECT key_id FROM noise UNION ALL SELECT key_id FROM spread")


def noise(table: Table) -> Noise:
    """Returns the number of files in the table `noise`, and the sum of their changes."""
    found = table.engine.rows(
        f"""SELECT {_summed_columns(table)}, CAST(coalesce(sum({_FILES}), 0) AS BIGINT) AS files
FROM by_file t JOIN noise n ON n.key_id = t.key_id LEFT JOIN keys k ON k.key_id = t.key_id"""
    )[0]
    changes = table.row("", found).changes
    return Noise(found["files"], changes[table.ranking], table.least, NOISE_SHARE if table.least else 0.0)


def totals(table: Table) -> Mapping[str, Change]:
    """Returns sums over all calls that do not wait for another process or the network."""
    (found,) = table.engine.rows(_folded(table, ""))
    return table.row("", found).changes


def parts(table: Table) -> tuple[Row, ...]:
    """Returns one row of sums for each kind of I/O."""
    rows = table.engine.rows(_folded(table, "part", "true"))
    order = ("data", "metadata", "seek", "sync", "map", "other", "waiting")
    rows.sort(key=lambda row: order.index(row["part"]))
    return tuple(table.row(row["part"], row) for row in rows)


def calls(table: Table, most: int) -> Listing:
    """Returns the calls that changed most."""
    source = f"SELECT *, call AS name, {_difference(table)} AS difference FROM ({_folded(table, 'call')}) t"
    return _listing(table, source, "abs(difference) DESC, call", most, files=False)


def changed_files(table: Table, most: int, faster: bool) -> Listing:
    """Returns the files that take less time than before if FASTER is true, and otherwise those that take more
    time. If times are not comparable, numbers of calls are compared."""
    source = f"""SELECT * FROM by_file ANTI JOIN noise USING (key_id)
WHERE difference {"<" if faster else ">"} 0"""
    return _listing(table, source, "weight DESC, key_id", most, files=True)


def unchanged_files(table: Table) -> int:
    """Returns the number of files that did not change at all."""
    (row,) = table.engine.rows(
        f"""SELECT CAST(coalesce(sum({_FILES}), 0) AS BIGINT) AS files
FROM by_file t JOIN keys k ON k.key_id = t.key_id WHERE difference = 0"""
    )
    return int(row["files"])


def every_file(table: Table) -> Iterator[Row]:
    """Yields a row for each file, those that changed most first."""
    for found in table.engine.rows(f"{_NAMED.format(source='by_file')} ORDER BY weight DESC, t.key_id"):
        yield _file_row(table, found, ())


def _listing(table: Table, source: str, order: str, most: int, files: bool) -> Listing:
    engine = table.engine
    engine.keep("ranked", f"SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM ({source}) t")
    first = f"(SELECT * FROM ranked WHERE place <= {most})"
    found = engine.rows(
        f"{_NAMED.format(source=first) if files else f'SELECT * FROM {first} t'} ORDER BY place"
    )
    other, total = (
        _summed(table, name, where) for name, where in (("other", f"place > {most}"), ("total", "true"))
    )
    (row,) = engine.rows(_COUNTED if files else "SELECT count(*) AS of, 0 AS files FROM ranked")
    of_file = _calls_of(table, [one["key_id"] for one in found]) if files else {}
    rows = tuple(
        _file_row(table, one, of_file.get(one["key_id"], ())) if files else table.row(one["name"], one)
        for one in found
    )
    return Listing(rows, other if row["of"] > most else None, total, int(row["of"]), int(row["files"]))


def _summed(table: Table, name: str, where: str) -> Row:
    (found,) = table.engine.rows(f"SELECT {_summed_columns(table)} FROM ranked WHERE {where}")
    return table.row(name, found)


def _file_row(table: Table, found: Mapping[str, Any], own_calls: Sequence[Row]) -> Row:
    files = (found["files_before"] or 0, found["files_after"] or 0)
    return table.row(
        found["name"] or "", found, matched=found["matched"] or "", files=files, calls=tuple(own_calls)
    )


def _calls_of(table: Table, keys: Sequence[int]) -> dict[int, list[Row]]:
    """Returns for each file the calls that contribute most to its change."""
    listed = ", ".join(map(str, keys)) or "NULL"
    found = table.engine.rows(
        f"""SELECT * FROM (SELECT *, row_number() OVER w AS place,
    max(abs(difference)) OVER (PARTITION BY key_id) AS most
  FROM by_file_call WHERE key_id IN ({listed})
  WINDOW w AS (PARTITION BY key_id ORDER BY abs(difference) DESC, call)) t
WHERE place <= {MOST_CALLS_OF_FILE} AND abs(difference) >= {_TELLING_SHARE} * most ORDER BY key_id, place"""
    )
    grouped: dict[int, list[Row]] = {}
    for one in found:
        grouped.setdefault(one["key_id"], []).append(table.row(one["call"], one))
    return grouped
