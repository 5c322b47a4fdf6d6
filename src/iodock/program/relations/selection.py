"""Turns filters into conditions on events. Filters on files, calls and tasks are evaluated on the small
tables first, and become sets of ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from iodock import _native
from iodock.program.relations.filters import PATH_KINDS, Filters
from iodock.program.relations.globs import glob_expression, is_glob
from iodock.program.relations.times import instant_ns
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted
from iodock.shared.errors import RequestError, meant
from iodock.shared.units import number_text

CHOSEN_FILES = "chosen_files"
SHARED_LIBRARY = r"(?s).*\.so(?:\.[0-9.]+)*"
_SYSTEM_FOLDERS = ("/proc", "/sys", "/var", "/etc")
_ASKED_FOR = {"end_ts": "BIGINT", "other_file_id": "UINTEGER"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Holds conditions on `events e`. If `by_file` is true, the table `chosen_files` contains the ids of the
    chosen files."""

    conditions: tuple[str, ...]
    by_file: bool
    """Whether only calls on chosen files count; False: all calls, including those without a file."""
    fileless: bool = False
    """Whether calls without a file count, too, if `by_file` is true."""
    tasks: str = ""
    """Condition on `processes p` from --pid, --tid, --rank and --host; empty: all processes."""
    notes: tuple[str, ...] = ()
    one_end: bool = False
    """Whether a single end of a call with two ends can be chosen, because of --direction."""

    @property
    def is_everything(self) -> bool:
        """Returns whether every call is chosen, with both of its files if it has two."""
        return not self.conditions and not self.by_file and not self.one_end

    @property
    def joins(self) -> str:
        """Returns the SQL joins that keep only the chosen rows of `events e`. `o.file_id` is the call's other
        file if that is also chosen, and NULL otherwise."""
        if not self.by_file:
            return ""
        own = "LEFT JOIN" if self.fileless else "JOIN"
        return (
            f"{own} {CHOSEN_FILES} f ON e.file_id = f.file_id "
            f"LEFT JOIN {CHOSEN_FILES} o ON e.other_file_id = o.file_id"
        )

    @property
    def where(self) -> str:
        """Returns the SQL clause WHERE with the conditions, or an empty text if there are none."""
        conditions = list(self.conditions)
        if self.by_file and self.fileless:
            conditions.append("(e.file_id IS NULL OR f.file_id IS NOT NULL)")
        return f"WHERE {' AND '.join(conditions)}" if conditions else ""

    def and_where(self, *more: str) -> str:
        """Returns the SQL clause WHERE with the conditions and MORE."""
        return f"{self.where} AND {' AND '.join(more)}" if self.where else f"WHERE {' AND '.join(more)}"

    @property
    def again(self) -> str:
        """Returns the SQL condition that the row is the second row of a call on two files, and that its first
        row is also chosen. A count of calls must leave such rows out."""
        if self.one_end:
            return "false"
        other = "o.file_id IS NOT NULL" if self.by_file else "true"
        if self.by_file and self.fileless:
            other = "(o.file_id IS NOT NULL OR e.other_file_id IS NULL)"
        return f"(e.side IN (2, 4) AND {other})"

    @property
    def again_in_file(self) -> str:
        """Returns the SQL condition that the row is the second row of a call whose two files are the same
        file. A count of calls by file must leave such rows out."""
        if self.one_end:
            return "false"
        return "(e.side IN (2, 4) AND e.other_file_id IS NOT DISTINCT FROM e.file_id)"

    @property
    def from_events(self) -> str:
        """Returns the SQL clauses FROM and WHERE for the chosen rows of `events e`."""
        return f"FROM events e {self.joins} {self.where}"


def as_events(table: str, *lacking: str) -> str:
    """Returns the SQL that adds columns to a table whose rows are not events, so that a selection can be
    applied to it. LACKING are the names of these columns, whose values are NULL."""
    columns = ", ".join(f"NULL::{_ASKED_FOR[name]} AS {name}" for name in lacking)
    return f"(SELECT *, {columns} FROM {table})"


def select(store: Store, filters: Filters) -> Selection:
    """Evaluates the filters. Raises RequestError if a value is invalid or names something that the store does
    not contain."""
    notes: list[str] = []
    conditions = [*_time_conditions(store, filters, notes), *_outcome_conditions(filters)]
    if filters.call:
        conditions.append(_call_condition(store, filters.call, notes))
    tasks = _task_condition(store, filters)
    if tasks:
        conditions.append(f"e.utid IN (SELECT p.utid FROM processes p WHERE {tasks})")
    if filters.job:
        check_job(store, filters.job)
    by_file, fileless = choose_files(store, filters, notes)
    one_end = filters.direction is not None
    return Selection(tuple(conditions), by_file, fileless, tasks, tuple(notes), one_end)


def _time_conditions(store: Store, filters: Filters, notes: list[str]) -> Iterable[str]:
    stamp, run = "coalesce(e.ts, e.end_ts)", store.manifest
    if filters.since is not None:
        since = instant_ns(filters.since, run)
        if run.last_ts is not None and since > run.last_ts:
            notes.append(
                f"the run was over before --since {filters.since}"
                if run.wall_ns is None
                else f"the run was over before --since {filters.since}, it took "
                f"{number_text(run.wall_ns / 1e9)} s"
            )
        yield f"{stamp} >= {since}"
    if filters.until is not None:
        until = instant_ns(filters.until, run)
        if run.first_ts is not None and until <= run.first_ts:
            notes.append(f"the run began after --until {filters.until}")
        yield f"{stamp} < {until}"


