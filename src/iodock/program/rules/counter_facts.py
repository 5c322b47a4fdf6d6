"""Provides the facts of a run that has counters instead of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from iodock.program.relations.profile import Profile
from iodock.program.rules.facts import Facts, Need
from iodock.program.store import Store
from iodock.shared.settings import Settings


@dataclass(frozen=True)
class CounterFacts(Facts):
    """Facts of a run with counters. The processes measured their elapsed times themselves, so no tracer
    adds to them."""

    has_calls = False

    @property
    def durations(self) -> bool:
        """Returns whether any time was recorded."""
        return bool(self.summed_io_ns)

    @property
    def tracing_ns(self) -> int:
        """Returns 0, because counting needs no tracer."""
        return 0

    within_ns = tracing_ns
    added_ns = tracing_ns

    @property
    def is_tracer_unknown(self) -> bool:
        """Returns false, because counting needs no tracer."""
        return False

    @cached_property
    def _seen(self) -> Mapping[Need, bool]:
        return dict.fromkeys(Need, False) | {
            Need.COUNTERS: True,
            Need.DURATIONS: self.durations,
            # In a light recording, ranks count only if there are several. A single one may be a script whose
            # commands ran one after the other.
            Need.RANKS: not self.store.manifest.is_light or self.ranks > 1,
            # A light recording counts system calls only, and no calls of MPI-IO.
            Need.MPI_IO: not self.store.manifest.is_light,
            Need.LAYOUT: bool(self.rows("SELECT 1 FROM layouts LIMIT 1")),
        }

    @cached_property
    def ranks(self) -> int:
        """Returns the number of the job's processes: the largest of the number that the source states, the
        number in its counters, and the number of processes with counters."""
        told = self.store.manifest.raw.get("ranks")
        worker = "rank" if self.store.manifest.is_light else "coalesce(rank, upid)"
        seen = self.one(f"SELECT max(ranks) AS most, count(DISTINCT {worker}) AS n FROM profiles")
        return max(int(told or 0), int(seen["most"] or 0), int(seen["n"]))


def counter_facts_of(store: Store, settings: Settings) -> CounterFacts:
    """Returns the facts of a store with counters."""
    profile = Profile(store, settings)
    profile.need(["counted_files", "counted_work"])
    (calls,) = store.rows(_CALLS_SQL)
    (times,) = store.rows(_TIMES_SQL)
    total = {
        "io_time_ns": None if _is_busiest_threaded(store) else times["busiest_ns"] or None,
        "most_io_ns": times["busiest_ns"] or None,
        "waiting_time_ns": None,
        "summed_io_ns": calls["time_ns"] or None,
        "calls": calls["calls"],
    }
    return CounterFacts(store, settings, profile, total)


def _is_busiest_threaded(store: Store) -> bool:
    """Returns whether the process with most I/O time has several threads, so that its time is a sum over
    them."""
    return store.manifest.is_light and bool(store.rows(_THREADED_SQL))


_THREADED_SQL = """SELECT 1 FROM profiles p JOIN processes t ON t.upid = p.upid
WHERE coalesce(p.rank, p.upid) = (SELECT worker FROM counted_work ORDER BY time_ns DESC LIMIT 1)
GROUP BY p.upid HAVING count(DISTINCT t.utid) > 1"""
_CALLS_SQL = """SELECT CAST(coalesce(sum(opens + stats + seeks + syncs + transfers), 0) AS BIGINT) AS calls,
  CAST(coalesce(sum(time_ns), 0) AS BIGINT) AS time_ns FROM counted_files"""
# Counters don't show how long several processes ran in parallel, but the I/O time of the busiest one is known
# almost exactly.
_TIMES_SQL = """SELECT CAST(coalesce(max(time_ns) FILTER (WHERE worker IS NOT NULL), 0)
  + coalesce(any_value(time_ns) FILTER (WHERE worker IS NULL), 0) AS BIGINT) AS busiest_ns
FROM counted_work"""
