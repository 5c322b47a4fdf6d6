"""Watches a store. It provides the present verdicts on servers with suspects and information about their
jobs, and the history of verdicts."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from iodock.centre.monitor.logins import login
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.names import name_of, names
from iodock.centre.monitor.questions.servers import LATE, owners
from iodock.centre.monitor.questions.spans import HOUR, SECOND
from iodock.centre.store import MonitorTables
from iodock.centre.watch.observation import Asked, Jobs
from iodock.centre.watch.observing import Observer
from iodock.centre.watch.schedulers import chosen
from iodock.centre.watch.schedulers.base import JobDescription
from iodock.centre.watch.schedulers.describing import described
from iodock.centre.watch.states import States
from iodock.centre.watch.suspects import suspects
from iodock.centre.watch.verdict import UNWELL, State, Suspect, Verdict
from iodock.shared.errors import IodockError
from iodock.shared.settings import ServerStates

_MOST_PAST = 1000
"""Number of periods of trouble that are remembered."""
_NAMED_STATES: tuple[State, ...] = ("overload", "stall")
_NAMED_AGAIN = 30 * SECOND
_FRESH = 4
"""A state counts as new for this number of samples."""
_FACTS_AGAIN = 300 * SECOND
_ENDS_IN_S = 5.0
_WRITTEN = 6 * SECOND
"""Time until a reading is in the store, ns."""
_MOST_KEPT = 12
"""Number of time spans of an episode whose requests are remembered. The latest is dropped first, because it
is not requested again."""
_SMALL = 200
"""Largest number of servers for which the last hours are read minute by minute."""


@dataclass(frozen=True)
class Spell:
    """A period in which a server was in one state."""

    verdict: Verdict
    """The last verdict in this period."""
    end_ns: int | None
    """End of the period; None: the episode continues."""
    is_learnt: bool = False
    """Whether the period was derived from data that the store had at the start. Such periods are in coarser
    steps, and have no suspects."""


class Remembered:
    """Caches the requests of jobs in the time spans of one episode, so that the store is queried only once
    for each span."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._kept: dict[tuple[str, int, int, bool], Sequence[Asked]] = {}

    def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
        """Returns the requests of jobs as `Jobs` says."""
        key = (host, begin_ns, end_ns, with_objects)
        if key not in self._kept:
            if len(self._kept) > _MOST_KEPT:
                self._kept.pop(next(reversed(self._kept)))
            self._kept[key] = self._jobs.asked(host, begin_ns, end_ns, with_objects)
        return self._kept[key]


