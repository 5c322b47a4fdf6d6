"""Builds the SELECT that counts calls, from grouping keys and a selection.

Events are first summed by ids alone into the table `cells`. The ids are those of files, calls, tasks and
error numbers, as far as the keys need them. Names are then joined only to the few rows of this table. A call
on two files (such as rename) has two rows in `events`. The bytes of each row count for its file. The count
and time belong to the call, so the second row is counted only if the first one is not in the same group
(docs/explanation/store.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from iodock.program.relations.keys import COUNTED_FILES, Key
from iodock.program.relations.patterns import FILES, keep_patterns
from iodock.program.relations.selection import Selection
from iodock.program.relations.sites import FRAMES, LINES, keep_frames, keep_lines, need_sites
from iodock.program.store import Store
from iodock.shared.answer import Column

CELLS = "cells"
GROUPS = "call_groups"
INTERFACE_KINDS = "interface_kinds"
INTERFACE_IDS = "interface_ids"
COSTLIEST = ("total_time_ns DESC NULLS LAST", "sys_cpu_time_ns DESC NULLS LAST", "count DESC")

MEASURES = (
    Column(
        "count", "int", "calls", "measure", "calls: succeeded, failed and without result", importance="first"
    ),
    Column("success", "int", "calls", "measure", "calls that succeeded", importance="last"),
    Column("failed", "int", "calls", "measure", "calls that returned an error"),
    Column(
        "no_result",
        "int",
        "calls",
        "measure",
        "calls that never returned (exit, killed threads)",
        importance="last",
    ),
    Column("errnos", "map", "calls", "detail", "failed calls by error: name -> count"),
    Column(
        "total_time_ns",
        "int",
        "ns",
        "measure",
        "time inside the calls, added up over all threads; may exceed wall time",
        importance="first",
    ),
    Column("mean_time_ns", "float", "ns", "measure", "mean time of a call"),
    Column("min_time_ns", "int", "ns", "measure", "time of the shortest call", importance="last"),
    Column("max_time_ns", "int", "ns", "measure", "time of the longest call"),
    Column(
        "sys_cpu_time_ns",
        "int",
        "ns",
        "measure",
        "system CPU time, if the source has it (truss -E)",
        importance="first",
    ),
    Column("calls_per_s", "float", "1/s", "measure", "calls per second inside the calls", importance="last"),
    Column(
        "bytes_per_s",
        "float",
        "bytes/s",
        "measure",
        "bytes transferred per second inside the calls",
        importance="last",
    ),
    Column("read_bytes", "int", "bytes", "measure", "bytes that reads transferred", importance="first"),
    Column("written_bytes", "int", "bytes", "measure", "bytes that writes transferred", importance="first"),
    Column(
        "io_count",
        "int",
        "calls",
        "measure",
        "calls that transferred bytes, or found the end of the file",
        importance="last",
    ),
    Column("mean_size_bytes", "float", "bytes", "measure", "mean size of a transfer"),
    Column("min_size_bytes", "int", "bytes", "measure", "size of the smallest transfer", importance="last"),
    Column("max_size_bytes", "int", "bytes", "measure", "size of the largest transfer", importance="last"),
)
FILE_COUNT = Column(
    "file_count", "int", "files", "measure", "number of files that the row represents", importance="first"
)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Holds the keys of an answer, and determines the ids by which events must be summed for them."""

    keys: tuple[Key, ...]

    @property
    def by_file(self) -> bool:
        """Returns whether a key depends on the file."""
        return any(key.origin == "file" for key in self.keys)

    @property
    def by_call(self) -> bool:
        """Returns whether a key depends on the call."""
        return any(key.origin == "call" for key in self.keys)

    @property
    def by_task(self) -> bool:
        """Returns whether a key depends on the task."""
        return any(key.origin == "task" for key in self.keys)

    @property
    def by_site(self) -> bool:
        """Returns whether a key depends on the source line from which a call was made."""
        return any(key.origin == "site" for key in self.keys)

    @property
    def by_stack(self) -> bool:
        """Returns whether a key depends on the call's stack."""
        return any(key.origin == "stack" for key in self.keys)

    @property
    def by_interface(self) -> bool:
        """Returns whether a key depends on the interface call inside which a system call was made."""
        return any(key.origin == "interface" for key in self.keys)

    @property
    def counts_files(self) -> bool:
        """Returns whether rows show the number of files that they represent."""
        return any(key.name in COUNTED_FILES for key in self.keys)

    @property
    def by_pattern(self) -> bool:
        """Returns whether a key is the name pattern of files."""
        return any(key.name == "pattern" for key in self.keys)

    @property
    def ids(self) -> list[tuple[str, str]]:
        """Returns for each id the SQL expression over events `e`, and the name of its column in the table of
        cells."""
        ids = [("e.errno_id", "errno_id")]
        if self.by_call:
            ids.append(("e.call_id", "call_id"))
        if self.by_task:
            ids.append(("e.utid", "utid"))
        if self.by_interface:
            ids.append(("k.interface_id", "interface_id"))
        if self.by_site:
            ids.append(("e.site_id", "site_id"))
        if self.by_stack:
            ids.append(("e.stack_id", "stack_id"))
        if self.by_file:
            ids += [
                ("e.file_id", "file_id"),
                ("CASE WHEN e.side IN (2, 4) THEN e.other_file_id END", "other_file_id"),
            ]
        return ids

    @property
    def columns(self) -> tuple[Column, ...]:
        """Returns the columns of an answer with these keys: the keys, the number of files if needed, and the
        measures."""
        counted = (FILE_COUNT,) if self.counts_files else ()
        return (*(key.column for key in self.keys), *counted, *MEASURES)


