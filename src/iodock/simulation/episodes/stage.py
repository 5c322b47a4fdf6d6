"""Implements the setting of a story: one metadata server, object servers, and the jobs that run all the
time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from iodock.centre.watch.observation import SECOND, News, Observation, Round
from iodock.simulation.episodes.episode import BEGIN_NS, Episode, Served, Tick
from iodock.simulation.episodes.model import MIB, Condition, Demand, Machine, blended, observed, served_share

HISTORY = 200
"""Number of samples of ordinary operation before the story begins."""
_ROWS = 120
"""The last number of samples that include requests of jobs. A query goes back 18 minutes."""
_UNREAD = {
    "cpu": ("cpu",),
    "service": ("waiting", "wait_s", "threads"),
    "pressure": ("pressure", "load"),
}
"""Values that some sites do not read."""


@dataclass
class Job:
    name: str
    demand: Demand
    stripes: float = 1.0
    factor: float = 1.0
    """Factor on the job's requests in this phase."""
    is_ordinary: bool = False
    """Whether the job is one of the permanent jobs."""


@dataclass
class Scene:
    """Conditions during one sample."""

    level: float = 1.0
    """Factor on the requests of the ordinary jobs."""
    object_level: float | None = None
    """Factor on the bytes of the ordinary jobs; None: it is the same as `level`."""
    extra: Sequence[Job] = ()
    truth: Mapping[str, Any] = field(default_factory=dict)
    """True states of hosts that are not healthy. An empty text means that the host is not judged."""
    culprits: tuple[str, ...] = ()
    news: Mapping[str, News] = field(default_factory=dict)
    marks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each host, fields of its observation, such as `evictions` and `is_recovering`."""
    silent: frozenset[str] = frozenset()
    is_steady: bool = False
    """Whether the ordinary jobs together send a nearly constant rate."""


class Stage:
    def __init__(self, story: str, seed: int, step_s: float | None = None) -> None:
        self.random = Random(f"{story} {seed}")
        random = self.random
        self.step_s = step_s or random.choice((1.0, 10.0, 10.0, 60.0))
        self.episode = Episode(story, seed, self.step_s)
        self.use = random.uniform(0.03, 0.18)
        """Mean utilisation of the metadata server."""
        capacity = 10 ** random.uniform(3.6, 4.5)
        threads = random.choice((16, 24, 64, 128))
        self.metadata = Machine("mds01", "metadata", capacity, threads, random.uniform(5e-5, 2e-4))
        bandwidth, base_s = random.uniform(0.8, 6) * 1e9, random.uniform(1e-3, 4e-3)
        self.objects = [
            Machine(f"oss{n + 1:02d}", "object", bandwidth, 64, base_s) for n in range(random.randint(2, 4))
        ]
        self.unread = tuple(
            name for name, chance in (("cpu", 0.12), ("pressure", 0.1)) if random.random() < chance
        )
        self.has_clients, self.has_probe = random.random() < 0.7, random.random() < 0.7
        self.jobs = self._ordinary(random.randint(6, 25))
        self.now_ns = BEGIN_NS
        self.skew_ns = dict.fromkeys(self.hosts, 0)
        self.uptime_s = {host: random.uniform(1e5, 1e7) for host in self.hosts}
        self._drift = 1.0
        self._before: dict[str, Observation] = {}
        self._changed: set[str] = set()

    @property
    def machines(self) -> list[Machine]:
        return [self.metadata, *self.objects]

    @property
    def hosts(self) -> list[str]:
        return [machine.host for machine in self.machines]

    def number(self) -> str:
        """Returns a job id that is not used yet."""
        return str(self.random.randint(10**6, 10**7))

    def turn(self, machine: Machine, condition: Condition, **values: float) -> None:
        """Changes the condition of a machine. The change takes effect at a time within the next interval."""
        machine.condition, machine.since_s = condition, 0.0
        for name, value in values.items():
            setattr(machine, name, value)
        self._changed.add(machine.host)

    def change(self) -> None:
        """Makes the requests to all servers change at a time within the next interval."""
        self._changed |= set(self.hosts)
        for machine in self.machines:
            machine.since_s = 0.0

    def play(self, samples: int, scene: Scene) -> None:
        for _ in range(samples):
            self._step(scene)

    def _ordinary(self, count: int) -> list[Job]:
        random = self.random
        weights = [random.lognormvariate(0, 1) for _ in range(count)]
        bytes_of = [random.lognormvariate(0, 1.2) for _ in range(count)]
        whole, moved = sum(weights), sum(bytes_of)
        all_bytes = 0.12 * sum(machine.capacity for machine in self.objects)
        jobs = []
        for weight, part in zip(weights, bytes_of, strict=True):
            rate = self.use * self.metadata.capacity * weight / whole
            opens, creates = rate * random.uniform(0.15, 0.3), rate * random.uniform(0.01, 0.06)
            amount = all_bytes * part / moved
            demand = Demand(
                opens, opens, creates, rate - 2 * opens - creates, 0.0, amount,
                amount / (random.uniform(0.5, 2) * MIB),
            )  # fmt: skip
            jobs.append(Job(self.number(), demand, random.choice((1.0, 1.0, 2.0, 4.0)), is_ordinary=True))
        return jobs

    def _step(self, scene: Scene) -> None:
        random, length = self.random, int(self.step_s * SECOND)
        self.now_ns += length
        least, most = (0.9, 1.1) if scene.is_steady else (0.6, 1.5)
        self._drift = min(most, max(least, self._drift * random.uniform(0.93, 1.075)))
        for job in self.jobs:
            if random.random() < 0.05:
                job.factor = random.uniform(0.3, 1.7)
        on_metadata, on_objects = self._asked(scene)
        observations: list[Observation] = []
        rows: dict[str, Served] = {}
        for machine in self.machines:
            machine.since_s += self.step_s
            asked = on_objects if machine.kind == "object" else on_metadata
            whole = _sum(asked)
            one = self._observed(machine, whole, scene)
            if machine.host not in scene.silent:
                observations.append(one)
                if len(self.episode.ticks) >= HISTORY - _ROWS:
                    share = served_share(machine, whole) * self.step_s
                    rows[machine.host] = Served(one.begin_ns, one.end_ns, share, asked)
        self._changed.clear()
        truth: dict[str, Any] = dict.fromkeys(self.hosts, "healthy") | dict(scene.truth)
        judged = {host: state for host, state in truth.items() if state}
        self._count_creates(observations)
        round_ = Round(self.now_ns, tuple(observations), self._news(scene))
        self.episode.add(Tick(round_, judged, scene.culprits), rows)

    def _news(self, scene: Scene) -> dict[str, News]:
        """Returns observations of clients and probes for a healthy metadata server, and of a client that was
        restarted."""
        found = dict(scene.news)
        if "mds01" not in found:
            wait_s = self.metadata.base_s * self.random.uniform(1.5, 3)
            found["mds01"] = News(
                lost=int(self.random.random() < 0.01),
                probe_s=float(f"{wait_s * 20:.6g}") if self.has_probe else None,
                client_wait_s=float(f"{wait_s:.6g}") if self.has_clients else None,
                backlog=float(f"{self.random.uniform(0, 2):.6g}") if self.has_clients else None,
            )
        return found

    @staticmethod
    def _count_creates(observations: list[Observation]) -> None:
        """Adds the creates on all object servers to the metadata server's observation."""
        made = sum(one.object_creates or 0.0 for one in observations if one.kind == "object")
        for at, one in enumerate(observations):
            if one.kind == "metadata":
                observations[at] = replace(one, object_creates=float(f"{made:.6g}"))

    def _asked(self, scene: Scene) -> tuple[list[tuple[str, Demand]], list[tuple[str, Demand]]]:
        """Returns the requests of each job to the metadata server, and to each object server. All object
        servers get the same."""
        total = sum(job.demand.metadata * job.factor for job in self.jobs)
        even = self.use * self.metadata.capacity / max(total, 1e-9) * self._drift
        object_level = scene.level if scene.object_level is None else scene.object_level
        on_metadata, on_objects, part = [], [], 1 / len(self.objects)
        for job in (*self.jobs, *scene.extra):
            is_ordinary = job.is_ordinary
            level = scene.level * even * job.factor if is_ordinary else 1.0
            bytes_level = object_level * even * job.factor if is_ordinary else 1.0
            opens, closes, creates, others, _, moved, requests = job.demand
            on_metadata.append((job.name, Demand(opens, closes, creates, others).times(level)))
            made = creates * job.stripes * level * part
            moved, requests = moved * bytes_level * part, requests * bytes_level * part
            on_objects.append((job.name, Demand(object_creates=made, moved_bytes=moved, requests=requests)))
        return on_metadata, on_objects

    def _observed(self, machine: Machine, whole: Demand, scene: Scene) -> Observation:
        found = observed(machine, whole, self.step_s, self.random)
        if machine.host in self._changed and machine.host in self._before:
            found = blended(self._before[machine.host], found, self.random.uniform(0.05, 1.0))
        self._before[machine.host] = found
        self.uptime_s[machine.host] += self.step_s
        end = self.now_ns + self.skew_ns[machine.host]
        hidden = [name for what in self.unread for name in _UNREAD[what]]
        values: dict[str, Any] = {
            "begin_ns": end - int(self.step_s * SECOND), "end_ns": end,
            "uptime_s": round(self.uptime_s[machine.host], 1),
            "evictions": int(self.random.random() < 0.005),
            **dict.fromkeys(hidden), **scene.marks.get(machine.host, {}),
        }  # fmt: skip
        return replace(found, **values)


def _sum(asked: Sequence[tuple[str, Demand]]) -> Demand:
    return Demand(*[sum(values) for values in zip(*[demand for _, demand in asked], strict=True)])
