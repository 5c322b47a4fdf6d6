"""Determines the state that one sample indicates. The conditions of docs/explanation/server-states.md are
checked in the order in which they are listed there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.centre.watch.observation import NOTHING, News, Observation
from iodock.centre.watch.usual import Usual, amounts
from iodock.centre.watch.verdict import Evidence, State
from iodock.shared.settings import ServerStates

_LEAST_WAITING = 4.0
_TIMES_WAITING = 4.0
_LEAST_THREADS = 8.0
_LEAST_LOAD = 4.0
_FEW_LOST = 3
"""From this number of clients on, lost connections are no longer considered the fault of single clients."""
_LONG_PROBE_S = 10.0
_LONG_WAIT_S = 1.0
_LEAST_SLOW_S = 0.02
_LEAST_FILLING_S = 0.005
_FILLING_TIMES = 10.0
_FULL_CPU = 0.85
"""Use of the processors from which the server counts as fully used. A burst also fills the queue, but leaves
the processors partly idle."""
_MORE = 1.5
"""If the rate is this multiple of the usual one, the server has more requests than usual."""
_LEAST_BUSY = 20.0
"""Below this number of requests per second, no server counts as busy."""
_CLIENT_MOST = 0.5
_UNITS = {
    "handled": "1/s", "opens": "1/s", "closes": "1/s", "creates": "1/s", "object-creates": "1/s",
    "moved": "bytes/s", "wait": "s", "operation": "s", "operation-mib": "s", "cpu": "share",
    "pressure": "share", "probe": "s", "answer": "s", "drain": "s",
}  # fmt: skip
_SHOWN = {
    "stall": ("handled", "waiting", "wait", "threads", "cpu", "opens", "closes", "creates", "object-creates",
              "operation", "pressure", "load", "probe", "answer", "backlog"),
    "overload": ("handled", "waiting", "wait", "threads", "cpu", "opens", "closes", "creates", "moved",
                 "operation", "pressure", "probe", "answer"),
    "degraded": ("operation", "wait", "handled", "moved", "cpu", "pressure", "probe", "answer"),
    "busy": ("handled", "moved", "cpu", "threads", "pressure", "wait", "operation"),
    "failover": ("handled",),
}  # fmt: skip
"""Evidence of each state, the most important first."""


@dataclass(frozen=True)
class Sign:
    """The state that one sample indicates, with its evidence."""

    state: State
    confidence: float
    evidence: tuple[Evidence, ...]


class Sample:
    """Compares one observation with usual values. HELD is the server's present state. Its limits are lower,
    so that a server does not alternate between two states."""

    def __init__(
        self, one: Observation, news: News | None, usual: Usual, held: State | None, limits: ServerStates
    ) -> None:
        self.one, self.news, self.usual, self.limits = one, news or NOTHING, usual, limits
        self.found = amounts(one, self.news)
        self._held = held

    def sign(self, has_restarted: bool) -> Sign:
        """Returns the sign of this sample. HAS_RESTARTED says that the server's uptime decreased."""
        state = self._state(has_restarted)
        evidence = tuple(self._evidence(state, has_restarted))
        return Sign(state, self._confidence(state, len(evidence)), evidence)

    def _state(self, has_restarted: bool) -> State:
        if has_restarted or self.is_recovering or self.news.is_away:
            return "failover"
        if self.is_stalled:
            return "stall"
        waits = self.waits_long
        if waits and self.works:
            return "overload"
        if waits or self.news.faults or self.one.has_guests or self.is_unreachable:
            return "degraded"
        return "busy" if self.is_busy else "healthy"

    @property
    def is_recovering(self) -> bool:
        return self.one.is_recovering or self.news.is_recovering

    @property
    def evictions(self) -> int:
        return max(self.one.evictions, self.news.evictions)

    @property
    def is_stalled(self) -> bool:
        """Returns whether the server is stalled: requests wait, hardly any request is handled, and the CPU is
        not busy."""
        if not self._is_hardly_handled or self.is_cpu_busy or self._answers_quickly:
            return False
        return self._waits_here or (self._waits_elsewhere and not self.is_unreachable)

    @property
    def _is_hardly_handled(self) -> bool:
        rate, usual = self.found.get("handled"), self.usual.of("handled")
        if rate is None:
            return False
        limit = self.limits.collapsed_share * (2 if self._held == "stall" else 1)
        if usual is not None and rate <= limit * usual:
            return True
        drain = self.drain_s
        if drain is None or drain < self.limits.drain_s or (usual is not None and rate > usual):
            return False
        # By Little's law, requests in a long queue wait long if the queue persists. A short waiting time
        # means that the queue is only a burst.
        return self.one.wait_s is None or self.one.wait_s >= _LONG_WAIT_S

    @property
    def drain_s(self) -> float | None:
        """Returns the time in s that the server would need for the waiting requests at the present rate, or
        None if it is not known."""
        rate, waiting = self.found.get("handled"), self.one.waiting
        return waiting / rate if rate and waiting is not None else None

    @property
    def _answers_quickly(self) -> bool:
        """Returns whether no requests are queued and the handled ones were fast. Their waiting time must be
        below the limit or, if it is not known, their duration must be usual."""
        if self._has_queue:
            return False
        if self.one.wait_s is not None:
            return self.one.wait_s < self.limits.wait_s
        return self.one.operation_s is not None and not self._is_slow

    @property
    def _waits_here(self) -> bool:
        """Returns whether values that the server's own agent read show that requests wait."""
        one = self.one
        if self._has_queue:
            return True
        if one.wait_s is not None and one.wait_s >= _LONG_WAIT_S:
            return True
        if one.threads is not None and one.threads >= self._several("threads", _LEAST_THREADS):
            return True
        if one.operation_s is not None and self._is_slow:
            return True
        is_loaded = one.load is not None and one.load >= self._several("load", _LEAST_LOAD)
        return is_loaded and (one.pressure or 0.0) >= 0.5 and not self.news.is_checked

    @property
    def _has_queue(self) -> bool:
        return self.one.waiting is not None and self.one.waiting >= self._several("waiting", _LEAST_WAITING)

    @property
    def _waits_elsewhere(self) -> bool:
        """Returns whether values from clients and probes show that requests wait."""
        news = self.news
        if news.has_no_answer or (news.probe_s or 0.0) >= _LONG_PROBE_S:
            return True
        return news.backlog is not None and news.backlog >= self._several("backlog", _LEAST_WAITING)

    def _several(self, name: str, least: float) -> float:
        return max(least, _TIMES_WAITING * (self.usual.of(name) or 0.0))

    @property
    def is_unreachable(self) -> bool:
        """Returns whether clients lose the connection while none of their requests waits at the server."""
        lost = max(self.news.lost, self.evictions)
        return lost >= _FEW_LOST and not self._waits_here

    @property
    def waits_long(self) -> bool:
        limit = self.limits.wait_s * (0.5 if self._held in ("overload", "degraded", "stall") else 1)
        if self.one.kind == "client":
            return self._is_times("wait", self.one.wait_s, limit)
        if self.one.wait_s is not None:
            return self.one.wait_s >= limit or self._fills_up
        if self.one.operation_s is not None:
            return self._is_slow
        news = self.news
        return self._is_times("answer", news.client_wait_s, _LEAST_SLOW_S) or self._is_times(
            "probe", news.probe_s, limit
        )

    @property
    def _fills_up(self) -> bool:
        """Returns whether at least as many requests wait as threads are busy, requests wait far longer than
        usual, and the processors are fully used. This is so in the first seconds of an overload."""
        waiting, threads, usual = self.one.waiting, self.one.threads, self.usual.of("wait")
        if waiting is None or threads is None or usual is None or self.one.wait_s is None:
            return False
        if (self.one.cpu or 0.0) < _FULL_CPU:
            return False
        is_longer = self.one.wait_s >= max(_LEAST_FILLING_S, _FILLING_TIMES * usual)
        return is_longer and waiting >= max(threads, _LEAST_THREADS)

    @property
    def _is_slow(self) -> bool:
        """Returns whether operations take several times as long as usual. If the moved bytes are known, the
        time per MiB must be several times the usual one, too."""
        is_long = self._is_times("operation", self.one.operation_s, _LEAST_SLOW_S)
        if not is_long or self.usual.of("operation-mib") is None or "operation-mib" not in self.found:
            return is_long
        return self._is_times("operation-mib", self.found["operation-mib"], 0.0)

    def _is_times(self, name: str, value: float | None, least: float) -> bool:
        """Returns whether a value is at least LEAST and several times the usual value of the quantity
        NAME."""
        usual, times = self.usual.of(name), self.limits.slow_times
        if self._held in ("overload", "degraded", "stall"):
            times /= 2
        return value is not None and usual is not None and value >= max(least, times * usual)

    @property
    def is_cpu_busy(self) -> bool:
        limit = self.limits.cpu_share * (0.7 if self._held == "overload" else 1)
        return self.one.cpu is not None and self.one.cpu >= limit

    @property
    def works(self) -> bool:
        """Returns whether the server works at full capacity or handles at least as many requests as usual, so
        that a long wait means overload and not a fault."""
        if self.is_cpu_busy or self._is_more("handled", _MORE) or self._is_more("moved", _MORE):
            return True
        knows_cpu = self.one.cpu is not None and self.one.kind == "metadata"
        if knows_cpu or self.news.faults or not self.usual.is_known:
            return not self.usual.is_known and self.one.cpu is None
        return self.one.kind != "object" and self._is_more("handled", 1.0)

    def _is_more(self, name: str, times: float) -> bool:
        value, usual = self.found.get(name), self.usual.of(name)
        return value is not None and usual is not None and value >= times * usual > 0

    @property
    def is_busy(self) -> bool:
        share = 0.7 if self._held == "busy" else 1.0
        if (self.one.cpu or 0.0) >= self.limits.cpu_share * share:
            return True
        if (self.one.pressure or 0.0) >= 0.5 * share:
            return True
        times = self.limits.busy_times * share
        is_much = self._is_more("handled", times) and self.found["handled"] >= _LEAST_BUSY
        return is_much or self._is_more("moved", times)

    def _evidence(self, state: State, has_restarted: bool) -> Iterator[Evidence]:
        if has_restarted and self.one.uptime_s is not None:
            yield Evidence("uptime", self.one.uptime_s, None, "s")
        if self.is_recovering:
            yield Evidence("recovery", None, None, "")
        if self.one.has_guests:
            yield Evidence("guests", None, None, "")
        for kind in self.news.faults:
            yield Evidence(kind, None, None, "")
        for name in _SHOWN.get(state, ()):
            if name in self.found:
                yield Evidence(name, self.found[name], self.usual.of(name), _UNITS.get(name, "1"))
        if state == "stall" and self.drain_s is not None:
            yield Evidence("drain", self.drain_s, None, "s")
        yield from told(self.news, self.evictions)

    def _confidence(self, state: State, pieces: int) -> float:
        sure = 0.6 + 0.05 * min(pieces, 7)
        if state in ("overload", "stall"):
            sure -= 0.15 * (self.one.cpu is None) + 0.1 * (not self.usual.is_known)
        return round(min(sure, _CLIENT_MOST) if self.one.kind == "client" else sure, 2)


def told(news: News, evictions: int = 0) -> Iterator[Evidence]:
    """Yields the reports of other machines about the server as evidence."""
    if news.lost:
        yield Evidence("lost", float(news.lost), None, "1")
    if evictions:
        yield Evidence("evictions", float(evictions), None, "1")
    if news.has_no_answer:
        yield Evidence("no-answer", None, None, "")
    if news.is_away:
        yield Evidence("away", None, None, "")
