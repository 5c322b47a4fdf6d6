"""Selects profiles. A filter becomes an SQL condition on profiles or on the names of their files."""

from __future__ import annotations

from dataclasses import replace

from iodock.program.relations.filters import Filters
from iodock.program.relations.patterns import FILES, keep_patterns
from iodock.program.relations.selection import CHOSEN_FILES, choose_files
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted
from iodock.shared.errors import RequestError

CHOSEN = "chosen_profiles"
"""Name of the stored table of chosen profiles, with the facts about their file and process."""
GROUND = ("posix", "stdio")
"""The lowest interfaces above the system. The bytes of higher interfaces pass through these, and no byte
passes through both."""
_ABOUT_FILES = ("file", "exclude_folder", "exclude_ending", "kind", "user_files")
_ABOUT_TASKS = ("pid", "rank", "host", "job")
_SHARED = "files that were counted for all ranks together belong to no single rank, and are not shown"
_FOLDED = (
    "files that were counted together by a pattern of their names are not shown: they can't be separated"
)


def choose(store: Store, filters: Filters) -> tuple[str, ...]:
    """Creates the table `chosen_profiles` and returns notes for the answer. Raises RequestError for filters
    that counters do not support."""
    _check(store, filters)
    notes: list[str] = []
    conditions = [*_of_tasks(store, filters, notes), *_of_files(store, filters, notes)]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    store.keep(CHOSEN, _chosen_sql(store, where))
    return tuple(notes)


def _chosen_sql(store: Store, where: str) -> str:
    keep_patterns(store)
    # `processes` has one row for each thread, and the threads of a process have the same process id. Without
    # the grouping, each profile would appear once per thread.
    tasks = "(SELECT upid, any_value(pid) AS pid FROM processes GROUP BY upid)"
    return f"""SELECT p.* EXCLUDE (pattern), coalesce(f.name, p.pattern) AS file,
  coalesce(f.pattern, p.pattern) AS pattern, f.folder, f.ending, f.kind, f.mount_point, f.fs_type,
  f.size_bytes, t.pid
FROM profiles p LEFT JOIN {FILES} f ON f.file_id = p.file_id LEFT JOIN {tasks} t ON t.upid = p.upid {where}"""


def _check(store: Store, filters: Filters) -> None:
    for name in filters.given():
        if name not in (*_ABOUT_FILES, *_ABOUT_TASKS):
            what = {"min_time_ns": "min_time", "outcome": "failed or succeeded"}.get(name, name)
            hint = (
                "they do not show single calls; filters: "
                f"{', '.join((*_ABOUT_FILES, *_ABOUT_TASKS))}. For more "
                f"{store.manifest.calls_hint}"
            )
            raise RequestError(f"counters can't be filtered by {what}", hint)


def _of_tasks(store: Store, filters: Filters, notes: list[str]) -> list[str]:
    found = []
    if filters.rank:
        found.append(f"p.rank IN ({', '.join(map(str, filters.rank))})")
        if store.rows("SELECT 1 FROM profiles WHERE rank IS NULL AND ranks > 1 LIMIT 1"):
            notes.append(_SHARED)
    for name, column in (("pid", "t.pid"), ("host", "p.host")):
        if values := getattr(filters, name):
            table = "profiles p LEFT JOIN processes t ON t.upid = p.upid"
            if not store.rows(f"SELECT 1 FROM {table} WHERE {column} IS NOT NULL LIMIT 1"):
                what = "processes' ids" if name == "pid" else "hosts"
                hint = f"leave --{name} out. To see them, {store.manifest.calls_hint}"
                raise RequestError(
                    f"counters can't be filtered by {name}: these do not have the {what}", hint
                )
            listed = ", ".join(quoted(one) if isinstance(one, str) else str(one) for one in values)
            found.append(f"{column} IN ({listed})")
    if filters.job:
        found.append(f"p.job IN ({', '.join(map(quoted, filters.job))})")
    return found


def _of_files(store: Store, filters: Filters, notes: list[str]) -> list[str]:
    chosen = Filters(**{name: getattr(filters, name) for name in _ABOUT_FILES})
    usual = not any(getattr(chosen, name) for name in _ABOUT_FILES)
    if "light" not in store.manifest.source and not chosen.kind and not chosen.file:
        # Darshan counts everything as a file, including standard streams. Without a filter by the user, all
        # kinds are therefore chosen.
        chosen = replace(chosen, kind=("all",))
    by_file, _ = choose_files(store, chosen, notes)
    if not by_file:
        return []
    if usual:
        # Combined counters belong to several files whose kind is not known. They are kept.
        return [f"(p.pattern IS NOT NULL OR p.file_id IN (SELECT file_id FROM {CHOSEN_FILES}))"]
    if store.rows("SELECT 1 FROM profiles WHERE file_id IS NULL LIMIT 1"):
        notes.append(_FOLDED)
    return [f"p.file_id IN (SELECT file_id FROM {CHOSEN_FILES})"]