def cells_sql(grouping: Grouping, selection: Selection) -> str:
    """Returns the SQL for events summed by ids."""
    ids = ", ".join(f"{expression} AS {name}" for expression, name in grouping.ids)
    numbers = ", ".join(str(at + 1) for at in range(len(grouping.ids) + 1))
    kinds = f"LEFT JOIN {INTERFACE_IDS} k ON k.id = e.interface_call_id "
    interfaces = kinds if grouping.by_interface else ""
    return f"""SELECT {ids}, {selection.again} AS again,
  count(*) AS calls, count(e.result) AS results,
  count(e.dur) AS timed, sum(e.dur) AS time, min(e.dur) AS shortest, max(e.dur) AS longest,
  sum(e.sys_cpu_ns) AS cpu,
  sum(CASE WHEN e.direction = 1 THEN e.bytes END) AS read_bytes,
  sum(CASE WHEN e.direction = 2 THEN e.bytes END) AS written_bytes,
  count(e.bytes) AS transfers, min(e.bytes) AS smallest, max(e.bytes) AS largest
FROM events e {interfaces}{selection.joins} {selection.where}
GROUP BY {numbers}"""


def keep_interfaces(store: Store) -> None:
    """Creates the tables `interface_kinds` and `interface_ids`. The first gives each pair of interface and
    call a number. The second has this number for each recorded call of an interface."""
    store.keep(
        INTERFACE_KINDS,
        """SELECT interface, call, row_number() OVER (ORDER BY interface, call) AS interface_id
FROM (SELECT DISTINCT interface, call FROM interface_calls) z""",
    )
    store.keep(
        INTERFACE_IDS,
        f"""SELECT c.id, k.interface_id
FROM interface_calls c JOIN {INTERFACE_KINDS} k USING (interface, call)""",
    )


