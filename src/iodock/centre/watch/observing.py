"""Makes observations of servers from a monitor store. An observer reads the data that arrived since the
previous round, and at the start the data of the last hours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from iodock.centre.monitor.questions import servers
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import DAY, HOUR, SECOND
from iodock.centre.store import MonitorTables
from iodock.centre.watch.clients import by_clients, number, of_targets
from iodock.centre.watch.given import Given
from iodock.centre.watch.hearsay import Homes, homes, news, place_targets
from iodock.centre.watch.observation import NOTHING, Asked, News, Observation, Round

Row = Mapping[str, object]
IsWanted = Callable[[str, int], bool]
"""Whether a round of a host is needed."""
_AHEAD = HOUR
"""Largest error of agents' clocks, ns: the collector refuses data with a larger one."""
_CLOCKS_EVERY = 300 * SECOND
_MOUNTS_EVERY = 10 * SECOND
_HOMES_EVERY = HOUR
_NEWS_EVERY = 60 * SECOND
"""In periods of the past, reports from other machines are read at this interval, ns."""
_STEPS_BACK = 4
"""Data that is late by up to this number of steps is used."""
_ON_ITS_WAY = 3 * SECOND
"""Longest time until a reading is sent, stored and written, ns. It may exceed a short sample."""


@dataclass
class Observer:
    """Makes the observations of the servers in one store."""

    store: MonitorTables
    ids: JobIds
    step: int = 10 * SECOND
    """Length of a sample, ns."""
    _given: Given = field(default_factory=Given)
    _late: dict[str, int] = field(default_factory=dict)
    """For each host whose clock is behind, the difference in ns."""
    _reads: dict[str, set[str]] = field(default_factory=dict)
    """For each host, all counters that its agent ever reported. This is needed because a counter that did not
    grow has no row."""
    _homes: Homes = field(default_factory=Homes)
    _newest: dict[str, int] = field(default_factory=dict)
    """For hosts whose newest rows are old, the step of these rows at the last check."""
    _mounts: dict[tuple[str, str], str] = field(default_factory=dict)
    """Maps a client and its name for the server to the mounted file system."""
    _asked_mounts: int = 0
    _asked_homes: int = 0
    _asked_round: int = 0
    _asked_clocks: int = 0

    @property
    def servers(self) -> int:
        """Returns the number of known servers."""
        return len(self._homes.file_system)

    @property
    def file_systems(self) -> Mapping[str, str]:
        """Returns the file system of each server by its host. This includes servers without an agent that are
        known only from their clients."""
        mounted = sorted(self._mounts.items(), reverse=True)
        seen = {server: name for (_, server), name in mounted if self._server_called(server) is None}
        return {**seen, **self._homes.file_system}

    def prepare(self, now: int) -> None:
        """Reads from the store which servers exist and which file systems they serve. Raises StoreError."""
        self._know_homes(now)

    def past(self, now: int, hours: float, step_s: float, resolution: str = "minute") -> Iterator[Round]:
        """Yields rounds of the last hours up to NOW in steps of STEP_S. Usual values are learnt from them.
        Reports from other machines are left out. Raises StoreError."""
        self._know_homes(now)
        end, step = now - _STEPS_BACK * self.step, max(int(step_s * SECOND), self.step)
        found = self._observations(end - int(hours * HOUR), end, step, resolution)
        for at, observations in sorted(_rounds(found).items()):
            yield Round(at * step, tuple(observations))

    def stretch(self, begin: int, end: int, resolution: str, news_from: int) -> Iterator[Round]:
        """Yields every round that ended from BEGIN to END, which are in the past, including rounds without
        readings. From NEWS_FROM on, reports from other machines are read once a minute. They are not read
        before, because reading them takes longer than all other queries. Raises StoreError, QueryError."""
        found = self._observations(begin, end + self.step, self.step, resolution)
        by_clients = self._by_clients(end, begin, end + self.step, resolution)
        by_round = _rounds(found + self._without_agent(by_clients))
        seen = _rounds(by_clients)
        said: Mapping[str, News] = {}
        said_until = news_from
        for at in range(-(-begin // self.step), -(-end // self.step) + 1):
            now = at * self.step
            if now >= said_until:
                place_targets(self.store, now, self.step, self._homes, self.step, resolution)
                said = news(self.store, now, self._homes, self.step)
                said_until = now + max(self.step, _NEWS_EVERY)
            observations = by_round.get(at, [])
            yield Round(now, tuple(observations), self._told(said, observations, seen.get(at, [])))

    def round(self, now: int) -> Round:
        """Returns the data that arrived since the last call. NOW: ns since the epoch, by the collector's
        clock. Raises StoreError."""
        self._know_homes(now)
        self._know_clocks(now)
        if self._may_have_moved():
            place_targets(self.store, now, self.step, self._homes)
        # The query includes data that is one step late. After a pause between two calls it includes data of
        # up to _STEPS_BACK steps.
        back = min(max(now - self._asked_round, self.step), _STEPS_BACK * self.step)
        late = max(self.step // 2, _ON_ITS_WAY)
        begin, is_set_back = self._begin_of_round(now - back - late), now < self._asked_round
        self._asked_round = now
        wanted = (lambda host, at: True) if is_set_back else self._given.may_be_new
        found = self._observations(begin, now + _AHEAD, self.step, "fine", is_wanted=wanted)
        for host, behind in self._late.items():
            first = begin - behind - self.step
            found += self._observations(first, first + 4 * (now - begin), self.step, "fine", [host], wanted)
        by_clients = self._by_clients(now, begin, now + _AHEAD)
        found += self._without_agent(by_clients)
        fresh = self._given.fresh(found, now, self.step, is_set_back)
        seen = [one for _, one in sorted(by_clients, key=lambda pair: pair[0])]
        told = self._told(news(self.store, now, self._homes), fresh, seen)
        return Round(now, tuple(fresh), told)

    def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
        """Returns the requests of jobs as `Jobs` says. If WITH_OBJECTS is true and HOST is a metadata server,
        the objects that the object servers of its file system created for each job are included. Raises
        StoreError."""
        found = self._asked_of_servers(host, begin_ns, end_ns, with_objects)
        return found or self._asked_of_nodes(host, begin_ns, end_ns)

    def _asked_of_nodes(self, host: str, begin_ns: int, end_ns: int) -> list[Asked]:
        """Returns the bytes that processes of jobs read and wrote on the nodes that are known to have mounted
        the server. If no such node is known, all machines are included."""
        mounted = sorted({node for node, server in self._mounts if self._is_called(server, host)})
        rows = servers.asked_of_nodes(self.store, mounted or None, self.ids, begin_ns, end_ns).to_pylist()
        return [Asked(str(row["job"]), node_bytes=number(row, "node_bytes") or 0.0) for row in rows]

    def _is_called(self, address: str, host: str) -> bool:
        return address == host or self._server_called(address) == host

    def _asked_of_servers(self, host: str, begin_ns: int, end_ns: int, with_objects: bool) -> list[Asked]:
        if host not in self._homes.file_system:
            return _asked(servers.asked_by_mounts(self.store, host, begin_ns, end_ns).to_pylist())
        system = self._homes.file_system.get(host)
        beside = [other for other, name in self._homes.file_system.items() if name == system]
        hosts = beside if with_objects and host in self._homes.metadata and system else [host]
        return _asked(servers.asked(self.store, hosts, self.ids, begin_ns, end_ns).to_pylist())

    def _server_called(self, address: str) -> str | None:
        """Returns the host of a server that clients know under an address or the name of a target, or None if
        the host has no agent."""
        known = self._homes.file_system
        if address in self._homes.of_target:
            return self._homes.of_target[address]
        return next((host for host in sorted(self._homes.metadata) if known.get(host) == address), None)

    def _without_agent(self, by_clients: list[tuple[int, Observation]]) -> list[tuple[int, Observation]]:
        """Returns the observations of servers that have no agent and are known only from clients."""
        return [pair for pair in by_clients if self._server_called(pair[1].host) is None]

    def _told(
        self, said: Mapping[str, News], observations: list[Observation], by_clients: list[Observation]
    ) -> dict[str, News]:
        """Returns SAID with two additions: for servers with an agent, the waiting times that their clients
        observe, and the time in which a service answered the agent on its machine."""
        told = dict(said)
        seen: dict[str, dict[str, Observation]] = {}
        for one in by_clients:
            host = self._server_called(one.host)
            if host is not None:
                seen.setdefault(host, {})[one.host] = one
        for host, targets in seen.items():
            wait_s, backlog = of_targets(list(targets.values()))
            told[host] = replace(told.get(host, NOTHING), client_wait_s=wait_s, backlog=backlog)
        _add_answers(told, observations)
        return told

    def _begin_of_round(self, moment: int) -> int:
        """Returns the begin of the round that contains this time."""
        return moment // self.step * self.step + self.step // servers.LATE

    def _may_have_moved(self) -> bool:
        """Returns whether a target may have moved to another server. This may be so if a server with targets
        was silent in the last round, has lost its targets, or serves targets of another server."""
        seen = self._given.seen
        last = max(seen.values(), default=0)
        is_silent = any(seen.get(host, 0) < last for host in self._homes.of_target.values())
        return is_silent or not seen or bool(self._homes.away or self._homes.guests)

    def _know_homes(self, now: int) -> None:
        if not self._homes.file_system or now - self._asked_homes > _HOMES_EVERY:
            self._asked_homes = now
            self._homes = homes(self.store, now - 7 * DAY, now + _AHEAD)

    def _know_clocks(self, now: int) -> None:
        """Finds servers whose clock is behind. Their newest rows appear old, but new rows still arrive."""
        if now - self._asked_clocks < _CLOCKS_EVERY:
            return
        self._asked_clocks = now
        rows = servers.newest(
            self.store, now - _AHEAD, now + _AHEAD, list(self._homes.file_system)
        ).to_pylist()
        behind = {str(row["host"]): now - int(row["end_ts"]) for row in rows}
        self._late = {
            host: late
            for host, late in behind.items()
            if late > _STEPS_BACK * self.step and self._goes_on(host, now - late)
        }

    def _goes_on(self, host: str, newest: int) -> bool:
        """Returns whether the host's newest row is later than at the last check. Then the host is not silent,
        and old rows mean that its clock is behind."""
        at = newest // self.step
        before, self._newest[host] = self._newest.get(host, at), at
        return at > before

    def _observations(
        self,
        begin: int,
        end: int,
        step: int,
        resolution: str,
        hosts: Sequence[str] | None = None,
        is_wanted: IsWanted = lambda host, at: True,
    ) -> list[tuple[int, Observation]]:
        """Returns the observations of file servers from BEGIN to END, each with the number of its round."""
        asked = (self.store, begin, end, step, resolution, hosts)
        machines = self._by_round(servers.machines(*asked), is_wanted)
        served = self._by_round(servers.served(*asked), is_wanted)
        nothing: Row = {}
        found = [
            (key[1], self._observation(key[0], machines.get(key, nothing), served.get(key, nothing), step))
            for key in sorted(machines.keys() | served.keys())
        ]
        return _with_creates(found)

    def _by_round(self, table: pa.Table, is_wanted: IsWanted) -> dict[tuple[str, int], Row]:
        """Returns rows by host and round. Rows of other hosts and of rounds that are not needed are dropped
        early, because a table may have many rows."""
        names = table.column_names
        columns = [column.to_pylist() for column in table.columns]
        hosts, rounds = columns[names.index("host")], columns[names.index("round")]
        known = self._homes.file_system
        return {
            (host, at): dict(zip(names, values, strict=True))
            for host, at, *values in zip(hosts, rounds, *columns, strict=True)
            if host in known and is_wanted(host, at)
        }

    def _by_clients(
        self, now: int, begin: int, end: int, resolution: str = "fine"
    ) -> list[tuple[int, Observation]]:
        """Returns observations of the servers that clients have mounted, each with the number of its round.
        They combine the values of all clients of a server."""
        # While no mount is known, the store is queried for mounts more often, because the first clients may
        # just have begun to send data.
        if now - self._asked_mounts > (_CLOCKS_EVERY if self._mounts else _MOUNTS_EVERY):
            self._asked_mounts = now
            # Rows of minutes are enough to find mounts, and fewer than fine rows. A coarser resolution is
            # used only if the caller requests it because minutes are no longer kept.
            kept = "minute" if resolution == "fine" else resolution
            rows = servers.mounts(self.store, now - HOUR, now + _AHEAD, kept).to_pylist()
            self._mounts = {
                (str(row["host"]), str(row["server"])): str(row["file_system"])
                for row in rows
                if str(row["server"]) not in self._homes.file_system
            }
        if not self._mounts:
            return []
        hosts = sorted({host for host, _ in self._mounts})
        found = servers.clients(self.store, begin, end, self.step, hosts, resolution).to_pylist()
        return by_clients(found, self._mounts, self.step)

    def _observation(self, host: str, machine: Row, served: Row, step: int) -> Observation:
        is_metadata = host in self._homes.metadata
        end = int(number(machine, "end_ts") or number(served, "end_ts") or 0)
        reads = self._reads.setdefault(host, set())
        reads |= {name for name in ("handled", "pressure_us") if machine.get(name) is not None}
        reads |= {name for name in ("metadata", "requests", "object_creates") if served.get(name) is not None}
        reads |= {name for name in ("service_us", "service_uptime_s") if machine.get(name) is not None}
        requests = _counted(served, "metadata" if is_metadata else "requests", reads)
        handled = _counted(machine, "handled", reads) if is_metadata and "handled" in reads else requests
        pressure_us = _counted(machine, "pressure_us", reads)
        return Observation(
            host, self._homes.file_system[host], "metadata" if is_metadata else "object", end - step, end,
            handled=handled, opens=number(served, "opens"), closes=number(served, "closes"),
            creates=number(served, "creates"),
            object_creates=None if is_metadata else _counted(served, "object_creates", reads),
            moved_bytes=None if is_metadata else (number(served, "moved_bytes") if requests else requests),
            waiting=_ratio(machine, "queued", "queue_samples"),
            wait_s=_ratio(machine, "waited_us", "handled", 1e-6),
            operation_s=_ratio(served, "time_us", "metadata" if is_metadata else "requests", 1e-6),
            threads=_ratio(machine, "active", "active_samples"),
            cpu=_share(machine, _counted(machine, "service_us", reads), step),
            pressure=None if pressure_us is None else min(1.0, pressure_us * 1000 / step),
            load=number(machine, "load"), has_guests=host in self._homes.guests,
            uptime_s=number(machine, "service_uptime_s" if "service_uptime_s" in reads else "uptime_s"),
            answer_s=_seconds(machine, "answer_us"), has_no_answer=bool(machine.get("no_answer")),
        )  # fmt: skip


def _asked(rows: list[Row]) -> list[Asked]:
    return [
        Asked(
            str(row["job"]), number(row, "metadata") or 0.0, number(row, "opens") or 0.0,
            number(row, "creates") or 0.0, number(row, "object_creates"),
            number(row, "moved_bytes") or 0.0, number(row, "requests") or 0.0,
        )
        for row in rows
    ]  # fmt: skip


def _rounds(found: list[tuple[int, Observation]]) -> dict[int, list[Observation]]:
    by_round: dict[int, list[Observation]] = {}
    for at, one in found:
        by_round.setdefault(at, []).append(one)
    return by_round


def _add_answers(told: dict[str, News], fresh: list[Observation]) -> None:
    """Adds the response times of services to their agents to TOLD. They are used like those of a probe."""
    for one in fresh:
        if one.answer_s is not None:
            known = told.get(one.host, NOTHING)
            told[one.host] = replace(known, probe_s=one.answer_s, has_no_answer=one.has_no_answer)


def _with_creates(found: list[tuple[int, Observation]]) -> list[tuple[int, Observation]]:
    """Adds to the observation of each metadata server the number of objects that all object servers of its
    file system created in the same round."""
    made: dict[tuple[int, str], float] = {}
    for at, one in found:
        if one.object_creates is not None:
            key = (at, one.file_system)
            made[key] = made.get(key, 0.0) + one.object_creates
    return [
        (at, replace(one, object_creates=made.get((at, one.file_system))) if one.kind == "metadata" else one)
        for at, one in found
    ]


def _counted(row: Row, name: str, reads: set[str]) -> float | None:
    """Returns a counter of a row. If the counter is missing although the agent reads it, it did not grow, and
    the result is 0."""
    value = number(row, name)
    return 0.0 if value is None and name in reads else value


def _ratio(row: Row, above: str, below: str, factor: float = 1.0) -> float | None:
    """Returns the ratio of two counters, or None if the divisor is 0 or a counter is missing. A time of 0
    counts as missing, because Lustre before 2.13 does not measure the time of operations."""
    sum_, count = number(row, above), number(row, below)
    if sum_ is None or not count or (sum_ == 0 and above == "time_us"):
        return None
    return sum_ * factor / count


def _seconds(row: Row, name: str) -> float | None:
    value = number(row, name)
    return None if value is None else value / 1e6


def _share(row: Row, service_us: float | None, step: int) -> float | None:
    """Returns the use of all processors of a machine as a share from 0 to 1. For a service with one thread,
    returns the use of one processor by this service."""
    if service_us is not None:
        return min(1.0, service_us * 1000 / step)
    busy, idle = number(row, "busy_us"), number(row, "idle_us")
    if busy is None and idle is None:
        return None
    return (busy or 0.0) / max((busy or 0.0) + (idle or 0.0), 1e-9)
