"""Provides the data of a monitor store about the time of one run. It implements the interface
`shared.meanwhile.Servers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from iodock.centre.alongside import arrays
from iodock.centre.alongside.clocks import AGENT_METRICS, Key, Row, compared, key_of
from iodock.centre.alongside.replay import Judged, Replay, replayed, unwell
from iodock.centre.alongside.systems import system_of
from iodock.centre.monitor.questions import node
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import SECOND, Span, span
from iodock.centre.store import MonitorTables
from iodock.centre.watch.observation import Observation
from iodock.centre.watch.verdict import UNWELL
from iodock.shared.meanwhile import (
    TROUBLE,
    ClockOffset,
    Meanwhile,
    NotJoined,
    OtherUser,
    RunTime,
    ServerCurve,
    ServerMoment,
    ServerState,
    ServerStretch,
)
from iodock.shared.settings import ServerStates

_FINE_AGAIN = 12
"""Samples around a call that are judged again if coarser samples were used for the whole run."""
_COUNTERS_MARGIN = 660 * SECOND
_TELLS_WITHIN = 3600 * SECOND
MOST_OTHERS = 5
_MOST_COMMANDS = 3
_CURVES: Mapping[str, Callable[[Observation], float | None]] = {
    "handled_per_s": lambda one: None if one.handled is None else one.handled / one.seconds,
    "waiting": lambda one: one.waiting,
    "wait_s": lambda one: one.wait_s,
    "cpu_share": lambda one: one.cpu,
    "moved_bytes_per_s": lambda one: None if one.moved_bytes is None else one.moved_bytes / one.seconds,
    "load": lambda one: one.load,
}


@dataclass
class Alongside:
    """Queries one store about one run. All times in arguments and results are those of the recording."""

    tables: MonitorTables
    run: RunTime
    limits: ServerStates
    store: str
    clocks_agree_s: float | None = None
    """Largest difference of the clocks that the site guarantees, used if they can't be compared."""
    ids: JobIds = field(default_factory=JobIds)

    @property
    def why_not(self) -> NotJoined | None:
        """See `Servers`."""
        return None if isinstance(self._clock, ClockOffset) else self._clock

    def meanwhile(self) -> Meanwhile | None:
        """See `Servers`. Raises StoreError, QueryError."""
        return self._meanwhile

    @cached_property
    def _meanwhile(self) -> Meanwhile | None:
        clock = self._clock
        if not isinstance(clock, ClockOffset):
            return None
        found, systems = self._whole, self._systems
        mine = [one for one in found.file_systems if found.file_systems[one] in systems]
        stretches = [self._back(one) for server in mine for one in self._of_run(found, server)]
        curves = [curve for server in mine for curve in self._curves(found, server)]
        begin, end = self._there(self.run.begin_ns), self._there(self.run.end_ns)
        curves += arrays.curves(self.tables, systems, begin, end, self._resolution, self._offset)
        briefly = tuple(server for server in mine if self._is_brief(found, server))
        return Meanwhile(
            clock, systems, bool(self.run.mounts), tuple(stretches), tuple(curves), self._by_mount,
            found.step / SECOND, None if found.kept is None else found.kept / SECOND,
            found.step > int(self.limits.sample_s * SECOND), briefly, self.run.job is not None,
        )  # fmt: skip

    def at(self, begin_ns: int, end_ns: int) -> Sequence[ServerMoment]:
        """See `Servers`. Raises StoreError, QueryError."""
        if not isinstance(self._clock, ClockOffset):
            return ()
        begin, end = self._there(begin_ns), self._there(end_ns)
        found = self._around(begin, end)
        systems = self._systems
        return [
            self._moment(found, server, begin, end)
            for server, name in sorted(found.file_systems.items())
            if name in systems
        ]

    def others(self, begin_ns: int, end_ns: int) -> Sequence[OtherUser] | None:
        """See `Servers`. Raises StoreError, QueryError."""
        host = self._host
        if host is None or not isinstance(self._clock, ClockOffset):
            return None
        begin, end = self._there(begin_ns), self._there(end_ns)
        # The period is extended to whole steps. A reading covers the whole interval before it, and a sum of
        # ten minutes does not say when in the interval the bytes were moved.
        step = max(int(self.limits.sample_s * SECOND), self._whole.kept or 0)
        first, last = begin // step * step, -(-end // step) * step
        within = Span(first, last, last - first, span(first, last, self.tables.catalogue).resolution, "fine")
        rows = node.users(self.tables, host, self.ids, within).to_pylist()
        if not rows and not self._tells_users(host, within):
            return None
        told = (first - self._offset, last - self._offset)
        found = [
            OtherUser(
                str(row["name"]),
                row["user"],
                int(row["read_bytes"]),
                int(row["written_bytes"]),
                *told,
                tuple(dict.fromkeys(row["commands"] or ()))[:_MOST_COMMANDS],
            )
            for row in rows
            if row["name"] != self.run.job and row["read_bytes"] + row["written_bytes"] > 0
        ]
        return found[:MOST_OTHERS]

    def _tells_users(self, host: str, within: Span) -> bool:
        """Returns whether the machine's agent was running at that time and reports the owners of moved bytes.
        Owners who moved nothing have no row, so a row up to an hour before or after the period is enough."""
        table = node.hosts(self.tables, within.begin, within.end, within.resolution)
        wide = replace(within, begin=within.begin - _TELLS_WITHIN, end=within.end + _TELLS_WITHIN)
        told = node.users(self.tables, host, self.ids, wide)
        return host in table.column("host").to_pylist() and told.num_rows > 0

    @cached_property
    def _clock(self) -> ClockOffset | NotJoined:
        """Returns the offset between the recording's clock and the store's clock, or the reason why it is
        unknown. A measured offset takes precedence over the agreement of clocks that the site guarantees."""
        if not self.run.hosts:
            found: ClockOffset | NotJoined = "no-host"
        elif self._host is None:
            found = "no-agent"
        else:
            found = compared(self.run.counters, self._rows(self._host), self._host)
        if not isinstance(found, ClockOffset) and found != "no-match" and self.clocks_agree_s is not None:
            return ClockOffset(0, int(self.clocks_agree_s * SECOND), False)
        if found in ("too-few", "too-vague") and self._resolution != "fine":
            return "too-coarse"
        return found

    @cached_property
    def _host(self) -> str | None:
        """Returns the name of the recording's machine that its agent uses, which may differ by the domain.
        Returns None if the store has no data of the machine."""
        run = self.run
        if not run.hosts:
            return None
        begin, end = run.begin_ns - _COUNTERS_MARGIN, run.end_ns + _COUNTERS_MARGIN
        table = node.hosts(self.tables, begin, end, self._resolution)
        known = [str(name) for name in table.column("host").to_pylist()]
        if run.hosts[0] in known:
            return run.hosts[0]
        short = run.hosts[0].partition(".")[0]
        alike = [name for name in known if name.partition(".")[0] == short]
        return alike[0] if len(alike) == 1 else None

    @cached_property
    def _resolution(self) -> str:
        return span(self.run.begin_ns, self.run.end_ns, self.tables.catalogue).resolution

    def _rows(self, host: str) -> Mapping[Key, Sequence[Row]]:
        wanted = {key for one in self.run.counters if (key := key_of(one))}
        begin, end = self.run.begin_ns - _COUNTERS_MARGIN, self.run.end_ns + _COUNTERS_MARGIN
        sources = sorted({source for source, _ in AGENT_METRICS})
        metrics = sorted(set(AGENT_METRICS.values()))
        table = node.grown(self.tables, host, sources, metrics, (begin, end, self._resolution))
        found: dict[Key, list[Row]] = {}
        for row in table.to_pylist():
            key = (str(row["source"]), str(row["target"]), str(row["metric"]))
            if key in wanted:
                found.setdefault(key, []).append((row["begin_ts"], row["end_ts"], row["value"]))
        return found

    @property
    def _offset(self) -> int:
        return self._clock.offset_ns if isinstance(self._clock, ClockOffset) else 0

    def _there(self, moment: int) -> int:
        """Converts a time of the recording to the store's time."""
        return moment + self._offset

    @cached_property
    def _whole(self) -> Replay:
        begin, end = self._there(self.run.begin_ns), self._there(self.run.end_ns)
        return replayed(self.tables, self.limits, begin, max(end, begin + 1))

    def _around(self, begin: int, end: int) -> Replay:
        """Returns the replay of the whole run if it uses single samples. Otherwise returns a new replay of
        the time around BEGIN to END, whose samples are finer."""
        sample = int(self.limits.sample_s * SECOND)
        if self._whole.step <= sample:
            return self._whole
        margin = _FINE_AGAIN * sample
        return replayed(self.tables, self.limits, begin - margin, end + margin, self._whole.usual)

    @cached_property
    def _known_systems(self) -> set[str]:
        begin, end = self._there(self.run.begin_ns), self._there(self.run.end_ns)
        told = arrays.systems(self.tables, begin, max(end, begin + 1), self._resolution)
        return {*self._whole.file_systems.values(), *told}

    @cached_property
    def _systems(self) -> tuple[str, ...]:
        known = self._known_systems
        return tuple(sorted(set(self._by_mount.values()) if self.run.mounts else known))

    @cached_property
    def _by_mount(self) -> Mapping[str, str]:
        known = self._known_systems
        found = {one.mount_point: system_of(one, known) for one in self.run.mounts}
        return {mount: name for mount, name in found.items() if name is not None}

    def _moment(self, found: Replay, server: str, begin: int, end: int) -> ServerMoment:
        near = found.near(server, begin, end)
        state: ServerState = found.state(server, begin, end)
        worst = max(unwell(near), key=_rank(begin, end), default=None)
        is_brief = worst is not None and state not in UNWELL
        told = worst or (max(near, key=_overlap(begin, end)) if near else None)
        kind = near[0].observation.kind if near else "object"
        moment = ServerMoment(found.file_systems[server], server, kind, state)
        if told is None:
            return moment
        one = told.observation
        return replace(
            moment, state=told.sign.state if is_brief else state, is_brief=is_brief, kind=one.kind,
            begin_ns=one.begin_ns - self._offset, end_ns=one.end_ns - self._offset,
            handled_per_s=_CURVES["handled_per_s"](one), usual_handled_per_s=told.usual_handled,
            waiting=one.waiting, wait_s=one.wait_s, cpu_share=one.cpu,
        )  # fmt: skip

    def _is_brief(self, found: Replay, server: str) -> bool:
        begin, end = self._there(self.run.begin_ns), self._there(self.run.end_ns)
        return any(
            found.state(server, one.observation.begin_ns, one.observation.end_ns) not in UNWELL
            for one in unwell(found.near(server, begin, end))
        )

    def _of_run(self, found: Replay, server: str) -> Iterator[ServerStretch]:
        """Yields the periods of a server within the run. If it has no samples after the run's begin, only
        failovers are kept. If nothing is left, one period with the state `no-samples` covers the run."""
        begin, end = self._there(self.run.begin_ns), self._there(self.run.end_ns)
        told = found.stretches.get(server, [])
        if not any(one.observation.end_ns > begin for one in found.samples.get(server, ())):
            told = [one for one in told if one.state == "failover"]
        if not told:
            yield ServerStretch(found.file_systems[server], server, "no-samples", begin, end)
        for one in told:
            if one.begin_ns < end and one.end_ns > begin:
                yield replace(one, begin_ns=max(one.begin_ns, begin), end_ns=min(one.end_ns, end))

    def _back(self, one: ServerStretch) -> ServerStretch:
        return replace(one, begin_ns=one.begin_ns - self._offset, end_ns=one.end_ns - self._offset)

    def _curves(self, found: Replay, server: str) -> Iterator[ServerCurve]:
        begin, end = self._there(self.run.begin_ns), self._there(self.run.end_ns)
        samples = found.near(server, begin, end)
        for metric, value in _CURVES.items():
            points = tuple(
                (one.observation.end_ns - self._offset, told)
                for one in samples
                if (told := value(one.observation)) is not None
            )
            if points:
                yield ServerCurve(found.file_systems[server], server, metric, points)


def _rank(begin: int, end: int) -> Callable[[Judged], tuple[int, int]]:
    """Returns a key for `max` that prefers the sample with the worse state, and among equal states the one
    that covers more of the period."""
    lies = _overlap(begin, end)
    return lambda one: (-TROUBLE.index(one.sign.state), lies(one))


def _overlap(begin: int, end: int) -> Callable[[Judged], int]:
    """Returns a key for `max` that prefers the sample that covers most of the period from BEGIN to END."""
    return lambda one: min(one.observation.end_ns, end) - max(one.observation.begin_ns, begin)
