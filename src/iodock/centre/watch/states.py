"""Determines the state of each server after each sample, by the rules in
docs/explanation/server-states.md."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from iodock.centre.watch.observation import NOTHING, SECOND, Kind, News, Observation, Round
from iodock.centre.watch.signs import Sample, Sign, told
from iodock.centre.watch.usual import Usual
from iodock.centre.watch.verdict import UNWELL, Evidence, State, Verdict
from iodock.shared.settings import ServerStates

_FORGOTTEN_S = 86_400.0
"""A server that sent no data for this time is forgotten."""
_SURE_LOST = 2
_GAPS, _ALIKE, _LONGER = 4, 3, 1.25
_EARLY = 0.15
"""The collector may look early by up to this share of a sample."""


@dataclass
class _Server:
    """The state of one server and all that is remembered about it."""

    file_system: str
    kind: Kind
    usual: Usual
    state: State
    since_ns: int
    """Begin of the present state, by the collector's clock, ns."""
    heard_ns: int
    """Time of the last data, by the collector's clock, ns."""
    step_s: float
    """Length of one sample, s."""
    known_ns: int = 0
    """Time of the first data, by the collector's clock, ns."""
    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=_GAPS))
    """Intervals between the last samples, s."""
    missed: int = 0
    """Number of samples that are missing since the last one."""
    is_by_silence: bool = False
    """Whether the server is reported as gone because no data arrives."""
    clock_ns: int = 0
    """Difference by which the server's clock is ahead, ns."""
    uptime_s: float | None = None
    last_waiting: tuple[float, float] | None = None
    """Number of waiting requests, and their waiting time, when a request was last handled."""
    samples: int = 0
    sign: Sign = field(default_factory=lambda: Sign("no-samples", 0.0, ()))
    last: Sign | None = None
    """The sign of the last sample; None: there was no sample in the last round."""
    other: list[tuple[State, int]] = field(default_factory=list)
    """The last samples if they indicate another state than the present one: that state, and when each sample
    began."""

    @property
    def every_s(self) -> float:
        """Returns the interval between the server's samples in s, which is longer than a round of the
        collector if the agent reads less often."""
        least = sorted(self.gaps_s)[:_ALIKE]
        # If the shortest intervals between the last samples are nearly equal, they are the agent's interval.
        # Longer ones contain missing samples.
        is_known = len(least) == _ALIKE and least[-1] <= _LONGER * least[0]
        return max(self.step_s, least[0]) if is_known else self.step_s

    def come_back(self, sign: Sign, begin_ns: int) -> None:
        """Processes the first sample of a server that was reported as gone because it was silent, and that
        has not restarted in between."""
        is_unwell = sign.state in UNWELL
        self.state, self.sign, self.samples = sign.state, sign, 1
        self.since_ns = self.since_ns if is_unwell else begin_ns
        self.other.clear()

    def take(self, sign: Sign, begin_ns: int, limits: ServerStates) -> None:
        """Processes the sign of one more sample, and changes the state if enough samples agree."""
        if sign.state == self.state:
            self.other.clear()
            self.samples += 1
            self.sign = sign
            return
        self.other.append((sign.state, begin_ns))
        alike = [begin for state, begin in self.other if state == sign.state]
        is_sure = sign.state in ("failover", "no-samples") or len(alike) >= limits.samples
        if is_sure or len(self.other) > limits.samples:
            first = begin_ns if sign.state in ("failover", "no-samples") else alike[0]
            # If several samples in sequence show different states of trouble, the period begins with the
            # first of them.
            if sign.state in UNWELL:
                first = min([first, *(begin for state, begin in self.other if state in UNWELL)])
            self.state, self.since_ns, self.samples = sign.state, first, len(alike)
            self.sign = sign
            self.other.clear()