def _named_cells(grouping: Grouping) -> str:
    joins = ["LEFT JOIN errnos x ON x.id = i.errno_id"]
    if grouping.by_call:
        joins.append("LEFT JOIN calls c ON c.id = i.call_id")
    if grouping.by_task:
        joins.append("LEFT JOIN processes p ON p.utid = i.utid")
    if grouping.by_interface:
        joins.append(f"LEFT JOIN {INTERFACE_KINDS} k ON k.interface_id = i.interface_id")
    if grouping.by_site:
        joins.append(f"LEFT JOIN {LINES} l ON l.site_id = i.site_id")
    if grouping.by_stack:
        joins.append(f"LEFT JOIN {FRAMES} w ON w.stack_id = i.stack_id")
    if grouping.by_file:
        files = FILES if grouping.by_pattern else "files"
        joins.append(f"LEFT JOIN {files} f ON f.file_id = i.file_id")
        joins.append(f"LEFT JOIN {files} g ON g.file_id = i.other_file_id")
    return f"{CELLS} i {' '.join(joins)}"


def _counted(grouping: Grouping) -> str:
    differs = [
        f"{key.of('f')} IS DISTINCT FROM {key.of('g')}" for key in grouping.keys if key.origin == "file"
    ]
    return f"(NOT i.again OR {' OR '.join(differs)})" if differs else "NOT i.again"


def measures_sql(counted: str) -> str:
    """Returns the SQL for the measures over cells `i`. COUNTED is a condition for the cells whose calls
    count. The SQL casts sums of integers back to integers, because the engine would return wider types."""
    total = f"CAST(sum(i.time) FILTER (WHERE {counted}) AS BIGINT)"
    timed = f"CAST(sum(i.timed) FILTER (WHERE {counted}) AS BIGINT)"
    moved = "CAST(sum(coalesce(i.read_bytes, 0) + coalesce(i.written_bytes, 0)) AS DOUBLE)"
    transfers = "CAST(sum(i.transfers) AS BIGINT)"

    def whole(expression: str, condition: str = "") -> str:
        extra = f" AND {condition}" if condition else ""
        return f"CAST(coalesce(sum({expression}) FILTER (WHERE {counted}{extra}), 0) AS BIGINT)"

    return f"""{whole("i.calls")} AS count,
  {whole("i.results", "i.errno_id IS NULL")} AS success,
  {whole("i.calls", "i.errno_id IS NOT NULL")} AS failed,
  {whole("i.calls - i.results", "i.errno_id IS NULL")} AS no_result,
  {total} AS total_time_ns,
  CAST({total} AS DOUBLE) / nullif({timed}, 0) AS mean_time_ns,
  CAST(min(i.shortest) FILTER (WHERE {counted}) AS BIGINT) AS min_time_ns,
  CAST(max(i.longest) FILTER (WHERE {counted}) AS BIGINT) AS max_time_ns,
  CAST(sum(i.cpu) FILTER (WHERE {counted}) AS BIGINT) AS sys_cpu_time_ns,
  CAST({timed} AS DOUBLE) * 1000000000 / nullif({total}, 0) AS calls_per_s,
  CASE WHEN {transfers} > 0 THEN {moved} * 1000000000 / nullif({total}, 0) END AS bytes_per_s,
  CAST(sum(i.read_bytes) AS BIGINT) AS read_bytes,
  CAST(sum(i.written_bytes) AS BIGINT) AS written_bytes,
  {whole("i.transfers")} AS io_count,
  {moved} / nullif({transfers}, 0) AS mean_size_bytes,
  CAST(min(i.smallest) AS BIGINT) AS min_size_bytes,
  CAST(max(i.largest) AS BIGINT) AS max_size_bytes"""


def groups_sql(grouping: Grouping) -> str:
    """Returns the SQL that computes one row per key from the stored cells."""
    keys = ", ".join(f'{key.of("f")} AS "{key.name}"' for key in grouping.keys)
    numbers = ", ".join(str(at + 1) for at in range(len(grouping.keys)))
    files = "count(DISTINCT i.file_id) AS file_count, " if grouping.counts_files else ""
    return (
        f"SELECT {keys}, {files}{measures_sql(_counted(grouping))} FROM {_named_cells(grouping)} "
        f"GROUP BY {numbers} HAVING count > 0 OR io_count > 0"
    )


