"""Defines I/O time and waiting time. Computes the wall time of each as the union of the calls' intervals over
all tasks.

The import of a log computes the same sums in Rust (`iodock-tracker`, `io_time`) and stores them in the
manifest. This module is for requests with filters, and for stores without these sums.
tests/program/store/test_io_time.py checks that both give the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

from iodock.program.relations.selection import Selection
from iodock.program.store import Store

WAITED_FOR = "'pipe', 'socket', 'fifo', 'eventfd', 'epoll', 'timerfd', 'signalfd', 'inotify', 'pidfd'"
"""Kinds of files on which data calls wait for another process or for the network. They include standard
input."""
WAITING_CALLS = "'poll', 'select', 'epoll_wait', 'accept', 'connect'"
"""Families of calls that wait, whatever the file."""
IO_CALLS = f"class IN ('data', 'metadata', 'seek', 'sync') OR family IN ({WAITING_CALLS})"
"""SQL condition on `calls`: the call counts as I/O even without a file."""


@dataclass(frozen=True, slots=True)
class Unions:
    """Holds two wall times in ns: the time in which any of the calls ran, and the time in which any call of a
    subset ran."""

    any_ns: int
    subset_ns: int


def io_time(store: Store, selection: Selection) -> Unions | None:
    """Returns the wall time in which any I/O call ran, and the wall time in which any I/O call ran that did
    not wait for other processes (the subset). Returns None if the calls have no durations or no times."""
    if not store.manifest.durations or store.manifest.first_ts is None:
        return None
    whole = store.manifest.raw.get("io")
    if whole and selection.is_everything:
        return Unions(int(whole["any_ns"]), int(whole["file_ns"]))
    return swept(store, selection)


def swept(store: Store, selection: Selection) -> Unions:
    """Computes the result of `io_time` from the single events instead of the sums in the manifest."""
    # Arrow's compute module is slow to import. It is imported here, because most requests do not need it.
    from iodock.program.relations.sweep import unions

    return Unions(*unions(store.reader(intervals_sql(store, selection))))


def intervals_sql(store: Store, selection: Selection) -> str:
    """Returns the SQL for the start and end of each I/O call, and `in_subset`, which is true if the call did
    not wait."""
    calls = io_calls_sql(store, selection)
    return f"SELECT from_ts, to_ts, in_subset FROM ({calls}) c WHERE from_ts IS NOT NULL"


def io_calls_sql(store: Store, selection: Selection) -> str:
    """Returns the SQL for each I/O call that has a duration: `utid`, `dur`, `from_ts`, `to_ts` and
    `in_subset`. `in_subset` is false for calls that waited for another process or the network."""
    waits = _ids(store, f"family IN ({WAITING_CALLS})")
    moves = _ids(store, "class = 'data'")
    kinds = _ids(store, IO_CALLS)
    store.keep("waited_files", f"SELECT file_id, kind FROM files WHERE kind IN ({WAITED_FOR}, 'standard')")
    where = selection.and_where(
        *("e.dur IS NOT NULL", f"NOT {selection.again}"),
        f"(e.file_id IS NOT NULL OR e.call_id IN {kinds})",
    )
    return f"""SELECT e.utid, e.dur, coalesce(e.ts, e.end_ts - e.dur) AS from_ts,
  coalesce(e.end_ts, e.ts + e.dur) AS to_ts,
  NOT (e.call_id IN {waits} OR (w.file_id IS NOT NULL AND e.call_id IN {moves}
    AND (w.kind <> 'standard' OR e.direction = 1))) AS in_subset
FROM events e {selection.joins} LEFT JOIN waited_files w ON w.file_id = e.file_id {where}"""


def _ids(store: Store, condition: str) -> str:
    ids = [str(row["id"]) for row in store.rows(f"SELECT id FROM calls WHERE {condition}")]
    # An empty list becomes -1, which is no id, because `NOT IN (NULL)` would be neither true nor false.
    return f"({', '.join(ids) or '-1'})"
