"""Collects the data of a report from a store. Analyses compute all numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from iodock.program.store import Store
from iodock.program.views.report.ask import (
    Names,
    PageTable,
    Row,
    ask,
    page_table,
    rows_of,
    without_empty_columns,
)
from iodock.program.views.report.details import file_details
from iodock.program.views.report.flame import flame_data
from iodock.program.views.report.tasks import processes_table
from iodock.program.views.report.times import Axis, sample_series, timeline_series
from iodock.program.views.verdict import Overview, wall_parts, whole_ns

CALL_COLUMNS = (
    "call", "class", "count", "success", "failed", "no_result", "total_time_ns", "mean_time_ns",
    "min_time_ns", "max_time_ns", "sys_cpu_time_ns", "read_bytes", "written_bytes", "calls_per_s",
    "bytes_per_s",
)  # fmt: skip
CALL_FILE_COLUMNS = (
    "file", "count", "failed", "total_time_ns", "mean_time_ns", "max_time_ns", "sys_cpu_time_ns",
    "read_bytes", "written_bytes",
)  # fmt: skip
PATTERN_COLUMNS = ("pattern", "file_count", *CALL_FILE_COLUMNS[1:])
FILE_FACTS = ("kind", "fs_type", "size_bytes", "access_pattern")
RANK_COLUMNS = (
    "rank",
    "count",
    "failed",
    "total_time_ns",
    "mean_time_ns",
    "max_time_ns",
    "read_bytes",
    "written_bytes",
)
ERROR_COLUMNS = ("call", "errno", "file", "count", "total_time_ns")
OPTIONAL = (
    "no_result", "sys_cpu_time_ns", "fs_type", "size_bytes", "access", "total_time_ns", "mean_time_ns",
    "min_time_ns", "max_time_ns", "calls_per_s", "bytes_per_s", "rank", "host", "exit", "start_ns",
    "end_ns", "command",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits the amount of data in a page."""

    files: int = 300
    patterns: int = 100
    files_of_call: int = 20
    detailed: int = 24
    boxes: int = 3_000
    failures: int = 100
    processes: int = 200
    ranks: int = 200
    intervals: int = 240


def page_data(store: Store, overview: Overview, limits: Limits | None = None) -> dict[str, Any]:
    """Returns the tables of the page. LIMITS restricts the size of each."""
    limits = limits or Limits()
    names = Names()
    axis = Axis.of(store, limits.intervals)
    timed = overview.durations
    calls, total = _calls(store)
    files, call_files = _files(store, names, total, limits)
    chosen = _to_detail(files, call_files, overview, names, limits)
    details = file_details(store, names, chosen, axis)
    shown = _worth_showing(files, details)
    return {
        "run": {"durations": timed, "store": store.name},
        "verdict": _split(overview),
        "calls": without_empty_columns(calls, OPTIONAL),
        "files": without_empty_columns(files, OPTIONAL),
        "patterns": _patterns(store, names, limits),
        "call_files": {call: without_empty_columns(table, OPTIONAL) for call, table in call_files.items()},
        "details": details,
        "flame": flame_data(store, limits.boxes),
        "timeline": timeline_series(store, axis),
        "sizes": _sizes(store),
        "samples": sample_series(store, axis),
        "processes": without_empty_columns(processes_table(store, limits.processes), OPTIONAL),
        "ranks": _ranks(store, limits),
        "failures": without_empty_columns(_failures(store, names, limits), OPTIONAL),
        "first_call": _first(calls["rows"]),
        "first_file": shown[0] if shown else None,
        "print_files": shown[:3],
        "names": names.listed,
    }


def _split(overview: Overview) -> dict[str, Any]:
    parts = [{"name": name, "ns": time} for name, time in wall_parts(overview).items() if time]
    return {"split": parts if overview.durations else [], "whole_ns": whole_ns(overview)}


def _worth_showing(files: PageTable, details: dict[int, dict[str, Any]]) -> list[int]:
    """Returns the numbers of the files to show. Files with charts come first, in the order of their cost.
    No bytes were moved in files without charts."""
    numbers = [row[0] for row in files["rows"]]
    return sorted(numbers, key=lambda number: not details.get(number, {}).get("sizes", {}).get("rows"))


def _first(rows: Sequence[Row]) -> Any:
    return rows[0][0] if rows else None


