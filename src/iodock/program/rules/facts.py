"""Provides the facts about a run as a whole, from which the rules start."""

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
"""If a program pauses this many times longer than expected, it is asleep and does not wait for a
processor."""
MOST_SAMPLED = 1_000_000
"""In a longer run, pauses are examined only for this number of calls, in time slices throughout the run."""
_SLICES = 16
"""Number of slices. Waiting for a processor takes many ms, and a pause ends with its slice."""
LEAST_OWN = 0.95
"""If the program's own share of the run's length is below this, the tracer's share is reported."""
LEAST_ALONE = 0.02
"""At least this share of a recorded run belongs to the program, however much tracing added."""


class Need(enum.Enum):
    """A kind of data that a rule needs from its source, with the reason that is shown if the source lacks
    it."""

    DURATIONS = N_("this source has no call durations")
    TIMES = N_("this source does not have the times of calls")
    OFFSETS = N_("this source gives no offsets of reads and writes")
    COVERAGE = N_("the bytes that were read or written before are unknown")
    RANKS_OWN = N_(
        "ranks transferred data by collective calls of MPI-IO, or by calls that were not recorded: system "
        "calls do not show which rank requested the data"
    )
    EVERY_RANK = N_("the calls of some ranks were counted and not recorded (--ranks)")
    RANKS = N_("the ranks of a parallel job are not known")
    PROCESS_TIMES = N_("the times at which processes started and ended are unknown")
    PAGE_FAULTS = N_("this source does not show mmap I/O")
    LAYOUT = N_("how files are striped is not known")
    MPI_IO = N_("calls of MPI-IO are not counted")
    FLAGS = N_("the flags of open calls are not known")
    EVENTS = N_("not checked: needs single calls, but this source has only counters")
    COUNTERS = N_("needs counters such as those of a Darshan log, but this source has calls")

    @property
    def why(self) -> Message:
        """Returns a text that says why a rule is not checked without this data."""
        return Message(self.value)


