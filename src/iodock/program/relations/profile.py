"""Derived tables that rules read: a run's events folded once, so that no rule goes through all of them.

Each table is made when a rule first asks for it. What would have a row per event, file or process of a large
run is folded by *place*: the costliest files stand alone, all others are grouped by the pattern of their
names.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from iodock.program.relations.derived import Derived
from iodock.program.relations.images import AUTHORS, IMAGE_LIBRARIES, IMAGE_USES, IMAGES, WRITTEN_IN
from iodock.program.relations.patterns import FILE_PATTERNS, PATTERNED
from iodock.program.relations.processes import FILE_WORK, PROGRAMS, SIBLINGS, THREAD_IO, WORKER_IO, WORKERS
from iodock.program.store import Store
from iodock.program.store.folds import EventFold

SINGLE_PLACES = 300
"""So many of the costliest files are places of their own."""
SINGLE_ACTORS = 64
"""So many of the busiest processes are actors of their own in `moments`."""
MOMENTS = 240
"""Into so many intervals `moments` divides a run."""
MOST_BYTES = 2**63 - 1
"""Who copies in the kernel asks for all there could be, many times: more than fits."""
SLOW_NS = 20_000_000
"""From this duration on a call is looked at singly."""
MOST_SLOW = 20_000
WRITING_FLAGS = 0o3 | 0o2000 | 0o10000 | 0o40000
"""O_ACCMODE, O_APPEND, O_DSYNC (O_SYNC contains it) and O_DIRECT of Linux."""

# A call with two rows counts once: on the side it reads from or the old name.
FIRST_SIDE = "e.side IN (0, 1, 3)"


_USES = Derived(
    "calls folded by file, task, call, error, direction and side",
    {
        "file_id": "-> files; NULL: no file",
        "utid": "-> processes",
        "call_id": "-> calls",
        "errno_id": "-> errnos; NULL: did not fail",
        "direction": "0 none, 1 read, 2 write",
        "side": "0 only, 1 in, 2 out, 3 old, 4 new; count calls where it is 0, 1 or 3",
        "count": "rows",
        "time_ns": "inside them, summed over tasks; NULL where the source has no durations",
        "longest_ns": "the longest of them",
        "bytes": "transferred; NULL where the call transfers none",
        "first_ts": "start of the first",
        "last_ts": "start of the last",
    },
    lambda store: (
        """SELECT file_id, utid, call_id, errno_id, direction, side, count(*) AS count,
  CAST(sum(coalesce(dur, sys_cpu_ns)) AS BIGINT) AS time_ns, max(dur) AS longest_ns,
  CAST(sum(bytes) AS BIGINT) AS bytes, min(ts) AS first_ts, max(coalesce(ts, end_ts)) AS last_ts
FROM events GROUP BY ALL"""
    ),
    fold=EventFold(
        "uses",
        """SELECT file_id, utid, call_id, CAST(errno_id AS USMALLINT) AS errno_id, direction, side,
  CAST(sum(count) AS BIGINT) AS count, CAST(sum(time_ns) AS BIGINT) AS time_ns,
  max(longest_ns) AS longest_ns, CAST(sum(bytes) AS BIGINT) AS bytes, min(first_ts) AS first_ts,
  max(last_ts) AS last_ts
FROM folding.groups GROUP BY ALL""",
    ),
)
_PLACES = Derived(
    "every file's place: itself for the costliest, its name pattern for the others",
    {
        "file_id": "-> files",
        "place": "-> place_names",
        "name": "the file's name, or the pattern",
        "single": "whether the place is one file",
    },
    lambda store: (
        f"""WITH t AS (SELECT file_id, sum(time_ns) AS time, sum(count) AS count FROM uses GROUP BY 1),
ranked AS (SELECT f.file_id, f.name, f.pattern, f.kind,
    row_number() OVER (ORDER BY t.time DESC NULLS LAST, t.count DESC, f.file_id) <= {SINGLE_PLACES} AS first
  FROM files f LEFT JOIN t ON t.file_id = f.file_id),
named AS (SELECT file_id, CASE WHEN first THEN name ELSE coalesce(pattern, name) END AS name, first, kind
  FROM ranked),
placed AS (SELECT file_id, name, dense_rank() OVER (ORDER BY first, name, kind,
    CASE WHEN first THEN file_id END) AS place FROM named)