@dataclass
class Watching:
    """The watcher of one store. Its methods may be called from several threads."""

    store: MonitorTables
    ids: JobIds = field(default_factory=JobIds)
    limits: ServerStates = field(default_factory=ServerStates)
    names_jobs: bool = True
    """Whether the names of jobs are used. A site can disable this."""
    listener: Callable[[tuple[Verdict, ...], int], None] | None = None
    """If the watch is running, this is called with the verdicts of each look and the duration of the look."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _verdicts: tuple[Verdict, ...] = ()
    _at: int | None = None
    _learnt_ns: int = 0
    """Judgements of the time before this moment were derived from the store."""
    _past: deque[Spell] = field(default_factory=lambda: deque(maxlen=_MOST_PAST))
    _named: dict[tuple[str, int], tuple[int, tuple[Suspect, ...]]] = field(default_factory=dict)
    _asked: dict[tuple[str, int], Remembered] = field(default_factory=dict)
    """Remembered requests, by server and begin of the episode."""
    _facts: dict[str, tuple[int, JobDescription]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._step = int(self.limits.sample_s * SECOND)
        self._observer = Observer(self.store, self.ids, self._step)
        self._states = States(self.limits)

    def look(self, now: int | None = None) -> tuple[Verdict, ...]:
        """Returns one verdict for each server, the worst first. Verdicts are at most one sample old. NOW is
        in ns since the epoch; without it, the present time is used. Raises StoreError, QueryError."""
        now = time.time_ns() if now is None else now
        with self._lock:
            if self._at is None or now - self._at >= self._step or now < self._at:
                if self._at is None:
                    self._learn(now)
                self._at = now
                self._take(self._states.take(self._observer.round(now)), now)
            return self._verdicts

    def history(self, least: tuple[State, ...] = (*UNWELL, "no-samples")) -> tuple[Spell, ...]:
        """Returns the periods in one of the states LEAST since the watch began and in the hours before, the
        newest first."""
        with self._lock:
            going = [Spell(one, None) for one in self._verdicts if one.state in least]
            found = [*going, *(spell for spell in self._past if spell.verdict.state in least)]
        return tuple(sorted(found, key=lambda spell: -spell.verdict.since_ns))

    @contextmanager
    def running(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Examines every sample in a background thread while the context is open. A state needs several
        consecutive samples, so none may be skipped. TELL is called with a line about data that can't be
        read."""
        ends = threading.Event()
        thread = threading.Thread(target=self._run, args=(ends, tell), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join(_ENDS_IN_S)

    def _run(self, ends: threading.Event, tell: Callable[[str], None]) -> None:
        said = ""
        while not ends.wait(self._until_next(time.time_ns())):
            try:
                now = time.time_ns()
                verdicts = self.look(now)
                if self.listener:
                    self.listener(verdicts, now)
                said = ""
            # All exceptions are caught, because a bug must not end the watch: no more notices would be sent.
            except Exception as error:
                trouble = str(error) if isinstance(error, IodockError) else f"{type(error).__name__}: {error}"
                # A message is printed only when it changes, because repeating it for every sample would fill
                # the log.
                if trouble != said:
                    said = trouble
                    tell(f"warning: states of servers: {said}")

    def _until_next(self, now: int) -> float:
        """Returns the time in s until the next round of all agents is in the store. Rounds begin when the
        clock is a multiple of the step."""
        after = min(self._step * 7 // 10, self._step // LATE + _WRITTEN)
        return ((now - after) // self._step * self._step + self._step + after - now) / SECOND

    def _learn(self, now: int) -> None:
        """Derives verdicts and usual values from the last hours. If there are many servers, it uses steps of
        5 minutes instead of 1 minute."""
        self._observer.prepare(now)
        self._learnt_ns = now
        step_s = 60.0 if self._observer.servers <= _SMALL else 300.0
        for round_ in self._observer.past(now, self.limits.usual_hours, step_s):
            self._remember(self._states.take(round_))
        self._states.wake(now)

    def _remember(self, verdicts: list[Verdict]) -> None:
        """Stores new verdicts. If the state of a server has changed, adds the finished period to the
        history."""
        before = {one.server: one for one in self._verdicts}
        for one in verdicts:
            last = before.get(one.server)
            if last is not None and last.state != one.state:
                self._past.append(Spell(last, one.since_ns, last.at_ns <= self._learnt_ns))
        self._verdicts = tuple(verdicts)

    def _take(self, verdicts: list[Verdict], now: int) -> None:
        named = [
            replace(one, suspects=self._suspects(one, now)) if one.state in _NAMED_STATES else one
            for one in verdicts
        ]
        self._remember(sorted(named, key=_order))

    def _suspects(self, verdict: Verdict, now: int) -> tuple[Suspect, ...]:
        key = (verdict.server, verdict.since_ns)
        at, found = self._named.get(key, (0, ()))
        # In the first samples of a state, suspects are searched again for each one, and later at intervals.
        if now - at >= (_NAMED_AGAIN if verdict.samples > _FRESH else 0):
            step_s, clock_ns = self._states.clock(verdict.server)
            remembered = self._asked.setdefault(key, Remembered(self._observer))
            self._asked = {one: kept for one, kept in self._asked.items() if one[0] != key[0] or one == key}
            known_ns = self._states.known_since(verdict.server)
            found = suspects(verdict, remembered, step_s, clock_ns, known_ns) or found
            known = self._known([one.job for one in found], now)
            found = tuple(_with(one, known.get(one.job), self.names_jobs) for one in found)
            self._named = {one: kept for one, kept in self._named.items() if one[0] != verdict.server}
            self._named[key] = (now, found)
        return found

    def _known(self, jobs: list[str], now: int) -> Mapping[str, JobDescription]:
        """Returns information about jobs from the scheduler, completed from the store."""
        wanted = [job for job in jobs if now - self._facts.get(job, (0, None))[0] > _FACTS_AGAIN]
        if wanted:
            told = described(chosen(self.limits.scheduler), wanted)
            kept = self._stored(wanted, now)
            for job in wanted:
                self._facts[job] = (now, _first(told.get(job), kept.get(job, JobDescription())))
        if len(self._facts) > _MOST_PAST:
            self._facts = {job: self._facts[job] for job in jobs}
        return {job: self._facts[job][1] for job in jobs}

    def _stored(self, jobs: list[str], now: int) -> Mapping[str, JobDescription]:
        """Returns the owner, name and nodes of each job, as servers and agents reported them."""
        rows = owners(self.store, jobs, self.ids, now - HOUR, now + HOUR).to_pylist()
        called = names(self.store, jobs, now - HOUR, now + HOUR)
        return {
            str(row["job"]): JobDescription(
                login(str(row["user"])) if row["user"] else None,
                name_of(called, row["job"], row["user"]), row["nodes"] or None,
                job_ids=row["job_ids"] or None,
            )
            for row in rows
        }  # fmt: skip


def _first(told: JobDescription | None, kept: JobDescription) -> JobDescription:
    if told is None:
        return kept
    return replace(
        told, owner=told.owner or kept.owner, name=told.name or kept.name, nodes=told.nodes or kept.nodes,
        job_ids=kept.job_ids,
    )  # fmt: skip


def _with(suspect: Suspect, known: JobDescription | None, names_jobs: bool) -> Suspect:
    if known is None:
        return suspect
    name = known.name if names_jobs else None
    return replace(suspect, owner=known.owner, name=name, nodes=known.nodes, job_ids=known.job_ids)


_WORST: tuple[State, ...] = ("stall", "overload", "failover", "degraded", "no-samples", "busy", "healthy")


def _order(verdict: Verdict) -> tuple[int, str]:
    return _WORST.index(verdict.state), verdict.server
