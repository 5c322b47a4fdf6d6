"""The facts of a run that has counters instead of calls."""

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
    """A run that was counted. The processes measured their elapsed times themselves, so no tracer adds to
    them."""

    has_calls = False

    @property
    def durations(self) -> bool:
        """Returns whether any time was recorded."""
        return bool(self.summed_io_ns)

    @property
    def tracing_ns(self) -> int:
        """Always 0: counters have no tracing overhead."""
        return 0

    within_ns = tracing_ns
    added_ns = tracing_ns

    @property
    def is_tracer_unknown(self) -> bool:
        """Always false: counters are not traced."""
        return False

    @cached_property
    def _seen(self) -> Mapping[Need, bool]:
        return dict.fromkeys(Need, False) | {
            Need.COUNTERS: True,
            Need.DURATIONS: self.durations,
            # A light recording shows ranks only if there are several. Otherwise its processes may be the
            # commands of a script, one after the other.
            Need.RANKS: not self.store.manifest.is_light or self.ranks > 1,
            # A light recording counts system calls only.
            Need.MPI_IO: not self.store.manifest.is_light,
            Need.LAYOUT: bool(self.rows("SELECT 1 FROM layouts LIMIT 1")),
        }

    @cached_property
    def ranks(self) -> int:
        """Number of processes of the job, as the source states it or as it was counted."""
        told = self.store.manifest.raw.get("ranks")
        worker = "rank" if self.store.manifest.is_light else "coalesce(rank, upid)"
        seen = self.one(f"SELECT max(ranks) AS most, count(DISTINCT {worker}) AS n FROM profiles")
        return max(int(told or 0), int(seen["most"] or 0), int(seen["n"]))


def counter_facts_of(store: Store, settings: Settings) -> CounterFacts:
    """The facts of a store with counters."""
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
    """Returns whether the times of the process with most I/O are sums over several threads."""
    return store.manifest.is_light and bool(store.rows(_THREADED_SQL))


_THREADED_SQL = """SELECT 1 FROM profiles p JOIN processes t ON t.upid = p.upid
WHERE coalesce(p.rank, p.upid) = (SELECT worker FROM counted_work ORDER BY time_ns DESC LIMIT 1)
GROUP BY p.upid HAVING count(DISTINCT t.utid) > 1"""
_CALLS_SQL = """SELECT CAST(coalesce(sum(opens + stats + seeks + syncs + transfers), 0) AS BIGINT) AS calls,
  CAST(coalesce(sum(time_ns), 0) AS BIGINT) AS time_ns FROM counted_files"""
# It is unknown how long several processes ran in parallel, but the time of the busiest one is known, at least
# nearly.
_TIMES_SQL = """SELECT CAST(coalesce(max(time_ns) FILTER (WHERE worker IS NOT NULL), 0)
  + coalesce(any_value(time_ns) FILTER (WHERE worker IS NULL), 0) AS BIGINT) AS busiest_ns
FROM counted_work"""
