"""Defines the stories, each as a function that acts on a stage. Figures about the K computer come from its
report (2017). Other amounts are invented to match these figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from iodock.centre.watch.observation import News
from iodock.simulation.episodes.model import MIB, Demand
from iodock.simulation.episodes.stage import HISTORY, Job, Scene, Stage

Story = Callable[[Stage], None]


def idle(stage: Stage) -> None:
    stage.play(HISTORY, Scene())
    stage.change()
    stage.play(60, Scene(level=stage.random.choice((0.0, 0.002, 0.01, 0.05))))
    stage.change()
    stage.play(20, Scene())


def healthy(stage: Stage) -> None:
    stage.play(HISTORY + 60, Scene())


def busy_day(stage: Stage) -> None:
    """Many jobs send bursts at the same time. The load is high, but requests are answered in time."""
    stage.play(HISTORY, Scene())
    for _ in range(stage.random.randint(2, 4)):
        stage.change()
        level = stage.random.uniform(0.64, 0.75) / stage.use
        scene = Scene(level=level, object_level=1.0, truth=_of_metadata(stage, "busy"), is_steady=True)
        stage.play(stage.random.randint(6, 20), scene)
        stage.change()
        stage.play(stage.random.randint(8, 25), Scene())


def backup(stage: Stage) -> None:
    """One job stats and reads every file."""
    stage.play(HISTORY, Scene())
    rate = stage.metadata.capacity * stage.random.uniform(0.5, 0.62)
    moved = 0.55 * sum(machine.capacity for machine in stage.objects)
    demand = Demand(rate * 0.1, rate * 0.1, 0.0, rate * 0.8, 0.0, moved, moved / (1.5 * MIB))
    truth = dict.fromkeys(stage.hosts, "busy")
    stage.change()
    stage.play(60, Scene(extra=[Job(stage.number(), demand)], truth=truth))
    stage.change()
    stage.play(15, Scene())


def scrub(stage: Stage) -> None:
    """An array checks itself, without any effect on users."""
    stage.play(HISTORY, Scene())
    one = stage.random.choice(stage.objects)
    stage.unread = tuple(name for name in stage.unread if name != "pressure")
    stage.turn(one, "works", scrub=stage.random.uniform(0.65, 0.9))
    stage.play(60, Scene(truth={one.host: "busy"}, news={one.host: News(is_checked=True)}))
    stage.turn(one, "works", scrub=0.0)
    stage.play(15, Scene())


def _storm(stage: Stage, share: float, stripes: float = 1.0) -> Job:
    """Makes a job that opens and closes files in one directory, and uses a share of the server's capacity."""
    rate = stage.metadata.capacity * share
    made = stage.random.uniform(0.02, 0.12)
    demand = Demand(rate * 0.4, rate * 0.4, rate * made, rate * (0.2 - made), 0.0, rate * 500, rate * 0.03)
    return Job(stage.number(), demand, stripes)


def overload(count: int) -> Story:
    def play(stage: Stage) -> None:
        stage.play(HISTORY, Scene())
        whole = stage.random.uniform(1.3, 3.0)
        jobs = [_storm(stage, whole / count * stage.random.uniform(0.8, 1.2) + 0.1) for _ in range(count)]
        _overloaded(stage, jobs, stage.random.randint(20, 60))

    return play


def _overloaded(stage: Stage, jobs: list[Job], samples: int, level: float = 1.0) -> None:
    stage.change()
    stage.metadata.blocked = stage.metadata.capacity * stage.random.uniform(0.25, 2.0)
    scene = Scene(
        level=level, extra=jobs, truth=_of_metadata(stage, "overload"),
        culprits=tuple(job.name for job in jobs), news=_felt(stage, 0.7),
    )  # fmt: skip
    stage.play(samples, scene)
    stage.change()
    stage.play(15, Scene(level=level))


def _of_metadata(stage: Stage, state: str) -> dict[str, Any]:
    """Returns the true states if the metadata server is in STATE. Object servers are not judged during this
    time. If STATE is empty, the metadata server is not judged either."""
    return {"mds01": state} | {machine.host: "" for machine in stage.objects}


def _felt(stage: Stage, wait_s: float, **values: Any) -> dict[str, News]:
    """Returns the effects of a slow metadata server on clients and probes, if there are any."""
    news = News(
        probe_s=wait_s * 4 if stage.has_probe else None,
        client_wait_s=wait_s if stage.has_clients else None,
        backlog=stage.metadata.blocked if stage.has_clients else None,
    )
    return {"mds01": replace(news, **values)}


def overload_beside_an_old_job(stage: Stage) -> None:
    """A new job overloads the server. Another job has sent many requests all the time and is not the
    cause."""
    old = _storm(stage, stage.random.uniform(0.25, 0.35))
    stage.play(HISTORY, Scene(extra=[old], truth={"mds01": ""}))
    new = _storm(stage, stage.random.uniform(0.8, 1.2))
    stage.change()
    stage.metadata.blocked = stage.metadata.capacity * stage.random.uniform(0.25, 2.0)
    scene = Scene(
        extra=[old, new], truth=_of_metadata(stage, "overload"), culprits=(new.name,), news=_felt(stage, 0.7)
    )
    stage.play(40, scene)
    stage.change()
    stage.play(15, Scene(extra=[old], truth={"mds01": ""}))


def k_overload(stage: Stage) -> None:
    """Repeats an overload of the K computer, in which 8,000 processes on 1,008 nodes used one shared
    directory. The load is constant during the overload."""
    stage.metadata.capacity, stage.metadata.threads = 27_300.0, 24
    stage.use = 0.04
    stage.jobs = stage._ordinary(20)
    stage.play(HISTORY, Scene())
    demand = Demand(12.0, 12.0, 2.0, 6.0).times(1008)
    stage.metadata.blocked = 7_900.0
    stage.change()
    job = Job(stage.number(), demand, 4.0)
    stage.play(
        120,
        Scene(
            extra=[job], truth=_of_metadata(stage, "overload"), culprits=(job.name,), news=_felt(stage, 0.7)
        ),
    )


