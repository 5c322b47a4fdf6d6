"""Computes the readings of a server's agent for given requests and a given condition. All data is
synthetic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, NamedTuple

from iodock.centre.watch.observation import SECOND, Kind, Observation

Condition = Literal["works", "hangs", "slow", "unreachable"]
MIB = 1 << 20
_MEANS = ("waiting", "threads", "cpu", "pressure", "load")
_PER_REQUEST = ("wait_s", "operation_s")
_COUNTS = ("handled", "opens", "closes", "creates", "object_creates", "moved_bytes")


class Demand(NamedTuple):
    """Rates of one job's requests per second."""

    opens: float = 0.0
    closes: float = 0.0
    creates: float = 0.0
    others: float = 0.0
    object_creates: float = 0.0
    moved_bytes: float = 0.0
    requests: float = 0.0

    @property
    def metadata(self) -> float:
        return self[0] + self[1] + self[2] + self[3]

    def times(self, factor: float) -> Demand:
        return Demand(*[value * factor for value in self])


@dataclass
class Machine:
    """A simulated server with its capacity and its present condition."""

    host: str
    kind: Kind
    capacity: float
    """Number of operations, or of bytes on object servers, per second."""
    threads: int
    base_s: float
    """Duration of an operation on the idle server, s."""
    condition: Condition = "works"
    since_s: float = 0.0
    """Time for which the server has been in this condition, s."""
    blocked: float = 0.0
    """Largest number of waiting processes if the server can't keep up or hangs."""
    trickle: float = 0.0
    """For a server that hangs, the share of the requests that it still handles."""
    slowness: float = 1.0
    scrub: float = 0.0
    """I/O pressure that the server's own check causes."""


def observed(machine: Machine, asked: Demand, seconds: float, random: Random) -> Observation:
    """Returns the readings of an interval of SECONDS that ends at the time 0. All values are known."""
    read = _metadata if machine.kind == "metadata" else _object
    found = read(machine, asked, random)
    begin = -int(seconds * SECOND)
    counts: dict[str, Any] = {
        name: value * seconds for name in _COUNTS if (value := getattr(found, name)) is not None
    }
    return _rounded(replace(found, host=machine.host, kind=machine.kind, begin_ns=begin, **counts))


def served_share(machine: Machine, asked: Demand) -> float:
    """Returns the share of the requests that are handled."""
    if machine.condition == "hangs":
        return machine.trickle
    if machine.condition == "unreachable":
        return 0.0
    amount = asked.metadata if machine.kind == "metadata" else asked.moved_bytes
    share = min(1.0, machine.capacity / amount) if amount > 0 else 1.0
    return share * (0.6 if machine.condition == "slow" else 1.0)


def _blank(kind: Kind) -> Observation:
    return Observation("", "lfs", kind, 0, 0)


def _metadata(machine: Machine, asked: Demand, random: Random) -> Observation:
    share = served_share(machine, asked)
    handled = asked.metadata * share
    done = asked.times(share)
    use = asked.metadata / machine.capacity
    wait, waiting, threads, cpu, pressure = _queue(machine, handled, use, random)
    load = threads if pressure > 0.5 else cpu * 16
    operation = machine.base_s * (1 + 2 * min(use, 1.0)) * machine.slowness * random.uniform(0.9, 1.1)
    return replace(
        _blank("metadata"), handled=handled, opens=done.opens, closes=done.closes, creates=done.creates,
        waiting=waiting if handled > 0 else None, wait_s=wait if handled > 0 else None,
        operation_s=operation if handled > 0 else None, threads=threads if handled > 0 else None,
        cpu=cpu, pressure=pressure, load=load,
    )  # fmt: skip