SELECT file_id, place, name, count(*) OVER (PARTITION BY place) = 1 AS single FROM placed"""
    ),
    after=("uses",),
)
_PLACE_NAMES = Derived(
    "one row per place",
    {
        "place": "number of the place",
        "name": "the file's name, or the pattern of its files' names",
        "single": "whether the place is one file",
        "file_count": "files of the place",
        "kind": "kind of the files",
        "folder": "folder of one of them",
        "ending": "ending of one of them",
        "mount_point": "where their file system is mounted; NULL where not known",
        "fs_type": "its type",
        "size_bytes": "their sizes together; NULL where none is known",
        "sized": "files whose size is known",
    },
    lambda store: (
        """SELECT p.place, any_value(p.name) AS name, any_value(p.single) AS single,
  count(*) AS file_count, any_value(f.kind) AS kind, any_value(f.folder) AS folder,
  any_value(f.ending) AS ending,
  any_value(f.mount_point) AS mount_point, any_value(f.fs_type) AS fs_type,
  CAST(sum(f.size_bytes) AS BIGINT) AS size_bytes, count(f.size_bytes) AS sized
FROM places p JOIN files f ON f.file_id = p.file_id GROUP BY p.place"""
    ),
    after=("places",),
)
_TRANSFERS = Derived(
    "reads and writes folded by place, call, direction, access pattern and size",
    {
        "place": "-> place_names; NULL: no file",
        "call_id": "-> calls",
        "direction": "1 read, 2 write",
        "pattern": "how it follows the previous access (docs/explanation/store.md): 0 unknown ... 7 repeated",
        "size_bin": "n: 2^(n-1) < bytes <= 2^n; 0: 1 byte; -1: 0 bytes (end of file)",
        "count": "transfers",
        "time_ns": "inside them, summed over tasks",
        "typical_ns": "their number times their geometric mean: few that waited for a disk hardly count",
        "bytes": "transferred",
        "requested_bytes": "asked for",
        "own_read_bytes": "bytes that the same process had read before; NULL where not known",
        "any_read_bytes": "bytes that any process had read before",
        "own_written_bytes": "bytes that the same process had written before",
        "any_written_bytes": "bytes that any process had written before",
        "unaligned": "transfers whose offset is not a multiple of 4096",
        "known": "transfers with an offset",
        "overlapping": "transfers that begin within what the one before moved",
        "back": "transfers that begin before the one before",
    },
    lambda store: (
        f"""SELECT p.place, e.call_id, e.direction, e.pattern,
  CAST(ceil(log2(greatest(CAST(e.bytes AS DOUBLE), 0.5::DOUBLE))) AS TINYINT) AS size_bin,
  count(*) AS count, CAST(sum(coalesce(e.dur, e.sys_cpu_ns)) AS BIGINT) AS time_ns,
  CAST(count(*) * exp(avg(ln(coalesce(e.dur, e.sys_cpu_ns) + 1))) AS BIGINT) AS typical_ns,
  CAST(sum(e.bytes) AS BIGINT) AS bytes,
  CAST(least(sum(e.requested_bytes), {MOST_BYTES}) AS BIGINT) AS requested_bytes,
  CAST(sum(e.own_read_bytes) AS BIGINT) AS own_read_bytes,
  CAST(sum(e.any_read_bytes) AS BIGINT) AS any_read_bytes,
  CAST(sum(e.own_written_bytes) AS BIGINT) AS own_written_bytes,
  CAST(sum(e.any_written_bytes) AS BIGINT) AS any_written_bytes,
  count(*) FILTER (WHERE e.offset_bytes & 4095 <> 0) AS unaligned, count(e.offset_bytes) AS known,
  count(*) FILTER (WHERE e.gap_bytes < 0 AND -e.gap_bytes < e.requested_bytes) AS overlapping,
  count(*) FILTER (WHERE e.gap_bytes < 0 AND -e.gap_bytes >= e.requested_bytes) AS back