class States:
    """Determines the states of all servers of a store, round by round."""

    def __init__(self, limits: ServerStates | None = None) -> None:
        self.limits = limits or ServerStates()
        self._servers: dict[str, _Server] = {}

    def take(self, round_: Round) -> list[Verdict]:
        """Processes a round and returns the present verdict on every server."""
        heard = set()
        for one in round_.observations:
            heard.add(one.host)
            self._hear(one, round_.news.get(one.host, NOTHING), round_.now_ns)
        for host in [host for host in self._servers if host not in heard]:
            self._miss(host, round_.news.get(host, NOTHING), round_.now_ns)
        return [self._verdict(host, server, round_.now_ns) for host, server in sorted(self._servers.items())]

    def wake(self, now_ns: int) -> None:
        """Prepares for present rounds after past rounds were processed. The silence of a server counts only
        from NOW_NS on, because data between the last past round and NOW_NS was not read."""
        for server in self._servers.values():
            server.heard_ns = max(server.heard_ns, now_ns)
            server.step_s = min(server.step_s, self.limits.sample_s)
            # Past rounds are longer than samples, so the intervals between them do not show the agent's
            # interval.
            server.gaps_s.clear()

    def clock(self, host: str) -> tuple[float, int]:
        """Returns the interval between the samples of a known server in s, and the number of ns by which its
        clock is ahead."""
        server = self._servers[host]
        return server.every_s, server.clock_ns

    def known_since(self, host: str) -> int:
        """Returns the begin of the first sample of a known server, in ns since the epoch by the server's
        clock."""
        server = self._servers[host]
        return server.known_ns + server.clock_ns

    def sample(self, host: str) -> Sign | None:
        """Returns the sign of a server's sample in the last round, or None if there was no sample."""
        server = self._servers.get(host)
        return server.last if server else None

    @property
    def hosts(self) -> list[str]:
        """Returns the hosts of the known servers."""
        return sorted(self._servers)

    def known(self, host: str) -> frozenset[str]:
        """Returns the names of the quantities for which a known server has a usual value."""
        return self._servers[host].usual.known

    def usual(self, host: str, what: str) -> float | None:
        """Returns the usual value of the quantity WHAT for a server, or None if it is not known."""
        server = self._servers.get(host)
        return server.usual.of(what) if server else None

    def _hear(self, one: Observation, news: News, now_ns: int) -> None:
        server = self._servers.get(one.host)
        held = server.state if server else None
        usual = server.usual if server else Usual(self.limits.usual_hours)
        sample = Sample(one, news, usual, held, self.limits)
        sign = sample.sign(_has_restarted(server, one))
        if server is not None and sign.state == "stall" and one.waiting is None and server.last_waiting:
            sign = _with_last(sign, server.last_waiting)
        if server is None:
            begin = now_ns - int(one.seconds * SECOND)
            server = _Server(one.file_system, one.kind, usual, sign.state, begin, now_ns, one.seconds, begin)
            self._servers[one.host] = server
        server.file_system, server.kind, server.last = one.file_system, one.kind, sign
        server.step_s = one.seconds
        if now_ns > server.heard_ns:
            server.gaps_s.append((now_ns - server.heard_ns) / SECOND)
        self._take(server, sign, one, now_ns)
        server.heard_ns, server.missed, server.is_by_silence = now_ns, 0, False
        server.clock_ns = one.end_ns - now_ns
        if one.waiting is not None and one.wait_s is not None:
            server.last_waiting = (one.waiting, one.wait_s)
        server.uptime_s = one.uptime_s if one.uptime_s is not None else server.uptime_s
        if sign.state not in UNWELL and server.state not in UNWELL:
            usual.add(sample.found, one.seconds)

    def _take(self, server: _Server, sign: Sign, one: Observation, now_ns: int) -> None:
        begin_ns = now_ns - int(server.every_s * SECOND)
        has_run_on = None not in (server.uptime_s, one.uptime_s) and not _has_restarted(server, one)
        if server.is_by_silence and server.state == "failover" and sign.state != "failover" and has_run_on:
            server.come_back(sign, begin_ns)
        else:
            server.take(sign, begin_ns, self.limits)

    def _miss(self, host: str, news: News, now_ns: int) -> None:
        """Processes a round without data of the server."""
        server = self._servers[host]
        server.last = None
        silent_s = (now_ns - server.heard_ns) / SECOND
        if silent_s > _FORGOTTEN_S:
            del self._servers[host]
            return
        missed = silent_s / server.every_s + _EARLY
        is_gone = news.is_away or news.has_no_answer or news.lost >= _SURE_LOST
        # On a stalled server the agent may be blocked, too, and send its samples late, so a longer silence is
        # allowed.
        least = self.limits.silent_samples if server.state == "stall" and not news.is_away else 1
        state: State
        if missed >= least and is_gone:
            state = "failover"
        elif missed >= self.limits.silent_samples:
            # A silent server that was reported as gone has not come back, so it keeps the state `failover`.
            state = "failover" if server.state == "failover" else "no-samples"
        else:
            server.missed = int(missed)
            return
        server.missed, server.is_by_silence = 0, True
        evidence = tuple(told(news))
        confidence = min(0.9, 0.6 + 0.1 * len(evidence))
        server.take(Sign(state, confidence, evidence), server.heard_ns, self.limits)

    @staticmethod
    def _verdict(host: str, server: _Server, now_ns: int) -> Verdict:
        sign = server.sign
        return Verdict(
            server.file_system, host, server.kind, server.state, server.since_ns, now_ns,
            sign.confidence, server.samples, sign.evidence, missed=server.missed,
        )  # fmt: skip


def _with_last(sign: Sign, last: tuple[float, float]) -> Sign:
    """Adds the last known number of waiting requests and their waiting time to a sign. They are unknown in a
    sample in which the server handled no request."""
    waiting, wait_s = Evidence("last-waiting", last[0], None, "1"), Evidence("last-wait", last[1], None, "s")
    return replace(sign, evidence=(*sign.evidence, waiting, wait_s))


def _has_restarted(server: _Server | None, one: Observation) -> bool:
    """Returns whether the server's uptime decreased by more than 1 s. A smaller decrease may be due to
    rounding."""
    if server is None or server.uptime_s is None or one.uptime_s is None:
        return False
    return one.uptime_s < server.uptime_s - 1