def _outcome_conditions(filters: Filters) -> Iterable[str]:
    if filters.outcome == "failed":
        yield "e.errno_id IS NOT NULL"
    if filters.outcome == "succeeded":
        yield "e.errno_id IS NULL AND e.result IS NOT NULL"
    if filters.min_time_ns is not None:
        yield f"e.dur >= {filters.min_time_ns}"
    if filters.direction is not None:
        yield f"e.direction = {1 if filters.direction == 'read' else 2}"


def _call_condition(store: Store, wanted: tuple[str, ...], notes: list[str]) -> str:
    calls = store.rows("SELECT id, name, family, class FROM calls ORDER BY id")
    names = {call["name"] for call in calls}
    ids: set[int] = set()
    for one in wanted:
        column, _, value = one.partition(":") if one.startswith(("family:", "class:")) else ("name", "", one)
        condition = f"{column} = {quoted(value)}"
        if column == "name" and value not in names and is_glob(value):
            condition = f"regexp_full_match(name, {quoted(glob_expression('/' + value).replace('/', '', 1))})"
        found = {row["id"] for row in store.rows(f"SELECT id FROM calls WHERE {condition}")}
        if not found:
            _check_call(column, value, calls)
            notes.append(f"this store has no call {one}")
        ids |= found
    return _among("e.call_id", ids)


def _check_call(column: str, value: str, stored: list[dict[str, Any]]) -> None:
    """Raises RequestError if neither the store nor the list of known calls contains this name, family or
    class."""
    at = ("name", "family", "class").index(column)
    known = {row[at] for row in _native.known_calls()} | {one[column] for one in stored}
    if value not in known and not is_glob(value):
        message = (
            f"no such call: {value}"
            if column == "name"
            else f"no such family of calls: {value}"
            if column == "family"
            else f"no such class of calls: {value}"
        )
        hint = meant(value, sorted(filter(None, known)), "iodock explain lists calls, families and classes")
        raise RequestError(message, hint)


def _among(column: str, ids: Iterable[int]) -> str:
    listed = ", ".join(map(str, sorted(ids)))
    return f"{column} IN ({listed})" if listed else "false"


def _task_condition(store: Store, filters: Filters) -> str:
    conditions = [
        _among(f"p.{name}", getattr(filters, name))
        for name in ("pid", "tid", "rank")
        if getattr(filters, name)
    ]
    if filters.host:
        own = (store.manifest.raw.get("host") or {}).get("name")
        hosts = ", ".join(map(quoted, filters.host))
        conditions.append(f"coalesce(p.host, {quoted(own) if own else 'NULL'}) IN ({hosts})")
    return " AND ".join(conditions)


def check_job(store: Store, jobs: tuple[str, ...]) -> None:
    """Raises RequestError if the store does not say to which job it belongs, or if it is none of JOBS."""
    job = store.manifest.raw.get("job") or {}
    if not job:
        raise RequestError("this store does not say which job it belongs to", "leave --job out")
    if not {job.get("id"), job.get("name")} & set(jobs):
        raise RequestError(f"this store is of job {job.get('id')}, not {', '.join(jobs)}")


def choose_files(store: Store, filters: Filters, notes: list[str]) -> tuple[bool, bool]:
    """Creates the table `chosen_files` if a filter restricts the files. Returns whether it did, and whether
    calls without a file are chosen, too."""
    conditions: list[str] = []
    named: list[str] = []
    literal = False
    if filters.file:
        named, literal = _name_conditions(store, filters.file)
        conditions.append(f"({' OR '.join(named)})")
    every_kind = "all" in filters.kind or (literal and not filters.kind)
    if not every_kind:
        conditions.append(_kind_condition(filters.kind or ("file",)))
    conditions += _exclusions(filters)
    if not conditions:
        return False, False
    store.keep(CHOSEN_FILES, f"SELECT file_id FROM files WHERE {' AND '.join(conditions)}")
    if filters.file and not store.rows(f"SELECT 1 FROM {CHOSEN_FILES} LIMIT 1"):
        notes.append(f"no file here matches {', '.join(filters.file)}")
    return True, "all" in filters.kind and not filters.file and not filters.user_files


def _name_conditions(store: Store, names: tuple[str, ...]) -> tuple[list[str], bool]:
    listed = ", ".join(map(quoted, names))
    there = {row["name"] for row in store.rows(f"SELECT DISTINCT name FROM files WHERE name IN ({listed})")}
    conditions = [f"name = {quoted(name)}" for name in names if name in there]
    for name in names:
        if name not in there:
            conditions.append(f"regexp_full_match(name, {quoted(glob_expression(name))})")
    return conditions, bool(there)


def _kind_condition(kinds: tuple[str, ...]) -> str:
    wanted = {one for kind in kinds for one in (PATH_KINDS if kind == "file" else (kind,))}
    return f"kind IN ({', '.join(map(quoted, sorted(wanted)))})"


def _exclusions(filters: Filters) -> Iterable[str]:
    folders = list(filters.exclude_folder)
    if filters.user_files:
        folders += _SYSTEM_FOLDERS
        yield "kind NOT IN ('socket', 'standard')"
        yield f"NOT regexp_full_match(name, {quoted(SHARED_LIBRARY)})"
    for folder in folders:
        bare = folder.rstrip("/")
        yield f"NOT (name = {quoted(bare)} OR starts_with(name, {quoted(bare + '/')}))"
    for ending in filters.exclude_ending:
        yield f"NOT ends_with(name, {quoted('.' + ending.removeprefix('.'))})"
