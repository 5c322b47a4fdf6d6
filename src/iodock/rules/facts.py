"""What rules know of a run as a whole, and how they ask for more."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iodock.findings import Message
from iodock.language import N_
from iodock.relations.faults import sees_page_faults
from iodock.relations.profile import Profile
from iodock.rules import tracing
from iodock.settings import FileSystem, FileSystemKind, Settings, kind_of
from iodock.store import Store

MOST_WORK_NS = 1500
"""What a program may compute around one call, so that it goes with it: to format a line, to fill a buffer."""


class Need(enum.Enum):
    """What a rule needs its source to see."""

    DURATIONS = N_("this source has no call durations")
    TIMES = N_("this source does not say when calls happened")
    OFFSETS = N_("this source gives no offsets of reads and writes")
    COVERAGE = N_("which bytes had been read or written before is not known")
    RANKS = N_("the ranks of a parallel job are not known")
    PROCESS_TIMES = N_("when processes started and ended is not known")
    PAGE_FAULTS = N_("mmap I/O can't be seen by this way of recording")
    LAYOUT = N_("how files are striped is not known")
    FLAGS = N_("the flags of open calls are not known")

    @property
    def why(self) -> Message:
        """Why a rule stays silent without it."""
        return Message(self.value)


@dataclass(frozen=True)
class Facts:
    """One run, as rules see it."""

    store: Store
    settings: Settings
    profile: Profile
    overview: Mapping[str, Any]
    """`io_time_ns` and `waiting_time_ns` (wall time), `summed_io_ns` (over all tasks, waiting left out) and
    `calls`, as the analysis `overview` counts them."""

    @property
    def wall_ns(self) -> int | None:
        """The run's length."""
        return self.store.manifest.wall_ns

    @property
    def wall_seconds(self) -> float | None:
        """The run's length, s."""
        return None if self.wall_ns is None else self.wall_ns / 1e9

    @property
    def io_ns(self) -> int | None:
        """Wall time in which at least one thread was in an I/O call, waiting on pipes left out."""
        found: int | None = self.overview.get("io_time_ns")
        return found

    @cached_property
    def summed_io_ns(self) -> int | None:
        """Time inside I/O calls, summed over tasks, waiting left out."""
        found: int | None = self.overview.get("summed_io_ns")
        return found

    @property
    def calls(self) -> int:
        """I/O calls of the run."""
        return int(self.overview.get("calls") or 0)

    @property
    def durations(self) -> bool:
        """Whether calls have durations."""
        return self.store.manifest.durations

    def wall_of(self, time_ns: int | None) -> float | None:
        """Seconds of wall time that TIME_NS, summed over tasks, stands for: tasks that are in I/O at the same
        time share it."""
        if time_ns is None or not self.durations:
            return None
        summed, union = self.summed_io_ns, self.io_ns
        shared = union / summed if summed and union is not None and union < summed else 1.0
        return time_ns * shared / 1e9

    @cached_property
    def tracing_ns(self) -> int:
        """What tracing adds around each call of a live recording, beyond the call's own duration: see
        `tracing.around_ns`."""
        return tracing.around_ns(self.store)

    @cached_property
    def within_ns(self) -> int:
        """What tracing adds to each call's own duration: see `tracing.within_ns`."""
        return tracing.within_ns(self.store)

    @cached_property
    def work_ns(self) -> float:
        """What processes compute for each call: their own CPU time, of which only the first `MOST_WORK_NS` of
        each call count, as what they compute beside it is longer. 0 where CPU times are not known."""
        self.profile.need(("uses",))
        return float(self.one(_WORK_SQL)["work"] or 0)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """A small answer over the store's and the derived tables."""
        return self.store.rows(sql)

    def one(self, sql: str) -> dict[str, Any]:
        """The first row; an empty dict where there is none."""
        rows = self.rows(sql)
        return rows[0] if rows else {}

    def sees(self, need: Need) -> bool:
        """Whether the source can see what is needed."""
        return self._seen[need]

    @cached_property
    def _seen(self) -> Mapping[Need, bool]:
        (tasks,) = self.rows(
            """SELECT count(DISTINCT rank) > 1 AS ranks, count(start_ts) > 0 AND count(end_ts) > 0 AS times
FROM processes"""
        )
        # A run without a single transfer has nothing to miss.
        still = not self._any("direction IN (1, 2)")
        return {
            Need.DURATIONS: self.durations,
            Need.TIMES: self._any("ts IS NOT NULL"),
            Need.OFFSETS: still or self._any("offset_bytes IS NOT NULL"),
            Need.COVERAGE: still
            or self._any("own_read_bytes IS NOT NULL")
            or self._any("own_written_bytes IS NOT NULL"),
            Need.RANKS: bool(tasks["ranks"]),
            Need.PROCESS_TIMES: bool(tasks["times"]),
            Need.PAGE_FAULTS: sees_page_faults(self.store),
            Need.LAYOUT: any(system.stripe_count for system in self.settings.file_systems.values()),
            Need.FLAGS: self._any("flags IS NOT NULL"),
        }

    def _any(self, condition: str) -> bool:
        """Whether any event is so; the first one found ends the search."""
        return bool(self.rows(f"SELECT 1 FROM events WHERE {condition} LIMIT 1"))

    @cached_property
    def ranks(self) -> int:
        """MPI ranks seen; 0 for a program without."""
        return int(self.one("SELECT count(DISTINCT rank) AS n FROM processes")["n"])

    @cached_property
    def processes(self) -> int:
        """Processes of the run, threads not counted."""
        return int(self.one("SELECT count(DISTINCT upid) AS n FROM processes")["n"])

    @cached_property
    def nodes(self) -> int | None:
        """Nodes of the job: as its scheduler told, else the hosts seen."""
        job, hosts = (self.store.manifest.raw.get(name) for name in ("job", "hosts"))
        return (job or {}).get("nodes") or len(hosts or ()) or None

    @cached_property
    def mount_kinds(self) -> Mapping[str, FileSystemKind]:
        """Mount point -> local, network or parallel, of the mounts that files lie on."""
        rows = self.rows("SELECT DISTINCT mount_point, fs_type FROM files WHERE mount_point IS NOT NULL")
        return {row["mount_point"]: self._kind(row["mount_point"], row["fs_type"]) for row in rows}

    def _kind(self, mount_point: str, fs_type: str | None) -> FileSystemKind:
        known: FileSystem | None = self.settings.file_system(mount_point)
        if known is not None and known.kind is not None:
            return known.kind
        return kind_of(fs_type)


_WORK_SQL = f"""WITH own AS (SELECT upid, sum(cpu_user_ns) AS cpu_ns FROM processes GROUP BY upid),
made AS (SELECT p.upid, sum(u.count) AS calls FROM uses u JOIN processes p ON p.utid = u.utid
  WHERE u.side IN (0, 1, 3) GROUP BY p.upid)
SELECT sum(least(o.cpu_ns, {MOST_WORK_NS} * m.calls)) / nullif(sum(m.calls), 0) AS work
FROM made m JOIN own o ON o.upid = m.upid"""