def _queue(
    machine: Machine, handled: float, use: float, random: Random
) -> tuple[float, float, float, float, float]:
    """Returns the waiting time, the number of waiting requests, the number of busy threads, and the shares of
    CPU and I/O pressure. The first two are consistent with Little's law."""
    if machine.condition == "hangs":
        waiting = max(4.0, machine.blocked * min(1.0, machine.since_s / 20) * random.uniform(0.95, 1.0))
        wait = min(machine.since_s * random.uniform(0.5, 1.0), waiting / max(handled, 1e-9))
        cpu, pressure = random.uniform(0.004, 0.02), random.uniform(0.9, 1.0)
        return wait, waiting, machine.threads * 1.0, cpu, pressure
    if machine.condition == "unreachable":
        return 0.0, 0.0, 0.0, random.uniform(0.004, 0.02), random.uniform(0.0, 0.03)
    if machine.condition == "slow":
        wait = machine.base_s + random.uniform(0.2, 0.6) * machine.slowness / 8
        threads = machine.threads * random.uniform(0.7, 0.98)
        return wait, handled * wait, threads, random.uniform(0.03, 0.1), random.uniform(0.7, 0.95)
    if use >= 1:
        ramp = min(1.0, machine.since_s / 15)
        waiting = max(machine.blocked * ramp, 2.0) * random.uniform(0.93, 1.03)
        cpu = random.uniform(0.9, 0.98)
        return waiting / max(handled, 1e-9), waiting, machine.threads * 1.0, cpu, random.uniform(0.1, 0.4)
    wait = machine.base_s * (0.5 + 2 * use**3 / (1 - use)) * random.uniform(0.8, 1.3)
    threads = min(machine.threads * 1.0, 1 + use * machine.threads * random.uniform(0.7, 0.9))
    cpu = 0.015 + 0.88 * use * random.uniform(0.93, 1.07)
    return wait, 1 + handled * wait, threads, cpu, 0.01 + 0.1 * use * random.random()


def _object(machine: Machine, asked: Demand, random: Random) -> Observation:
    share = served_share(machine, asked)
    done = asked.times(share)
    use = min(asked.moved_bytes / machine.capacity, 1.5)
    handled = done.requests + done.object_creates
    size = asked.moved_bytes / asked.requests if asked.requests else MIB
    operation = machine.base_s * (0.3 + size / MIB) * random.uniform(0.8, 1.25)
    pressure, load, cpu = 0.4 * min(use, 1.0) * random.uniform(0.5, 1.0), 1 + 12 * use, 0.02 + 0.2 * use
    if machine.condition == "hangs":
        operation, pressure, load, cpu = min(machine.since_s, 100.0), random.uniform(0.92, 1.0), 96.0, 0.01
    elif machine.condition == "unreachable":
        pressure, load, cpu = 0.01, 0.2, 0.01
    elif machine.condition == "slow":
        operation = (operation + 0.01) * machine.slowness
        pressure, load = random.uniform(0.8, 0.98), 30.0
    elif use >= 1:
        operation = (operation + 0.01) * random.uniform(8, 14)
        pressure, load = random.uniform(0.85, 0.99), machine.threads * random.uniform(0.6, 0.9)
    else:
        operation *= 1 + 1.5 * use**2
    return replace(
        _blank("object"), handled=handled, object_creates=done.object_creates, moved_bytes=done.moved_bytes,
        operation_s=operation if handled > 0 else None, cpu=cpu * random.uniform(0.9, 1.1),
        pressure=max(pressure, machine.scrub), load=load + 8 * machine.scrub,
    )  # fmt: skip


def blended(before: Observation, after: Observation, share: float) -> Observation:
    """Returns the readings of an interval in which the condition changed. SHARE is the last part of the
    interval, which has the values of AFTER; the rest has those of BEFORE."""
    old, new = before.handled or 0.0, after.handled or 0.0
    of_new = new * share / max(old * (1 - share) + new * share, 1e-12)
    mixed: dict[str, Any] = {}
    for names, weight in ((_COUNTS, share), (_MEANS, share), (_PER_REQUEST, of_new)):
        for name in names:
            first, last = getattr(before, name), getattr(after, name)
            if first is not None and last is not None:
                mixed[name] = first * (1 - weight) + last * weight
    return _rounded(replace(after, **mixed))


def _rounded(found: Observation) -> Observation:
    """Rounds to six significant digits, so that checksums do not depend on a library's last bit."""
    names = (*_COUNTS, *_MEANS, *_PER_REQUEST)
    values: dict[str, Any] = {
        name: float(f"{value:.6g}") for name in names if (value := getattr(found, name)) is not None
    }
    return replace(found, **values)
