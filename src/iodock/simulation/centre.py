"""Implements the simulated centre, in which jobs of users start, use targets and end, and servers change
their condition."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any

from iodock.simulation.counters import SECOND_NS, Rate
from iodock.simulation.flow import Entry, Stream
from iodock.simulation.jobs import Application, Job, Phase, metadata_rates, object_rates
from iodock.simulation.population import Population
from iodock.simulation.scenarios import HEALTHY, Scenario, Spell
from iodock.simulation.server import Server
from iodock.simulation.target import Kind, Target

BEGIN_NS = 1_772_438_400 * SECOND_NS
"""Default begin: 2026-03-02 08:00 UTC."""
FILE_SYSTEM = "lfs"
TAKEOVER_S = 45.0
"""Time from an object server's failure until another server takes over its targets."""


@dataclass(eq=False)
class Work:
    """A running job with its streams of operations and its phases."""

    job: Job
    application: Application
    metadata: list[Stream]
    objects: list[Stream]
    phases: Iterator[Phase]
    is_over: bool = False


class Centre:
    """A simulated centre. Its data depends only on the scenario, the seed and the sizes, and not on the steps
    in which `advance` is called. Times are in ns since the epoch."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int = 1,
        begin_ns: int = BEGIN_NS,
        servers: int | None = None,
        jobs: int | None = None,
    ) -> None:
        """SERVERS is the number of servers, at least 2, including the metadata server, which is the first.
        JOBS is the number of jobs that run at the same time."""
        self.scenario = replace(
            scenario,
            servers=max(2, servers or scenario.servers),
            jobs=scenario.jobs if jobs is None else jobs,
        )
        self.seed, self.begin_ns, self.now_ns = seed, begin_ns, begin_ns
        self.random = Random(seed)
        self.servers = _servers(self.scenario, begin_ns)
        self.jobs: list[Job] = []
        """All jobs so far."""
        self.streams: list[Stream] = []
        self._object_targets = [target for target in self.targets if target.kind == "obdfilter"]
        self._metadata_target = next(target for target in self.targets if target.kind == "mdt")
        self._events: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []
        self._order = count()
        self._population = Population(self.scenario, self.random)
        self._works: dict[Work, None] = {}
        """Running jobs of the scenario's mix, in order. When one ends, another one replaces it."""
        self._plan(self.scenario, 0.0)
        for job, application in self._population.outside_of_jobs(self.now_ns):
            self._start(job, application)
        self._fill()

    @property
    def targets(self) -> list[Target]:
        return [target for server in self.servers for target in server.home]

    def advance(self, seconds: float) -> None:
        """Advances the simulated time and processes the events in between."""
        end_ns = self.now_ns + int(seconds * SECOND_NS)
        while self._events and self._events[0][0] <= end_ns:
            self.now_ns, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
        self.now_ns = end_ns
        for server in self.servers:
            for target in server.targets:
                target.bring_back(end_ns)

    def readings(self, since_ns: int | None = None) -> Iterator[tuple[Target, Entry, dict[str, int]]]:
        """Yields, for all targets that are served now: target, entry (`job_id`, `job`, `start_ns`,
        `updated_ns(now)`), and its counters, named as in `iodock-agent`. If SINCE_NS is given, yields only
        entries that may have been used after this time."""
        for server in self.servers:
            if server.is_up:
                for target in server.targets:
                    for entry, counters in target.readings(self.now_ns, since_ns):
                        yield target, entry, counters

    def submit(self, application: Application, seconds: float | None = None) -> Job:
        """Starts a job of a program at the present simulated time."""
        job = self._population.job(application, self.now_ns, seconds)
        self._start(job, application)
        return job

    def _after(self, seconds: float, action: Callable[..., object], *arguments: Any) -> None:
        due_ns = self.now_ns + int(seconds * SECOND_NS)
        heapq.heappush(self._events, (due_ns, next(self._order), action, arguments))

    def turn(self, scenario: Scenario, first_s: float, jobs: int | None = None) -> float:
        """Switches to SCENARIO, whose first event happens after FIRST_S seconds. The servers are kept. If the
        scenario has other kinds of jobs, the running jobs are cancelled and JOBS new ones (default: the
        present number) start. Returns the scenario's present time in s, which is negative if it begins
        later."""
        before = self.scenario
        self.scenario = replace(
            scenario, servers=before.servers, targets_per_server=before.targets_per_server,
            release=before.release, jobid_name=before.jobid_name, jobs=before.jobs,
        )  # fmt: skip
        for target in self.targets:
            target.cleanup_s = scenario.cleanup_s
        starts = [special.at_s for special in scenario.specials] + [spell.at_s for spell in scenario.spells]
        passed_s = min(starts, default=first_s) - first_s
        self._plan(scenario, -passed_s)
        if scenario.mix != before.mix:
            self.scenario = replace(self.scenario, jobs=scenario.jobs if jobs is None else jobs)
            self._population.turn(self.scenario)
            self._cancel_all()
            self._fill()
        return passed_s

    def _plan(self, scenario: Scenario, begins_s: float) -> None:
        """Schedules the scenario's events. BEGINS_S is the time in s until the scenario's time zero."""
        for special in scenario.specials:
            self._after(begins_s + special.at_s, self.submit, special.application)
        for spell in scenario.spells:
            self._after(begins_s + spell.at_s, self._begin, spell)

    def _fill(self) -> None:
        for _ in range(self.scenario.jobs):
            # These jobs began before the simulation, so only a random part of their duration remains.
            application = self._population.application()
            whole = self._population.seconds(application)
            self._start(
                self._population.job(application, self.now_ns, whole * self.random.random() + 1),
                application,
                is_replaced=True,
            )

    def _start(self, job: Job, application: Application, is_replaced: bool = False) -> None:
        stripes = min(len(self._object_targets), self.random.randint(*application.stripes))
        chosen = self.random.sample(self._object_targets, stripes)
        ids = job.ids(self.scenario.jobid_name)
        metadata = [Stream(job, job_id, self._metadata_target) for job_id in ids]
        objects = [Stream(job, job_id, target) for target in chosen for job_id in ids]
        self.jobs.append(job)
        self.streams += metadata + objects
        work = Work(job, application, metadata, objects, _phases(application))
        if is_replaced:
            self._works[work] = None
        if job.end_ns is not None:
            self._after((job.end_ns - job.start_ns) / SECOND_NS, self._end, work, is_replaced)
        self._next_phase(work)

    def _next_phase(self, work: Work) -> None:
        if work.is_over or (work.job.end_ns is not None and self.now_ns >= work.job.end_ns):
            return
        phase = next(work.phases)
        factor = 1.0 if phase.is_exact else self.random.uniform(0.5, 1.5)
        nodes = len(work.job.nodes)
        per_id = nodes / len(work.metadata)
        self._set(work.metadata, metadata_rates(phase, per_id, factor))
        per_target = nodes / max(1, len(work.objects))
        self._set(work.objects, object_rates(phase, per_target, factor))
        self._after(self.random.uniform(*phase.seconds), self._next_phase, work)

    def _set(self, streams: list[Stream], rates: list[Rate]) -> None:
        for stream in streams:
            stream.change(rates, self.now_ns)

    def _cancel_all(self) -> None:
        """Ends the running jobs of the scenario's mix early, and starts no others instead."""
        ended: dict[int, Job] = {}
        for work in self._works:
            streams = work.metadata + work.objects
            self._set(streams, [])
            work.is_over = True
            ended[id(work.job)] = replace(work.job, end_ns=self.now_ns)
            for stream in streams:
                stream.job = ended[id(work.job)]
        self.jobs = [ended.get(id(job), job) for job in self.jobs]
        self._works = {}

    def _end(self, work: Work, is_replaced: bool) -> None:
        if work.is_over:
            return
        self._set(work.metadata + work.objects, [])
        if is_replaced:
            del self._works[work]
            # A job of the same kind replaces the ended one, so that the proportions of the kinds stay
            # constant although their durations differ.
            self._after(self.random.expovariate(1 / 5.0), self._replace, work.application)

    def _replace(self, application: Application) -> None:
        if all(application != one for one, _ in self.scenario.mix):
            # The scenario was switched after this replacement was scheduled, and it has no jobs of this kind.
            return
        job = self._population.job(application, self.now_ns, None)
        self._start(job, application, is_replaced=True)

    def _begin(self, spell: Spell) -> None:
        server = self.servers[spell.server]
        server.enter(spell.condition, self.now_ns)
        if spell.kind == "failover":
            self._after(TAKEOVER_S, self._take_over, server)
        self._after(spell.seconds, self._recover, spell)

    def _take_over(self, server: Server) -> None:
        heir = self._heir(server)
        server.give(list(server.targets), heir, self.now_ns)

    def _heir(self, server: Server) -> Server:
        """Returns the next object server, or the server itself if it is the only one."""
        others = [other for other in self.servers if not other.is_metadata_server and other is not server]
        return others[0] if others else server

    def _recover(self, spell: Spell) -> None:
        server = self.servers[spell.server]
        if spell.kind == "failover":
            server.condition = HEALTHY
            server.boot(self.now_ns)
            self._heir(server).give(list(server.home), server, self.now_ns)
        elif spell.kind == "reboot":
            server.boot(self.now_ns)
        if server.condition is not HEALTHY:
            server.enter(HEALTHY, self.now_ns)


def _phases(application: Application) -> Iterator[Phase]:
    yield from application.once
    while True:
        yield from application.cycle


def _servers(scenario: Scenario, now_ns: int) -> list[Server]:
    def target(name: str, is_metadata: bool = False) -> Target:
        kind: Kind = "mdt" if is_metadata else "obdfilter"
        return Target(f"{FILE_SYSTEM}-{name}", kind, now_ns, scenario.cleanup_s)

    servers = [Server("mds01", [target("MDT0000", True)], now_ns)]
    for at in range(scenario.servers - 1):
        first = at * scenario.targets_per_server
        targets = [target(f"OST{first + n:04x}") for n in range(scenario.targets_per_server)]
        servers.append(Server(f"oss{at + 1:02d}", targets, now_ns))
    return servers
