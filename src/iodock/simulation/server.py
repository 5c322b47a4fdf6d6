"""Implements one simulated server with its targets, its condition, and its counters of requests and of the
machine."""

from __future__ import annotations

from iodock.simulation.counters import SECOND_NS, Tallies, Tally
from iodock.simulation.scenarios import DOWN, HEALTHY, Condition
from iodock.simulation.target import Target

CORES = 16
SERVICE_TIMEOUT_S = 15


class Server:
    """A server with its counters. Counters of services and of the machine grow with the requests of its
    targets, under the server's condition at that time; all restart at a boot."""

    def __init__(self, name: str, targets: list[Target], now_ns: int) -> None:
        self.name = name
        self.home = tuple(targets)
        """Targets that the server has in normal operation."""
        self.targets = list(targets)
        self.condition = HEALTHY
        self.booted_ns = now_ns
        self.service: Tallies = {}
        """Counters of `mds.MDS.mdt.stats`, up to the last `update`."""
        self.busy_ns = 0
        """Times of one core, which represents all cores."""
        self.io_pressure_ns = 0
        self._updated_ns = now_ns
        self._seen: dict[str, int] = {}

    @property
    def is_up(self) -> bool:
        return self.condition is not DOWN

    @property
    def is_metadata_server(self) -> bool:
        return any(target.kind == "mdt" for target in self.home)

    def enter(self, condition: Condition, now_ns: int) -> None:
        self.update(now_ns)
        self.condition = condition
        for target in self.targets:
            target.set_speed(condition.speed, now_ns)

    def boot(self, now_ns: int) -> None:
        """Boots the server: all counters become zero."""
        self.booted_ns = self._updated_ns = now_ns
        self.service, self._seen = {}, {}
        self.busy_ns = self.io_pressure_ns = 0
        for target in self.targets:
            target.remount(now_ns)

    def give(self, targets: list[Target], to: Server, now_ns: int) -> None:
        """Moves targets to another server and mounts them there."""
        self.update(now_ns)
        to.update(now_ns)
        for target in targets:
            self.targets.remove(target)
            self._seen.pop(target.name, None)
            target.remount(now_ns)
            to.targets.append(target)
            target.set_speed(to.condition.speed, now_ns)

    def update(self, now_ns: int) -> None:
        """Adds the operations since the last call."""
        elapsed_ns, self._updated_ns = now_ns - self._updated_ns, now_ns
        self.busy_ns += int(elapsed_ns * self.condition.cpu_share)
        self.io_pressure_ns += int(elapsed_ns * self.condition.io_pressure)
        for target in self.targets:
            if target.kind == "mdt":
                self._count_requests(target, now_ns)

    def _count_requests(self, target: Target, now_ns: int) -> None:
        handled = target.totals(now_ns)
        opens = handled["open"].samples if "open" in handled else 0
        self._grow(f"{target.name} opens", opens, {"ldlm_ibits_enqueue": 1})
        condition = self.condition
        amounts = {
            "req_waittime": condition.wait_us,
            "req_qdepth": condition.queue_depth,
            "req_active": condition.active_threads,
            "req_timeout": SERVICE_TIMEOUT_S,
            "reqbuf_avail": 64,
        }
        self._grow(target.name, sum(tally.samples for tally in handled.values()), amounts)

    def _grow(self, what: str, total: int, amounts: dict[str, int]) -> None:
        grown = total - self._seen.get(what, 0)
        self._seen[what] = total
        for name, amount in amounts.items():
            self.service.setdefault(name, Tally()).add(grown, amount)

    def uptime_s(self, now_ns: int) -> float:
        return (now_ns - self.booted_ns) / SECOND_NS
