"""Provides the single accesses that some sources record in addition to counters, with the columns of
events."""

from __future__ import annotations

import dataclasses

from iodock.program.relations.filters import Filters
from iodock.program.relations.selection import CHOSEN_FILES, check_job, choose_files
from iodock.program.relations.times import instant_ns
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted
from iodock.shared.errors import RequestError

TRACED = "traced"
_FIRST = (
    "these are only the first reads and writes of each process (--light-first); to see all record without "
    "--light"
)
_LIGHT_HINT = "record without --light, or with --light-first N for the first ones of each process"
_DARSHAN_HINT = (
    "to get these, run with Darshan's extended tracing (DXT_ENABLE_IO_TRACE=1, since Darshan 3.4.0 "
    "DARSHAN_MOD_ENABLE=DXT_POSIX,DXT_MPIIO), or record the program"
)
_REFUSED = ("call", "pid", "tid", "outcome")
_FILES = ("file", "exclude_folder", "exclude_ending", "kind", "user_files")
_COLUMNS = """file_id, interface, rank, host, thread, CASE WHEN is_write THEN 2 ELSE 1 END AS direction,
  offset_bytes, bytes, ts, dur, ts + dur AS end_ts"""


def keep_traced(store: Store, filters: Filters) -> tuple[str, ...]:
    """Creates the table `traced` with the chosen accesses in the order in which they ended. Returns notes for
    the answer. Raises RequestError if there are no accesses, or for a filter that they do not support."""
    need_traced(store)
    for name in filters.given():
        if name in _REFUSED:
            what = "failed or succeeded" if name == "outcome" else name
            hint = (
                f"these are reads and writes of a rank that succeeded; for more {store.manifest.calls_hint}"
            )
            raise RequestError(
                f"single accesses in a store of counters can't be filtered by {what}",
                hint,
            )
    notes = [_FIRST] if store.manifest.is_light else []
    conditions = _conditions(store, filters, notes)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    store.keep(TRACED, f"SELECT {_COLUMNS} FROM profile_accesses a {where} ORDER BY end_ts, ts, rank")
    return tuple(notes)


def need_traced(store: Store) -> None:
    """Raises RequestError if the store has only counters and no single accesses."""
    if not store.rows("SELECT 1 FROM profile_accesses LIMIT 1"):
        hint = _LIGHT_HINT if store.manifest.is_light else _DARSHAN_HINT
        raise RequestError(f"{store.name}: holds counters and no single accesses", hint)


def keep_lowest(store: Store) -> tuple[str, ...]:
    """Removes from the table `traced` the accesses of all interfaces but the lowest one, because the same
    bytes may appear in two interfaces. Returns a note if it removed any."""
    found = [row["interface"] for row in store.rows(f"SELECT DISTINCT interface FROM {TRACED} ORDER BY 1")]
    if len(found) < 2:
        return ()
    lowest = "posix" if "posix" in found else found[0]
    store.keep(TRACED, f"SELECT * FROM {TRACED} WHERE interface = {quoted(lowest)}")
    others = ", ".join(one for one in found if one != lowest)
    return (
        f"these are accesses of {lowest}, without those of {others}: the same bytes may be counted in both",
    )


def _conditions(store: Store, filters: Filters, notes: list[str]) -> list[str]:
    found = []
    if filters.since is not None:
        found.append(f"a.ts >= {instant_ns(filters.since, store.manifest)}")
    if filters.until is not None:
        found.append(f"a.ts < {instant_ns(filters.until, store.manifest)}")
    if filters.min_time_ns is not None:
        found.append(f"a.dur >= {filters.min_time_ns}")
    if filters.direction is not None:
        found.append(f"a.is_write = {str(filters.direction == 'write').lower()}")
    if filters.rank:
        found.append(f"a.rank IN ({', '.join(map(str, filters.rank))})")
    if filters.host:
        found.append(f"a.host IN ({', '.join(map(quoted, filters.host))})")
    if filters.job:
        check_job(store, filters.job)
    chosen = Filters(**{name: getattr(filters, name) for name in _FILES})
    if not chosen.kind and not chosen.file:
        chosen = dataclasses.replace(chosen, kind=("all",))
    if choose_files(store, chosen, notes)[0]:
        found.append(f"a.file_id IN (SELECT file_id FROM {CHOSEN_FILES})")
    return found
