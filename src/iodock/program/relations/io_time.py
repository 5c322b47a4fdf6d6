"""Defines I/O time and waiting time, and computes the wall time of each as the union over all tasks.

The import of a log computes the sums, too, in Rust (`iodock-tracker`, `io_time`). This module is for filtered
requests and for stores without these sums. tests/program/store/test_io_time.py compares both.
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
    """Wall time in which any of the calls ran, and in which any call of a subset ran, ns."""

    any_ns: int
    subset_ns: int


def io_time(store: Store, selection: Selection) -> Unions | None:
    """Returns the wall time in any I/O call, and in those that did not wait (the subset); None if no call has
    a duration or a time."""
    if not store.manifest.durations or store.manifest.first_ts is None:
        return None
    whole = store.manifest.raw.get("io")
    if whole and selection.is_everything:
        return Unions(int(whole["any_ns"]), int(whole["file_ns"]))
    return swept(store, selection)


def swept(store: Store, selection: Selection) -> Unions:
    """Computes the same as `io_time` from single events."""
    # The import is here, because Arrow's compute module is slow to import and rarely needed.
    from iodock.program.relations.sweep import unions

    return Unions(*unions(store.reader(intervals_sql(store, selection))))


def intervals_sql(store: Store, selection: Selection) -> str:
    """SQL for begin, end and `in_subset` (the call does not wait) of each I/O call."""
    calls = io_calls_sql(store, selection)
    return f"SELECT from_ts, to_ts, in_subset FROM ({calls}) c WHERE from_ts IS NOT NULL"


def io_calls_sql(store: Store, selection: Selection) -> str:
    """SQL for each I/O call that has a duration: `utid`, `dur`, `from_ts`, `to_ts`, `in_subset` (the call
    does not wait)."""
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
    # An empty list becomes -1, because NOT IN (NULL) is neither true nor false.
    return f"({', '.join(ids) or '-1'})"