FROM events e LEFT JOIN places p ON p.file_id = e.file_id
WHERE e.direction IN (1, 2) AND e.bytes IS NOT NULL GROUP BY ALL"""
    ),
    after=("places",),
    fold=EventFold(
        "transfers",
        f"""SELECT CAST(place AS BIGINT) AS place, call_id, direction, pattern, size_bin,
  CAST(sum(count) AS BIGINT) AS count,
  CAST(sum(time_ns) AS BIGINT) AS time_ns,
  CAST(sum(count) * exp(sum(logarithms) / nullif(sum(timed), 0)) AS BIGINT) AS typical_ns,
  CAST(sum(bytes) AS BIGINT) AS bytes,
  CAST(least(sum(requested_bytes), {MOST_BYTES}) AS BIGINT) AS requested_bytes,
  CAST(sum(own_read_bytes) AS BIGINT) AS own_read_bytes,
  CAST(sum(any_read_bytes) AS BIGINT) AS any_read_bytes,
  CAST(sum(own_written_bytes) AS BIGINT) AS own_written_bytes,
  CAST(sum(any_written_bytes) AS BIGINT) AS any_written_bytes,
  CAST(sum(unaligned) AS BIGINT) AS unaligned, CAST(sum(known) AS BIGINT) AS known,
  CAST(sum(overlapping) AS BIGINT) AS overlapping, CAST(sum(back) AS BIGINT) AS back
FROM folding.groups GROUP BY ALL""",
        places="SELECT CAST(file_id AS UINTEGER) AS file_id, CAST(place AS UINTEGER) AS place FROM places "
        "WHERE file_id IS NOT NULL",
    ),
)
_OPENS_OF_EVENTS = f"""SELECT file_id, utid, call_id, flags, errno_id, count(*) AS count
FROM events WHERE flags IS NOT NULL AND flags & {WRITING_FLAGS} <> 0 AND direction = 0 GROUP BY ALL"""
_OPENS = Derived(
    "opens for writing, and opens and fcntl's F_SETFL whose flags change how bytes are written (O_APPEND, "
    "O_DSYNC, O_SYNC, O_DIRECT), by file, task, call and flags",
    {
        "file_id": "-> files",
        "utid": "-> processes",
        "call_id": "-> calls",
        "flags": "open flags, Linux numbers",
        "errno_id": "-> errnos; NULL: did not fail",
        "count": "opens",
    },
    lambda store: _folded(store, "stored_openings", _OPENS_OF_EVENTS),
)


def _folded(store: Store, name: str, of_events: str) -> str:
    """The rows of a table made at import, or where the store has none, of events."""
    return f"SELECT * FROM {name}" if store.has_fold(name) else of_events


def _slow_calls(store: Store) -> str:
    # Most runs have none, and the folded durations know that.
    found = store.rows(f"SELECT 1 FROM durations WHERE duration_bin > log2({SLOW_NS}) LIMIT 1")
    slow = _folded(
        store, "stored_slow_calls", f"SELECT * FROM events e WHERE e.dur >= {SLOW_NS} AND {FIRST_SIDE}"
    )
    return f"""SELECT e.ts, e.dur, e.utid, e.call_id, e.file_id, e.direction, e.bytes FROM ({slow}) e
  JOIN calls c ON c.id = e.call_id JOIN files f ON f.file_id = e.file_id
WHERE c.class IN ('data', 'metadata', 'seek', 'sync')
  AND f.kind IN ('file', 'regular', 'directory', 'symlink')
ORDER BY e.dur DESC LIMIT {MOST_SLOW if found else 0}"""


_SLOW_CALLS = Derived(
    f"the longest calls, from {SLOW_NS // 1_000_000} ms on, waiting on pipes and sockets left out",
    {
        "ts": "start",
        "dur": "ns",
        "utid": "-> processes",
        "call_id": "-> calls",
        "file_id": "-> files",
        "direction": "0 none, 1 read, 2 write",
        "bytes": "transferred",
    },
    _slow_calls,
    after=("durations",),
)
_DURATIONS = Derived(
    "how long calls took: their number by call, direction and duration in powers of two",
    {
        "call_id": "-> calls",
        "direction": "0 none, 1 read, 2 write",
        "duration_bin": "n: 2^(n-1) < duration + 1 <= 2^n ns",
        "count": "calls",
        "time_ns": "inside them",
    },
    lambda store: _folded(
        store,
        "stored_durations",
        f"""SELECT e.call_id, e.direction, CAST(ceil(log2(e.dur + 1)) AS TINYINT) AS duration_bin,
  count(*) AS count, CAST(sum(e.dur) AS BIGINT) AS time_ns
