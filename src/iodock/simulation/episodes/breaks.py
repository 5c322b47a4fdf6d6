"""Defines stories of failures: servers that disappear and return, network failures, silent agents."""

from __future__ import annotations

from iodock.centre.watch.observation import SECOND, News
from iodock.simulation.episodes.model import Machine
from iodock.simulation.episodes.stage import HISTORY, Scene, Stage
from iodock.simulation.episodes.stories import _overloaded, _storm


def _samples(stage: Stage, seconds: float) -> int:
    return max(3, min(60, round(seconds / stage.step_s)))


def failover(stage: Stage) -> None:
    """An object server dies; the next one takes over its targets, recovers, and gives them back."""
    random = stage.random
    stage.play(HISTORY, Scene())
    dead, heir = stage.objects[0], stage.objects[1]
    gone = frozenset((dead.host,))
    lost = {dead.host: News(lost=random.randint(2, 40))}
    away = {dead.host: News(is_away=True)}
    stage.play(_samples(stage, 45), Scene(truth={dead.host: "failover"}, news=lost, silent=gone))
    recovering = {heir.host: {"has_guests": True, "is_recovering": True}}
    both = {dead.host: "failover", heir.host: "failover"}
    stage.play(_samples(stage, 90), Scene(truth=both, news=away, silent=gone, marks=recovering))
    guests = {heir.host: {"has_guests": True}}
    one_side = {dead.host: "failover", heir.host: "degraded"}
    stage.play(_samples(stage, 900), Scene(truth=one_side, news=away, silent=gone, marks=guests))
    _come_back(stage, dead)


def _come_back(stage: Stage, machine: Machine) -> None:
    stage.uptime_s[machine.host] = stage.random.uniform(30, 90)
    recovering = {machine.host: {"is_recovering": True}}
    stage.play(_samples(stage, 60), Scene(truth={machine.host: "failover"}, marks=recovering))
    stage.play(20, Scene())


def reboot(stage: Stage) -> None:
    """The metadata server reboots: clients lose the connection, and it recovers afterwards."""
    stage.play(HISTORY, Scene())
    machine = stage.metadata
    news = {machine.host: News(lost=stage.random.randint(3, 200), has_no_answer=stage.has_probe)}
    gone = frozenset((machine.host,))
    truth = {machine.host: "failover"} | {one.host: "" for one in stage.objects}
    stage.play(_samples(stage, 240), Scene(truth=truth, news=news, silent=gone))
    _come_back(stage, machine)


def network_cut(stage: Stage) -> None:
    """Clients can't reach a server whose agent is heard through another network."""
    stage.play(HISTORY, Scene())
    machine = stage.random.choice(stage.machines)
    stage.turn(machine, "unreachable")
    news = {machine.host: News(lost=stage.random.randint(20, 200), has_no_answer=stage.has_probe)}
    marks = {machine.host: {"evictions": stage.random.randint(5, 80)}}
    stage.play(stage.random.randint(12, 50), Scene(truth={machine.host: "degraded"}, news=news, marks=marks))
    stage.turn(machine, "works")
    stage.play(15, Scene())


def missing_samples(stage: Stage) -> None:
    """Single samples are lost, which changes nothing; then agents are silent for a long time."""
    random = stage.random
    stage.play(HISTORY, Scene())
    for _ in range(4):
        stage.play(1, Scene(silent=frozenset(random.sample(stage.hosts, 1))))
        stage.play(random.randint(3, 8), Scene())
    cut = frozenset(stage.hosts if random.random() < 0.5 else random.sample(stage.hosts, 1))
    stage.play(random.randint(10, 60), Scene(truth=dict.fromkeys(cut, "no-samples"), silent=cut))
    stage.play(20, Scene())


def clock_skew(stage: Stage) -> None:
    """Agents' clocks are wrong by up to 50 minutes, one is corrected in between, and a job overloads the
    server."""
    random = stage.random
    for host in stage.hosts:
        stage.skew_ns[host] = int(random.choice((-3000, -300, -40, 40, 300, 3000)) * SECOND * random.random())
    stage.play(HISTORY, Scene())
    host = random.choice(stage.hosts)
    stage.skew_ns[host] = 0
    stage.play(30, Scene())
    _overloaded(stage, [_storm(stage, random.uniform(1.2, 2.5))], 25)
