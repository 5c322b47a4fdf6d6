"""Determines the states of servers in a past period. It passes the stored rounds to the classifier of `watch`
in the order of time, so a state does not depend on later rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import HOUR, SECOND, span
from iodock.centre.store import MonitorTables
from iodock.centre.watch.observation import Observation, Round
from iodock.centre.watch.observing import Observer
from iodock.centre.watch.signs import Sign
from iodock.centre.watch.states import States
from iodock.centre.watch.verdict import Verdict
from iodock.shared.meanwhile import TROUBLE, ServerState, ServerStretch
from iodock.shared.settings import ServerStates

_LEADS = (30, 4)
"""Number of samples judged before the requested period. They show which servers are silent; the larger number
also shows what is usual for clients."""
_MOST_JUDGED = 30_000
"""Largest number of samples of servers. Each takes 0.2 ms, so coarser samples are used if there are more."""
_WELL: tuple[ServerState, ...] = ("healthy", "busy", "no-usual")
_STEPS = {"fine": 0, "minute": 60 * SECOND, "ten_minutes": 600 * SECOND}
_LEVELS = tuple(_STEPS)


@dataclass(frozen=True)
class Judged:
    """One sample of one server with the classifier's judgement."""

    observation: Observation
    sign: Sign
    """The sign that follows from this sample alone."""
    usual_handled: float | None
    """Requests per second."""


@dataclass
class Replay:
    """The states of all servers in one period. Times are those of the store, in ns since the epoch."""

    step: int
    kept: int | None
    """The store keeps sums of this length for that time, ns; None: it keeps the readings themselves."""
    file_systems: Mapping[str, str]
    """File system of every known server."""
    stretches: dict[str, list[ServerStretch]] = field(default_factory=dict)
    samples: dict[str, list[Judged]] = field(default_factory=dict)
    """Samples of each server, in the order of time."""
    usual: dict[str, Set[str]] = field(default_factory=dict)
    """For each server, the quantities whose usual value was known at the start of the period."""
    unsure: set[str] = field(default_factory=set)
    """Servers whose last sample can't be called healthy because the usual values are not known."""

    def state(self, server: str, begin: int, end: int) -> ServerState:
        """Returns the worst state of a server from BEGIN to END. It is `no-samples` if samples do not cover
        the whole time, and `no-usual` if the usual values that are needed to call the server healthy are not
        known."""
        met = [
            one.state for one in self.stretches.get(server, ()) if one.begin_ns < end and one.end_ns > begin
        ]
        for state in (*TROUBLE, "no-samples"):
            if state in met:
                return state
        if not met or not self._covers(server, begin, end):
            return "no-samples"
        return next(state for state in reversed(_WELL) if state in met)

    def _covers(self, server: str, begin: int, end: int) -> bool:
        """Returns whether samples cover the time from BEGIN to END, except for at most a quarter of a step.
        Agents are some ms late, so the samples may not meet exactly."""
        covered = sum(
            min(one.observation.end_ns, end) - max(one.observation.begin_ns, begin)
            for one in self.near(server, begin, end)
        )
        return covered > 0 and end - begin - covered <= self.step // 4

    def near(self, server: str, begin: int, end: int) -> list[Judged]:
        """Returns the samples of a server that overlap the time from BEGIN to END."""
        return [
            one
            for one in self.samples.get(server, ())
            if one.observation.begin_ns < end and one.observation.end_ns > begin
        ]