FROM events e WHERE e.dur IS NOT NULL AND {FIRST_SIDE} GROUP BY ALL""",
    ),
)
_ACTORS = Derived(
    "every task's actor: its process for the busiest processes, 0 for all others together",
    {"utid": "-> processes", "upid": "-> processes", "rank": "MPI rank", "actor": "upid + 1, or 0"},
    lambda store: (
        f"""WITH t AS (SELECT p.upid, sum(u.time_ns) AS time, sum(u.count) AS count
  FROM uses u JOIN processes p ON p.utid = u.utid GROUP BY 1),
ranked AS (SELECT upid, row_number() OVER (ORDER BY time DESC NULLS LAST, count DESC, upid) AS place FROM t)
SELECT p.utid, p.upid, p.rank, CASE WHEN r.place <= {SINGLE_ACTORS} THEN p.upid + 1 ELSE 0 END AS actor
FROM processes p LEFT JOIN ranked r ON r.upid = p.upid"""
    ),
    after=("uses",),
)


def _moments(store: Store) -> str:
    first = store.manifest.first_ts or 0
    step = max(1, (store.manifest.wall_ns or 0) // MOMENTS)
    return f"""SELECT CAST(least(greatest((e.ts - {first}) // {step}, 0), {MOMENTS}) AS SMALLINT) AS moment,
  a.actor, e.call_id, e.direction, count(*) AS count,
  CAST(sum(e.dur) AS BIGINT) AS time_ns, CAST(sum(e.bytes) AS BIGINT) AS bytes
FROM events e JOIN actors a ON a.utid = e.utid LEFT JOIN files f ON f.file_id = e.file_id
WHERE e.ts IS NOT NULL AND {FIRST_SIDE}
  AND f.kind IN ('file', 'regular', 'directory', 'symlink', 'standard', 'unknown') GROUP BY ALL"""


_MOMENTS = Derived(
    f"calls on files over time: the run cut into {MOMENTS} equal intervals, by actor and call",
    {
        "moment": f"number of the interval in which the call began, 0 to {MOMENTS}",
        "actor": "-> actors",
        "call_id": "-> calls",
        "direction": "0 none, 1 read, 2 write",
        "count": "calls",
        "time_ns": "inside them",
        "bytes": "transferred",
    },
    _moments,
    after=("actors",),
)

DERIVED: Mapping[str, Derived] = {
    "uses": _USES,
    "places": _PLACES,
    "place_names": _PLACE_NAMES,
    PATTERNED: FILE_PATTERNS,
    "transfers": _TRANSFERS,
    "opens": _OPENS,
    "slow_calls": _SLOW_CALLS,
    "durations": _DURATIONS,
    "actors": _ACTORS,
    "moments": _MOMENTS,
    "programs": PROGRAMS,
    "file_work": FILE_WORK,
    "siblings": SIBLINGS,
    "workers": WORKERS,
    "worker_io": WORKER_IO,
    "thread_io": THREAD_IO,
    "written_in": WRITTEN_IN,
    "images": IMAGES,
    "image_uses": IMAGE_USES,
    "image_libraries": IMAGE_LIBRARIES,
    "authors": AUTHORS,
}
"""Name -> table."""


@dataclass
class Profile:
    """The derived tables of one store, each made when first asked for, by whichever thread."""

    store: Store
    _made: set[str] = field(default_factory=set)
    _making: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def need(self, names: Iterable[str]) -> None:
        """Makes the tables of these names, unless they are there. KeyError for an unknown one."""
        for name in names:
            if name not in self._made:
                with self._making:
                    self._make(name)

    def _make(self, name: str) -> None:
        if name in self._made:
            return
        derived = DERIVED[name]
        self.need(derived.after)
        if derived.fold is None or not self.store.fold(name, derived.fold):
            self.store.keep(name, derived.sql(self.store))
        self._made.add(name)


def tables_in(sql: str) -> tuple[str, ...]:
    """The derived tables that a question may be about: those whose names are words in it."""
    words = set(re.findall(r"\w+", sql.lower()))
    return tuple(name for name in DERIVED if name in words)