@dataclass(frozen=True)
class Facts:
    """Describes one run for the rules, and runs their queries."""

    store: Store
    settings: Settings
    profile: Profile
    overview: Mapping[str, Any]
    """Numbers as in the analysis `overview`: `io_time_ns` and `waiting_time_ns` (wall time), `summed_io_ns`
    (over all tasks, without waiting) and `calls`."""
    has_calls = True
    """Whether the source has calls; otherwise it has counters."""

    @property
    def wall_ns(self) -> int | None:
        """Returns the run's length in ns."""
        return self.store.manifest.wall_ns

    @property
    def wall_seconds(self) -> float | None:
        """Returns the run's length in s."""
        return None if self.wall_ns is None else self.wall_ns / 1e9

    @property
    def io_ns(self) -> int | None:
        """Returns the wall time in ns in which at least one thread was in an I/O call, without calls that
        wait on pipes and sockets."""
        found: int | None = self.overview.get("io_time_ns")
        return found

    @cached_property
    def summed_io_ns(self) -> int | None:
        """Returns the time in ns inside I/O calls, summed over tasks, without calls that wait on pipes and
        sockets."""
        found: int | None = self.overview.get("summed_io_ns")
        return found

    @property
    def exit_status(self) -> int | None:
        """Returns the program's exit status; None if it is unknown, or if a signal ended the program."""
        found = (self.store.manifest.raw.get("captured") or {}).get("exit_status")
        return found if isinstance(found, int) else None

    @property
    def exit_signal(self) -> str | None:
        """Returns the signal that ended the program; None if no signal did, or if this is unknown."""
        found = (self.store.manifest.raw.get("captured") or {}).get("exit_signal")
        return str(found) if found else None

    @property
    def failed(self) -> bool:
        """Returns whether the program is known to have failed. Parts of it may then not have run."""
        return bool(self.exit_status or self.exit_signal)

    @property
    def calls(self) -> int:
        """Returns the number of I/O calls of the run."""
        return int(self.overview.get("calls") or 0)

    @property
    def durations(self) -> bool:
        """Returns whether the source has durations of calls."""
        return self.store.manifest.durations

    def wall_of(self, time_ns: int | None) -> float | None:
        """Converts TIME_NS, a sum over tasks, to wall time in s. Tasks that are in I/O at the same time
        share the wall time, so the sum is scaled by the run's wall time in I/O divided by its summed I/O
        time."""
        if time_ns is None or not self.durations:
            return None
        summed, union = self.summed_io_ns, self.io_ns
        shared = union / summed if summed and union is not None and union < summed else 1.0
        return time_ns * shared / 1e9

    @cached_property
    def tracing_ns(self) -> int:
        """Returns the time in ns that a tracer adds around each call of a live recording, outside of the
        call's own duration: see `tracing.around_ns`."""
        return tracing.around_ns(self.store)

    @cached_property
    def within_ns(self) -> int:
        """Returns the time in ns that a tracer adds to each call's own duration: see `tracing.within_ns`."""
        return tracing.within_ns(self.store)

    @cached_property
    def added_ns(self) -> int:
        """Returns the time in ns that a tracer adds to each pause between calls: see `tracing.between_ns`."""
        return tracing.between_ns(self.store)

    @cached_property
    def is_tracer_unknown(self) -> bool:
        """Returns whether a tracer may have added much to the times, by an unknown amount."""
        most = 2 * tracing.MOST_STOP_NS * self.all_calls
        return most > (1 - LEAST_OWN) * (self.wall_ns or 0) and tracing.is_unknown(self.store)

    @cached_property
    def is_traced(self) -> bool:
        """Returns whether a tracer added a large part of the run's length, or may have done so."""
        wall, alone = self.wall_seconds, self.alone_seconds
        is_long = wall is not None and alone is not None and alone < LEAST_OWN * wall
        return is_long or self.is_tracer_unknown

    @property
    def all_calls(self) -> int:
        """Returns the number of calls of the run, including those that are not I/O."""
        return max(self.calls, int(self.store.manifest.source.get("calls") or 0))

    @cached_property
    def alone_seconds(self) -> float | None:
        """Returns the estimated duration of the run in s if no tracer had stopped it at each call. Without
        a tracer, this is the run's length."""
        # A tracer stops the program twice for each call. One stop is a part of the call's duration, the other
        # a part of the pause after it.
        each = self.within_ns + self.added_ns
        wall, added = self.wall_seconds, self.wall_of(self.all_calls * each)
        return wall if wall is None or not added else max(wall - added, LEAST_ALONE * wall)

    @cached_property
    def alone_io_seconds(self) -> float | None:
        """Returns `io_ns` converted to s, without the time that a tracer adds to each call."""
        if self.io_ns is None:
            return None
        spent, added = self.io_ns / 1e9, self.wall_of(self.calls * self.within_ns) or 0.0
        # If calls take hardly longer than a tracer's stop, their own time can't be measured and is estimated
        # from their number.
        least = self.wall_of(self.calls * tracing.UNTRACED_NS) if added else None
        return max(spent - added, min(spent, least or 0.0))

    @cached_property
    def stretch(self) -> float:
        """Returns the factor by which everything takes longer because other programs use the processors,
        too. It looks at the task that computes most, and takes the smaller of two ratios, because waiting
        in calls affects only the first, and computing only the second. The first is the task's lifetime
        divided by its computing time. The second is the sum of the pauses between its calls, divided by
        their number times their geometric mean: a few long pauses make it large. The factor is 1 if CPU
        times are unknown."""
        task = self.one(_BUSIEST_SQL)
        if not task:
            return 1.0
        uneven = self.one(self._uneven_sql(int(task["utid"])))["uneven"]
        found = min(float(task["longer"] or 1.0), float(uneven or 1.0))
        return min(MOST_STRETCH, max(1.0, found))

    def _uneven_sql(self, utid: int) -> str:
        """Returns SQL for the sum of the pauses between a task's calls, divided by the number of pauses
        times their geometric mean."""
        return f"""WITH seen AS (SELECT e.ts, e.dur, {self.slice_of} AS slice FROM events e
  WHERE e.utid = {utid} AND e.ts IS NOT NULL AND e.dur IS NOT NULL AND e.side IN (0, 1, 3)
    AND {self.is_in_sample}),
pauses AS (SELECT greatest(0, ts - lag(ts + dur) OVER (PARTITION BY slice ORDER BY ts)) AS ns FROM seen)
SELECT sum(ns) / nullif(count(ns) * exp(avg(ln(ns + 1))), 0) AS uneven FROM pauses"""

    @property
    def slice_of(self) -> str:
        """Returns SQL for the number of the time slice in which the event `e` began."""
        if self._every_slice == 1 or not self.wall_ns:
            return "0"
        first, length = self.store.manifest.first_ts or 0, self.wall_ns // (_SLICES * self._every_slice)
        return f"((e.ts - {first}) // {max(1, length)})"

    @property
    def is_in_sample(self) -> str:
        """Returns an SQL condition: the event `e` is in one of the time slices whose pauses are examined."""
        return f"{self.slice_of} % {self._every_slice} = 0"

    @property
    def _every_slice(self) -> int:
        return max(1, -(-self.all_calls // MOST_SAMPLED))

    def typical(self, typical_ns: int | None, time_ns: int | None) -> int | None:
        """Returns an estimate of the time that calls would have taken if none had waited for a disk.
        TYPICAL_NS is the number of calls times their geometric mean. It is multiplied by `stretch`, the
        slowdown by other programs on the processors, but not beyond TIME_NS, the sum of the calls' times.
        None: no durations are known."""
        if typical_ns is None or time_ns is None:
            return typical_ns
        return max(typical_ns, min(time_ns, round(self.stretch * typical_ns)))

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Returns a small result of a query on the store's tables and views as one dictionary per row."""
        self.profile.need_for(sql)
        return self.store.rows(sql)

    def keep(self, name: str, sql: str) -> None:
        """Stores the result of a query as a table named NAME, for later queries of the same rule."""
        self.profile.need_for(sql)
        self.store.keep(name, sql)

    def one(self, sql: str) -> dict[str, Any]:
        """Returns the first row of a result; an empty dict if there is none."""
        rows = self.rows(sql)
        return rows[0] if rows else {}

    def sees(self, need: Need) -> bool:
        """Returns whether the source has the data that NEED names."""
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
            Need.RANKS_OWN: not (self.mpi_io if self.collects is None else self.collects),
            Need.EVERY_RANK: not self.store.manifest.is_partly_counted,
            Need.RANKS: bool(tasks["ranks"]),
            Need.PROCESS_TIMES: bool(tasks["times"]),
            Need.PAGE_FAULTS: sees_page_faults(self.store),
            Need.LAYOUT: any(system.stripe_count for system in self.settings.file_systems.values()),
            Need.MPI_IO: not tasks["ranks"] or self.collects is not None,
            Need.FLAGS: self._any("flags IS NOT NULL"),
            Need.EVENTS: True,
            Need.COUNTERS: False,
        }

    @cached_property
    def known(self) -> Known:
        """Returns sums over all calls, by their properties."""
        return known_of(self.rows, self.store.rows_of)

    @cached_property
    def opened_flags(self) -> int:
        """Returns the bitwise OR of the flags of all opens."""
        found = self.one(FLAGS_SQL)
        return int(found["flags"] or 0)

    @cached_property
    def is_still(self) -> bool:
        """Returns whether the run has no reads and writes at all. Losses among reads and writes then do
        not matter."""
        return not self._any("direction IN (1, 2)")

    @property
    def only_starts(self) -> bool:
        """Returns whether the source shows little more than the start of programs, as in a run of `true`."""
        return self.io_ns is None and self.calls <= self.processes and self.is_still

    def _any(self, condition: str) -> bool:
        """Returns whether any event fulfils CONDITION, which must be in `ASKED_OF_EVENTS`."""
        if self.store.rows_of("events") <= MOST_AT_ONCE:
            return self._are_any[condition]
        # In a large store each condition has a query of its own, which ends at the first match.
        return bool(self.rows(any_sql(condition)))

    @cached_property
    def _are_any(self) -> Mapping[str, bool]:
        """Evaluates all conditions in one query, which is faster if there are few events."""
        (found,) = self.rows(ANY_SQL)
        return dict(zip(ASKED_OF_EVENTS, found["found"], strict=True))

    @cached_property
    def mpi_io(self) -> bool:
        """Returns whether ranks opened files with MPI-IO."""
        return bool(self.rows(f"{mpi_io.FILES} LIMIT 1"))

    @property
    def _could_call_mpi_io(self) -> bool:
        """Returns whether iodock would have recorded calls of MPI-IO if ranks had made any. This requires
        that each rank uses a shared library of MPI."""
        if (self.store.manifest.raw.get("captured") or {}).get("interfaces") != "recorded":
            return False
        return bool(self.one(mpi_io.HAVE_LIBRARY)["have"])

    @cached_property
    def collects(self) -> bool | None:
        """Returns whether ranks moved data with collective calls of MPI-IO; None if MPI-IO calls were not
        recorded."""
        if not self.store.rows_of("interface_calls"):
            return False if self._could_call_mpi_io else None
        return bool(self.rows("SELECT 1 FROM interface_calls WHERE is_collective AND direction > 0 LIMIT 1"))

    @cached_property
    def ranks(self) -> int:
        """Returns the number of MPI ranks in the store; 0 for a program without MPI."""
        return int(self.one("SELECT count(DISTINCT rank) AS n FROM processes")["n"])

    @cached_property
    def processes(self) -> int:
        """Returns the number of processes in the run, without threads."""
        return int(self.one("SELECT count(DISTINCT upid) AS n FROM processes")["n"])

    @cached_property
    def nodes(self) -> int | None:
        """Returns the number of nodes of the job according to its scheduler, or otherwise the number of
        hosts in the store."""
        job, hosts = (self.store.manifest.raw.get(name) for name in ("job", "hosts"))
        return (job or {}).get("nodes") or len(hosts or ()) or None

    @cached_property
    def mount_kinds(self) -> Mapping[str, FileSystemKind]:
        """Returns the kind of file system (local, network or parallel) by mount point, for the mounts that
        have files of the run."""
        return self.profile.facts.mount_kinds


_BUSIEST_SQL = """SELECT utid, (end_ts - start_ts) / (cpu_user_ns + coalesce(cpu_system_ns, 0)) AS longer
FROM processes WHERE cpu_user_ns > 0 ORDER BY cpu_user_ns + coalesce(cpu_system_ns, 0) DESC, utid LIMIT 1"""