def replayed(
    store: MonitorTables,
    limits: ServerStates,
    begin: int,
    end: int,
    usual: dict[str, Set[str]] | None = None,
) -> Replay:
    """Determines the states from BEGIN to END, in ns since the epoch by the servers' clocks. USUAL has, for
    each server, the quantities whose usual value is known, from an earlier `Replay`; without it, they are
    determined at BEGIN. Raises StoreError, QueryError."""
    kept, resolution, step, samples = _pace(store, limits, begin, end)
    observer, states = Observer(store, JobIds(), step), States(replace(limits, sample_s=step / SECOND))
    observer.prepare(end)
    lead = begin - samples * step
    coarse = "minute" if resolution == "fine" else resolution
    for round_ in observer.past(lead + 4 * step, limits.usual_hours, max(60.0, step / SECOND), coarse):
        states.take(round_)
    states.wake(lead)
    found = Replay(step, _STEPS[kept] or None, {}, usual=usual or {})
    for round_ in observer.stretch(lead, end + step, resolution, begin - step):
        if round_.now_ns <= begin:
            states.take(round_)
            if usual is None:
                found.usual = {host: states.known(host) for host in states.hosts}
            continue
        verdicts = states.take(round_)
        _take(found, verdicts, round_, states, max(begin, round_.now_ns - step))
    found.file_systems = observer.file_systems
    # If an agent reads less often than the settings say, the step of the result is the length of its samples.
    slowest = max((states.clock(host)[0] for host in found.stretches), default=0.0)
    found.step = max(step, int(slowest * SECOND))
    return found


def _pace(store: MonitorTables, limits: ServerStates, begin: int, end: int) -> tuple[str, str, int, int]:
    """Returns the finest resolution that the store keeps for the period, the finest one that can be judged
    with at most _MOST_JUDGED samples, the length of a sample in ns, and the number of samples to judge before
    the period."""
    sample = int(limits.sample_s * SECOND)
    kept = span(begin, min(end, begin + HOUR), store.catalogue).resolution
    observer = Observer(store, JobIds(), sample)
    observer.prepare(end)
    servers = max(1, observer.servers)
    for level in _LEVELS[_LEVELS.index(kept) :]:
        step = max(sample, _STEPS[level])
        for lead in _LEADS:
            if servers * ((end - begin) // step + lead) <= _MOST_JUDGED:
                return kept, level, step, lead
    coarsest = max(sample, _STEPS[_LEVELS[-1]])
    return kept, _LEVELS[-1], max(coarsest, servers * (end - begin) // _MOST_JUDGED), _LEADS[-1]


def _take(found: Replay, verdicts: list[Verdict], round_: Round, states: States, begin: int) -> None:
    for observation in round_.observations:
        known = found.usual.get(observation.host, frozenset())
        (found.unsure.discard if needed(observation) <= known else found.unsure.add)(observation.host)
        sign = states.sample(observation.host)
        if sign is not None:
            usual = states.usual(observation.host, "handled") if "handled" in known else None
            found.samples.setdefault(observation.host, []).append(Judged(observation, sign, usual))
    for one in verdicts:
        state: ServerState = one.state
        if one.server in found.unsure and state in _WELL:
            state = "no-usual"
        _extend(found.stretches.setdefault(one.server, []), one, state, begin, round_.now_ns)


def needed(one: Observation) -> Set[str]:
    """Returns the quantities whose usual value must be known to judge a sample. If one is unknown, a server
    with problems would appear healthy."""
    found = {"handled"}
    if one.wait_s is not None:
        # Waiting times that the server itself reports are compared with a fixed limit, and those of clients
        # with their usual value.
        return found | {"wait"} if one.kind == "client" else found
    return found | {"operation"} if one.operation_s is not None else found


def _extend(
    stretches: list[ServerStretch], verdict: Verdict, state: ServerState, begin: int, end: int
) -> None:
    """Appends a verdict to the periods of a server. The classifier recognizes a state only one or two samples
    after its beginning, so the new state replaces earlier ones from its beginning on."""
    last = stretches[-1] if stretches else None
    if last is not None and last.state == state:
        stretches[-1] = replace(last, end_ns=end)
        return
    since = max(min(verdict.since_ns, begin), stretches[0].begin_ns if stretches else begin)
    if last is not None and last.state in _WELL and state in _WELL and "no-usual" in (last.state, state):
        since = begin
    kept = [one for one in stretches if one.begin_ns < since]
    if kept:
        kept[-1] = replace(kept[-1], end_ns=since)
    stretches[:] = [
        *kept, ServerStretch(verdict.file_system, verdict.server, state, since, end),
    ]  # fmt: skip


def unwell(samples: list[Judged]) -> Iterator[Judged]:
    """Yields the samples that by themselves show a state of trouble, regardless of the samples before and
    after them."""
    yield from (one for one in samples if one.sign.state in TROUBLE)