def k_stall(stage: Stage) -> None:
    """Repeats a stall of the K computer, in which 12,096 processes created 84,000 files of 12 stripes. The
    job ran from 12:08 to 12:26, and the server handled hardly any requests from 12:10 to 12:23."""
    stage.metadata.capacity, stage.metadata.threads = 27_300.0, 24
    stage.use = 0.05
    stage.jobs = stage._ordinary(20)
    stage.play(HISTORY, Scene())

    def minutes(count: int) -> int:
        return min(count * max(1, round(60 / stage.step_s)), 150)

    files = Demand(
        84_672 / 300, 84_672 / 300, 84_672 / 300, 84_672 / 300, requests=280.0, moved_bytes=280.0 * MIB
    )
    job = Job(stage.number(), files, 12.0)
    stage.change()
    stage.play(minutes(2), Scene(extra=[job], truth=_of_metadata(stage, "")))
    stage.turn(stage.metadata, "hangs", blocked=12_000.0, trickle=stage.random.uniform(0.01, 0.05))
    truth = _of_metadata(stage, "stall")
    news = _felt(stage, 60.0, has_no_answer=stage.has_probe)
    stage.play(minutes(13), Scene(extra=[job], truth=truth, culprits=(job.name,), news=news))
    stage.turn(stage.metadata, "works")
    stage.play(minutes(3), Scene(extra=[job], truth=_of_metadata(stage, "healthy")))
    stage.change()
    stage.play(12, Scene())


def stall(stage: Stage) -> None:
    """A stall like that of the K computer with other sizes. Sometimes clients are evicted, and sometimes no
    request at all is handled."""
    random = stage.random
    stage.play(HISTORY, Scene())
    stripes = random.choice((8.0, 16.0, 96.0))
    rate = stage.metadata.capacity * random.uniform(0.05, 0.25)
    job = Job(stage.number(), Demand(rate / 4, rate / 4, rate / 4, rate / 4), stripes)
    stage.change()
    stage.play(random.randint(1, 4), Scene(extra=[job], truth=_of_metadata(stage, "")))
    _hang(stage, [job])


def hang_without_a_job(stage: Stage) -> None:
    """The server's own disk hangs. The number of requests did not grow before."""
    stage.play(HISTORY, Scene())
    _hang(stage, [])


def _hang(stage: Stage, jobs: list[Job]) -> None:
    random = stage.random
    usual = stage.use * stage.metadata.capacity
    whole = usual + sum(job.demand.metadata for job in jobs)
    trickle = 0.0 if random.random() < 0.3 else 10 ** random.uniform(-4, -1.1) * usual / whole
    stage.turn(stage.metadata, "hangs", blocked=random.uniform(300, 15_000), trickle=trickle)
    if trickle == 0.0:
        # If no requests are handled, the queue length is unknown, so the trouble must show in other values.
        stage.unread = tuple(name for name in stage.unread if name != "pressure")
    news = _felt(stage, 60.0, has_no_answer=stage.has_probe, lost=random.randint(0, 3))
    marks = {"mds01": {"evictions": random.randint(0, 2)}}
    scene = Scene(
        extra=jobs, truth=_of_metadata(stage, "stall"), culprits=tuple(job.name for job in jobs), news=news,
        marks=marks,
    )  # fmt: skip
    stage.play(random.randint(12, 80), scene)
    stage.turn(stage.metadata, "works")
    stage.play(15, Scene(truth=_of_metadata(stage, "healthy")))


def object_stall(stage: Stage) -> None:
    """An object server hangs."""
    stage.play(HISTORY, Scene())
    one = stage.random.choice(stage.objects)
    stage.unread = tuple(name for name in stage.unread if name != "pressure")
    stage.turn(one, "hangs", trickle=10 ** stage.random.uniform(-4, -1.5))
    scene = Scene(truth={one.host: "stall"}, news={one.host: News(has_no_answer=stage.has_probe)})
    stage.play(stage.random.randint(12, 60), scene)
    stage.turn(one, "works")
    stage.play(15, Scene())


def object_overload(stage: Stage) -> None:
    """One job writes more than the object servers can handle."""
    stage.play(HISTORY, Scene())
    moved = sum(machine.capacity for machine in stage.objects) * stage.random.uniform(1.4, 3)
    job = Job(
        stage.number(), Demand(1.0, 1.0, 1.0, 1.0, 0.0, moved, moved / (stage.random.uniform(0.5, 4) * MIB))
    )
    stage.change()
    truth = dict.fromkeys((machine.host for machine in stage.objects), "overload")
    scene = Scene(extra=[job], truth=truth, culprits=(job.name,))
    stage.play(40, scene)
    stage.change()
    stage.play(15, Scene())


def slow_array(stage: Stage) -> None:
    """An array lost a disk. It is slow, and gets no more requests than usual. Half of the runs report an
    event."""
    random = stage.random
    stage.play(HISTORY, Scene())
    one = random.choice([*stage.objects, *stage.objects, stage.metadata])
    if one is stage.metadata:
        stage.unread = ()
    stage.turn(one, "slow", slowness=random.uniform(8, 20))
    told = {one.host: News(faults=("array-degraded",))} if random.random() < 0.5 else {}
    stage.play(60, Scene(truth={one.host: "degraded"}, news=told))
    stage.turn(one, "works")
    stage.play(15, Scene())