def errnos_sql(grouping: Grouping) -> str:
    """Returns the SQL that computes one row per key that has failures from the stored cells. The row maps
    each error to its number of calls."""
    keys = [f'{key.of("f")} AS "{key.name}"' for key in grouping.keys]
    listed_keys = "".join(f"{key}, " for key in keys)
    numbers = ", ".join(str(at + 1) for at in range(len(keys) + 1))
    failures = (
        f"SELECT {listed_keys}x.name AS error, CAST(sum(i.calls) AS BIGINT) AS failures "
        f"FROM {_named_cells(grouping)} "
        f"WHERE i.errno_id IS NOT NULL AND {_counted(grouping)} GROUP BY {numbers}"
    )
    names = ", ".join(f'"{key.name}"' for key in grouping.keys)
    listed = f"{names}, " if names else ""
    group = f" GROUP BY {names}" if names else ""
    pairs = "array_agg(ROW(error, failures) ORDER BY failures DESC, error)"
    return f"SELECT {listed}map_from_entries({pairs}) AS errnos FROM ({failures}) z{group}"


def keep_groups(store: Store, grouping: Grouping, selection: Selection, ordered: tuple[str, ...]) -> None:
    """Creates the table `call_groups`, which has one row per key with all measures. The column `place` is the
    row's position in the order."""
    if grouping.by_interface:
        keep_interfaces(store)
    if grouping.by_site or grouping.by_stack:
        need_sites(store)
        keep_lines(store)
        keep_frames(store)
    store.keep(CELLS, cells_sql(grouping, selection))
    if grouping.by_pattern:
        keep_patterns(store)
    keys = [f'"{key.name}"' for key in grouping.keys]
    order = [*ordered, *(f"g.{name} NULLS LAST" for name in keys)]
    same = " AND ".join(f"m.{name} IS NOT DISTINCT FROM g.{name}" for name in keys)
    store.keep(
        GROUPS,
        f"""WITH m AS ({errnos_sql(grouping)}), g AS ({groups_sql(grouping)})
SELECT g.*, m.errnos, row_number() OVER (ORDER BY {", ".join(order)}) AS place
FROM g LEFT JOIN m ON {same}""",
    )


def keep_other(store: Store, grouping: Grouping, shown: int) -> None:
    """Creates the table `cells_other` with the cells of the rows that an answer leaves out. A call on two
    files counts here if one of its files is in a left-out row, even if the other is in a shown row. A call
    with both files in left-out rows counts once."""
    names = ", ".join(f'"{key.name}"' for key in grouping.keys)
    store.keep("shown_groups", f"SELECT {names}, true AS shown FROM {GROUPS} WHERE place <= {shown}")

    def same(alias: str, file: str) -> str:
        pairs = (f'{alias}."{key.name}" IS NOT DISTINCT FROM {key.of(file)}' for key in grouping.keys)
        return " AND ".join(pairs)

    other = f"LEFT JOIN shown_groups t ON i.again AND {same('t', 'g')}" if grouping.by_file else ""
    shown_too = "t.shown IS NOT NULL" if grouping.by_file else "false"
    store.keep(
        "cells_other",
        f"SELECT i.* EXCLUDE (again), i.again AND NOT ({shown_too}) AS again FROM {_named_cells(grouping)} "
        f"LEFT JOIN shown_groups s ON {same('s', 'f')} {other} WHERE s.shown IS NULL",
    )


def one_row(store: Store, cells: str) -> dict[str, object]:
    """Returns the measures over all of the stored cells as one row."""
    (row,) = store.rows(f"SELECT {measures_sql('NOT i.again')} FROM {cells} i")
    errnos = store.rows(
        f"SELECT x.name AS error, CAST(sum(i.calls) AS BIGINT) AS failures FROM {cells} i "
        "JOIN errnos x ON x.id = i.errno_id WHERE NOT i.again GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    return row | {"errnos": {one["error"]: one["failures"] for one in errnos}}
