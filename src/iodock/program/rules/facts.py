"""What rules know of a run as a whole, and how they ask for more."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iodock.program.relations.faults import sees_page_faults
from iodock.program.relations.known import (
    ANY_SQL,
    ASKED_OF_EVENTS,
    FLAGS_SQL,
    MOST_AT_ONCE,
    Known,
    any_sql,
    known_of,
)
from iodock.program.relations.profile import Profile
from iodock.program.rules import mpi_io, tracing
from iodock.program.store import Store
from iodock.shared.language import N_
from iodock.shared.message import Message
from iodock.shared.settings import FileSystemKind, Settings

MOST_STRETCH = 10.0
"""More than this a program sleeps, and is not kept waiting by others."""
MOST_SAMPLED = 4_000_000
"""So many calls of a longer run are looked at for their pauses, in slices of time all through it."""
_SLICES = 16
"""So many are looked at: who waits for a processor waits for many ms, and a pause ends with its slice."""
LEAST_OWN = 0.95
"""If less of a run's length is its own, the tracer's share is told."""
LEAST_ALONE = 0.02
"""So much of a recorded run is the program's own at least, however much tracing added."""


class Need(enum.Enum):
    """What a rule needs its source to see."""

    DURATIONS = N_("this source has no call durations")
    TIMES = N_("this source does not say when calls happened")
    OFFSETS = N_("this source gives no offsets of reads and writes")
    COVERAGE = N_("which bytes had been read or written before is not known")
    RANKS_OWN = N_(
        "ranks opened files by MPI-IO, whose calls are not recorded: which rank asked for what is not known"
    )
    RANKS = N_("the ranks of a parallel job are not known")
    PROCESS_TIMES = N_("when processes started and ended is not known")
    PAGE_FAULTS = N_("mmap I/O can't be seen by this way of recording")
    LAYOUT = N_("how files are striped is not known")
    MPI_IO = N_("calls of MPI-IO are not counted")
    FLAGS = N_("the flags of open calls are not known")
    EVENTS = N_("needs single calls, and this source has only counters: not judged")
    COUNTERS = N_("needs counters, as a log of Darshan has them, and this source has calls")

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
    has_calls = True
    """Whether the source has calls; else it has counters in their place."""

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
    def exit_status(self) -> int | None:
        """What the program ended with; None where that is not known, or a signal ended it."""
        found = (self.store.manifest.raw.get("captured") or {}).get("exit_status")
        return found if isinstance(found, int) else None

    @property
    def exit_signal(self) -> str | None:
        """The signal that ended the program."""
        found = (self.store.manifest.raw.get("captured") or {}).get("exit_signal")
        return str(found) if found else None

    @property
    def failed(self) -> bool:
        """Whether the program is known to have failed: then not all of it may have run."""
        return bool(self.exit_status or self.exit_signal)

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
    def added_ns(self) -> int:
        """What tracing adds to each pause between calls: see `tracing.between_ns`."""
        return tracing.between_ns(self.store)

    @cached_property
    def is_tracer_unknown(self) -> bool:
        """Whether a tracer may have added a good part of the times, and nothing shows how much."""
        most = 2 * tracing.MOST_STOP_NS * self.all_calls
        return most > (1 - LEAST_OWN) * (self.wall_ns or 0) and tracing.is_unknown(self.store)

    @cached_property
    def is_traced(self) -> bool:
        """Whether a tracer added, or may have added, a good part of the run's length."""
        wall, alone = self.wall_seconds, self.alone_seconds
        is_long = wall is not None and alone is not None and alone < LEAST_OWN * wall
        return is_long or self.is_tracer_unknown

    @property
    def all_calls(self) -> int:
        """Calls of the run, also those that are no I/O."""
        return max(self.calls, int(self.store.manifest.source.get("calls") or 0))

    @cached_property
    def alone_seconds(self) -> float | None:
        """What the run takes without a tracer that stops it at each call, s; else its length."""
        # A tracer stops the program twice for each call: one stop is in its duration, one in the pause.
        each = self.within_ns + self.added_ns
        wall, added = self.wall_seconds, self.wall_of(self.all_calls * each)
        return wall if wall is None or not added else max(wall - added, LEAST_ALONE * wall)

    @cached_property
    def alone_io_seconds(self) -> float | None:
        """What of `io_ns` is left without what a tracer adds to each call, s."""
        if self.io_ns is None:
            return None
        spent, added = self.io_ns / 1e9, self.wall_of(self.calls * self.within_ns) or 0.0
        # Of calls that take hardly longer than a stop only their number is known.
        least = self.wall_of(self.calls * tracing.UNTRACED_NS) if added else None
        return max(spent - added, min(spent, least or 0.0))

    @cached_property
    def stretch(self) -> float:
        """How many times longer everything takes as other programs use the processors too. The task that
        computes most shows it twice: it lives so much longer than it computes, and few of its pauses make up
        for most of their time. Who waits in calls shows the first alone, who computes the second. 1 where CPU
        times are not known."""
        task = self.one(_BUSIEST_SQL)
        if not task:
            return 1.0
        uneven = self.one(self._uneven_sql(int(task["utid"])))["uneven"]
        found = min(float(task["longer"] or 1.0), float(uneven or 1.0))
        return min(MOST_STRETCH, max(1.0, found))

    def _uneven_sql(self, utid: int) -> str:
        """Pauses between a task's calls: their sum, by their number times their geometric mean."""
        return f"""WITH seen AS (SELECT e.ts, e.dur, {self.slice_of} AS slice FROM events e
  WHERE e.utid = {utid} AND e.ts IS NOT NULL AND e.dur IS NOT NULL AND e.side IN (0, 1, 3)
    AND {self.is_in_sample}),
pauses AS (SELECT greatest(0, ts - lag(ts + dur) OVER (PARTITION BY slice ORDER BY ts)) AS ns FROM seen)
SELECT sum(ns) / nullif(count(ns) * exp(avg(ln(ns + 1))), 0) AS uneven FROM pauses"""

    @property
    def slice_of(self) -> str:
        """SQL: in which slice of the run the event `e` began."""
        if self._every_slice == 1 or not self.wall_ns:
            return "0"
        first, length = self.store.manifest.first_ts or 0, self.wall_ns // (_SLICES * self._every_slice)
        return f"((e.ts - {first}) // {max(1, length)})"

    @property
    def is_in_sample(self) -> str:
        """SQL condition: the event `e` is one of those whose pauses are looked at."""
        return f"{self.slice_of} % {self._every_slice} = 0"

    @property
    def _every_slice(self) -> int:
        return max(1, -(-self.all_calls // MOST_SAMPLED))

    def typical(self, typical_ns: int | None, time_ns: int | None) -> int | None:
        """The time of calls without those few that waited for a disk: TYPICAL_NS, their number times their
        geometric mean, at the pace at which the run had its processors; TIME_NS, their sum, at most."""
        if typical_ns is None or time_ns is None:
            return typical_ns
        return max(typical_ns, min(time_ns, round(self.stretch * typical_ns)))

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """A small answer over the store's tables and views."""
        self.profile.need_for(sql)
        return self.store.rows(sql)

    def keep(self, name: str, sql: str) -> None:
        """Keeps an answer under a name for later questions of the same rule."""
        self.profile.need_for(sql)
        self.store.keep(name, sql)

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
        still = self.is_still
        return {
            Need.DURATIONS: self.durations,
            Need.TIMES: self._any("ts IS NOT NULL"),
            Need.OFFSETS: still or self._any("offset_bytes IS NOT NULL"),
            Need.COVERAGE: still
            or self._any("own_read_bytes IS NOT NULL")
            or self._any("own_written_bytes IS NOT NULL"),
            Need.RANKS_OWN: not self.mpi_io,
            Need.RANKS: bool(tasks["ranks"]),
            Need.PROCESS_TIMES: bool(tasks["times"]),
            Need.PAGE_FAULTS: sees_page_faults(self.store),
            Need.LAYOUT: any(system.stripe_count for system in self.settings.file_systems.values()),
            Need.MPI_IO: False,
            Need.FLAGS: self._any("flags IS NOT NULL"),
            Need.EVENTS: True,
            Need.COUNTERS: False,
        }

    @cached_property
    def known(self) -> Known:
        """Sums of all calls."""
        return known_of(self.rows, self.store.rows_of)

    @cached_property
    def opened_flags(self) -> int:
        """All flags with which something was opened."""
        found = self.one(FLAGS_SQL)
        return int(found["flags"] or 0)

    @cached_property
    def is_still(self) -> bool:
        """Whether the run has not a single transfer: then it has nothing to miss."""
        return not self._any("direction IN (1, 2)")

    @property
    def only_starts(self) -> bool:
        """Whether hardly more is known than that programs started, as of `true`."""
        return self.io_ns is None and self.calls <= self.processes and self.is_still

    def _any(self, condition: str) -> bool:
        """Whether any event is so: one of `ASKED_OF_EVENTS`."""
        if self.store.rows_of("events") <= MOST_AT_ONCE:
            return self._are_any[condition]
        # The first one found ends the search.
        return bool(self.rows(any_sql(condition)))

    @cached_property
    def _are_any(self) -> Mapping[str, bool]:
        """The same of all conditions, of few events asked together."""
        (found,) = self.rows(ANY_SQL)
        return dict(zip(ASKED_OF_EVENTS, found["found"], strict=True))

    @cached_property
    def mpi_io(self) -> bool:
        """Whether ranks opened files by MPI-IO."""
        return bool(self.rows(f"{mpi_io.FILES} LIMIT 1"))

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
        return self.profile.facts.mount_kinds


_BUSIEST_SQL = """SELECT utid, (end_ts - start_ts) / (cpu_user_ns + coalesce(cpu_system_ns, 0)) AS longer
FROM processes WHERE cpu_user_ns > 0 ORDER BY cpu_user_ns + coalesce(cpu_system_ns, 0) DESC, utid LIMIT 1"""
