"""Defines one simulated episode: rounds of observations and reports from other machines, requests of jobs,
and the true states."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

from iodock.centre.watch.observation import SECOND, Asked, Round
from iodock.centre.watch.verdict import State
from iodock.simulation.episodes.model import Demand


@dataclass(frozen=True)
class Served:
    """Requests of jobs to one server in an interval, by its agent's clock."""

    begin_ns: int
    end_ns: int
    seconds: float
    """Length of the interval, s."""
    jobs: Sequence[tuple[str, Demand]]

    def rows(self, share: float) -> list[Asked]:
        """Returns the requests of each job in a part of the interval. SHARE is the length of this part as a
        share of the interval, from 0 to 1."""
        seconds = self.seconds * share
        return [
            Asked(
                job, one.metadata * seconds, one.opens * seconds, one.creates * seconds,
                one.object_creates * seconds, one.moved_bytes * seconds, one.requests * seconds,
            )
            for job, one in self.jobs
        ]  # fmt: skip


@dataclass(frozen=True)
class Tick:
    """One round with the true states of the servers."""

    round: Round
    truth: Mapping[str, State]
    """True state of each host. A host that is missing is not judged."""
    culprits: tuple[str, ...] = ()
    """Jobs that caused an overload or a stall; empty: no job did."""


@dataclass
class Episode:
    story: str
    seed: int
    step_s: float
    ticks: list[Tick] = field(default_factory=list)
    _asked: dict[str, list[Served]] = field(default_factory=dict)
    """Rows of requests to each host."""

    def add(self, tick: Tick, asked: Mapping[str, Served]) -> None:
        self.ticks.append(tick)
        for host, rows in asked.items():
            self._asked.setdefault(host, []).append(rows)

    def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
        """Returns the requests of jobs as described in `iodock.centre.watch.observation.Jobs`. If
        WITH_OBJECTS is true, the rows of a metadata server include the objects that all object servers
        created for a job. An interval that is only partly inside the period counts in proportion."""
        found = self._of_host(host, begin_ns, end_ns)
        if host != METADATA_HOST or not with_objects:
            return list(found.values())
        made: dict[str, float] = {}
        for other in self._asked:
            for job, one in self._of_host(other, begin_ns, end_ns).items():
                made[job] = made.get(job, 0.0) + (one.object_creates or 0.0)
        return [replace(one, object_creates=made.get(job)) for job, one in found.items()]

    def _of_host(self, host: str, begin_ns: int, end_ns: int) -> dict[str, Asked]:
        total: dict[str, list[float]] = {}
        for served in self._asked.get(host, []):
            within = min(served.end_ns, end_ns) - max(served.begin_ns, begin_ns)
            share = within / max(served.end_ns - served.begin_ns, 1)
            for one in served.rows(share) if share > 0 else ():
                _, *values = astuple(one)
                kept = total.setdefault(one.job, [0.0] * len(values))
                for at, value in enumerate(values):
                    kept[at] += value or 0.0
        return {job: Asked(job, *values) for job, values in total.items()}

    def digest(self) -> str:
        """Returns a checksum of the whole content, including the true states."""
        found = hashlib.sha256(f"{self.story} {self.seed} {self.step_s}".encode())
        for tick in self.ticks:
            for one in tick.round.observations:
                found.update(repr([getattr(one, name) for name in _READ]).encode())
            for host, news in sorted(tick.round.news.items()):
                found.update(repr([host, *(getattr(news, name) for name in _TOLD)]).encode())
            found.update(repr((tick.round.now_ns, sorted(tick.truth.items()), tick.culprits)).encode())
        for host, served in sorted(self._asked.items()):
            for row in served:
                amounts = " ".join(f"{job} {sum(demand) * row.seconds:.4g}" for job, demand in row.jobs)
                found.update(f"{host} {row.begin_ns} {row.end_ns} {amounts}".encode())
        return found.hexdigest()


# The checksum contains only these fields. Fields that were added to the classes later, and that no story
# sets, would otherwise change it.
_READ = (
    *("host", "kind", "begin_ns", "end_ns", "handled", "opens", "closes", "creates", "object_creates"),
    *("moved_bytes", "waiting", "wait_s", "operation_s", "threads", "cpu", "pressure", "load", "uptime_s"),
    *("evictions", "is_recovering", "has_guests"),
)
_TOLD = (
    *("lost", "is_away", "faults", "is_checked", "probe_s", "has_no_answer", "client_wait_s", "backlog"),
)
METADATA_HOST = "mds01"
BEGIN_NS = 1_772_438_400 * SECOND
"""Begin of all runs: 2026-03-02 08:00 UTC."""