def _calls(store: Store) -> tuple[PageTable, Row | None]:
    """Returns the table of calls, and the run's totals as a row for the table of files."""
    answer = ask(store, "summary", by=("call", "class"))
    table = page_table(CALL_COLUMNS, rows_of(answer, CALL_COLUMNS), answer.totals)
    return table, page_table(CALL_FILE_COLUMNS, [], answer.totals)["total"]


def _files(
    store: Store, names: Names, total: Row | None, limits: Limits
) -> tuple[PageTable, dict[str, PageTable]]:
    """Returns the table of the files with the highest cost over all calls, and such a table for each call."""
    answer = ask(store, "call_files", top=limits.files_of_call, top_of_all=limits.files)
    tables: dict[str | None, PageTable] = {}
    for call, others, file_count, *row in rows_of(
        answer, ("call", "others", "file_count", *CALL_FILE_COLUMNS)
    ):
        table = tables.setdefault(call, page_table(CALL_FILE_COLUMNS, [], of=0))
        table["of"] += file_count
        if others:
            table["other"] = [None, *row[1:]]
        else:
            table["rows"].append([names.number(row[0]), *row[1:]])
    every = tables.pop(None, page_table(CALL_FILE_COLUMNS, [], of=0))
    return _with_facts(store, names, every | {"total": total}), {
        call: tables[call] for call in tables if call
    }


def _patterns(store: Store, names: Names, limits: Limits) -> PageTable | None:
    """Returns the table of files grouped by similar names. Returns None if no two files have similar
    names."""
    answer = ask(store, "summary", by=("pattern",), top=limits.patterns)
    rows = [[names.number(name), *row] for name, *row in rows_of(answer, PATTERN_COLUMNS)]
    if all(files == 1 for _, files, *_ in rows):
        return None
    table = page_table(PATTERN_COLUMNS, rows, answer.totals)
    return without_empty_columns(table | {"columns": ["file", *PATTERN_COLUMNS[1:]]}, OPTIONAL)


def _with_facts(store: Store, names: Names, table: PageTable) -> PageTable:
    """Returns the table of files with columns about their kinds, and without the row for calls that have
    no file."""
    rows = [row for row in table["rows"] if row[0] is not None]
    facts: dict[int | None, Row] = {}
    if rows:
        known = ask(store, "files", file=[names.listed[row[0]] for row in rows])
        facts = {names.number(row[0]): row[1:] for row in reversed(rows_of(known, ("file", *FILE_FACTS)))}
    nothing: Row = [None] * len(FILE_FACTS)
    return table | {
        "columns": [*CALL_FILE_COLUMNS, "kind", "fs_type", "size_bytes", "access"],
        "rows": [[*row, *facts.get(row[0], nothing)] for row in rows],
        "other": None if table["other"] is None else [*table["other"], *nothing],
        "total": None if table["total"] is None else [*table["total"], *nothing],
    }


def _to_detail(
    files: PageTable, call_files: dict[str, PageTable], overview: Overview, names: Names, limits: Limits
) -> list[int]:
    """Chooses the files that get charts. They are the files of the overview's largest costs, then files
    with the highest cost overall, then the most expensive file of each call, then further files."""
    wanted: Iterable[int | None] = [
        *(names.number(cost.file) for cost in overview.costs if cost.files == 1),
        *(row[0] for row in files["rows"][: limits.detailed // 2]),
        *(table["rows"][0][0] for table in call_files.values() if table["rows"]),
        *(row[0] for row in files["rows"]),
    ]
    return list(dict.fromkeys(number for number in wanted if number is not None))[: limits.detailed]


def _sizes(store: Store) -> PageTable:
    columns = ("direction", "upper_bytes", "count", "total_time_ns")
    return page_table(columns, rows_of(ask(store, "sizes"), columns))


def _ranks(store: Store, limits: Limits) -> PageTable | None:
    answer = ask(store, "summary", by=("rank",), top=limits.ranks)
    rows = rows_of(answer, RANK_COLUMNS)
    if len(rows) < 2:
        return None
    return without_empty_columns(page_table(RANK_COLUMNS, rows, answer.totals), OPTIONAL[5:10])


def _failures(store: Store, names: Names, limits: Limits) -> PageTable:
    answer = ask(store, "errors", top=limits.failures)
    rows = [
        [call, errno, names.number(file), *rest]
        for call, errno, file, *rest in rows_of(answer, ERROR_COLUMNS)
    ]
    return page_table(ERROR_COLUMNS, rows, answer.totals)
