"""Evaluates the data about each watched folder or command: usual durations, present state, episodes, daily
pattern, changes, and the effects of marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from iodock.file_system.probe.daily import Daily, daily
from iodock.file_system.probe.episodes import Episode, episodes
from iodock.file_system.probe.history import History, Series, Watch
from iodock.file_system.probe.levels import Change, Drift, levels
from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.records import Kind, Mark
from iodock.file_system.probe.statistics import mann_whitney
from iodock.file_system.probe.store import Progress
from iodock.shared.quantile import quantile

DAY_NS = 86_400_000_000_000
RECENT_ROUNDS = 5
SLOW_FACTOR, SLOW_LEAST_NS = 3.0, 20_000_000
STALE_ROUNDS = 3.0
_SHARES = (0.5, 0.9, 0.99, 1.0)
MARK_NS = 7 * DAY_NS
MARK_LEAST, MARK_CHANCE, MARK_RATIO = 8, 1e-3, 1.1


@dataclass(frozen=True, slots=True)
class Usual:
    """Usual durations of an operation in ns. `count` is the number of rounds in which it was answered.
    `failed` and `no_answer` count the rounds in which it failed or was not answered."""

    count: int
    p50_ns: float
    p90_ns: float
    p99_ns: float
    max_ns: float
    failed: int
    no_answer: int


@dataclass(frozen=True, slots=True)
class MarkEffect:
    """Median durations of an operation before and after a mark. Each period is a week long, or shorter if
    another mark is less than a week away."""

    mark: Mark
    before_ns: float
    after_ns: float
    before_count: int
    after_count: int
    chance: float

    @property
    def is_clear(self) -> bool:
        """Returns whether the durations before and after the mark differ significantly, and by a factor of
        1.1 or more."""
        ratio = self.after_ns / self.before_ns if self.before_ns else 1.0
        return self.chance < MARK_CHANCE and not 1 / MARK_RATIO < ratio < MARK_RATIO


class State(StrEnum):
    """The present state of a watched folder or command."""

    OK = "ok"
    SLOW = "slow"
    FAILING = "failing"
    NO_ANSWER = "no-answer"
    STALE = "stale"
    """There was no round for some time, so the prober does not run."""


@dataclass(frozen=True, slots=True)
class Now:
    """The present state, and the durations from which it was determined."""

    state: State
    ts: int
    recent_ns: float | None
    """Median of the latest rounds, each as the sum over all operations, ns."""
    usual_ns: float | None
    """The usual duration of a round over the whole period, ns."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The evaluation of one watch."""

    watch: Watch
    now: Now
    usual: Mapping[Operation, Usual]
    episodes: tuple[Episode, ...]
    daily: Mapping[Operation, Daily]
    changes: Mapping[Operation, tuple[Change, ...]]
    drifts: Mapping[Operation, Drift]
    marks: Mapping[Operation, tuple[MarkEffect, ...]]


_Found = tuple[Daily | None, tuple[Change, ...], Drift | None]


def judge(known: History, now_ns: int, progress: Progress | None = None) -> tuple[Sight, ...]:
    """Evaluates all watches of a store. NOW_NS is the current time, or the end of the examined period."""
    watches = [one for one in known.watches if one.rounds]
    total, done = sum(len(one.series) for one in watches), 0
    sights = []
    for one in watches:
        found = {}
        for operation, series in one.series.items():
            pattern = daily(series)
            found[operation] = (pattern, *levels(series, one.every_s, pattern))
            done += 1
            if progress is not None:
                progress(done, total, done)
        sights.append(_sight(one, found, known.marks, now_ns))
    return tuple(sights)


def _sight(watch: Watch, found: Mapping[Operation, _Found], marks: Sequence[Mark], now_ns: int) -> Sight:
    effects = {one: tuple(_effects(series, marks)) for one, series in watch.series.items()}
    return Sight(
        watch,
        current(watch, now_ns),
        {one: _usual(watch, one) for one in Operation if _is_known(watch, one)},
        episodes(watch),
        {one: pattern for one, (pattern, _, _) in found.items() if pattern is not None},
        {one: changes for one, (_, changes, _) in found.items() if changes},
        {one: drift for one, (_, _, drift) in found.items() if drift is not None},
        {one: several for one, several in effects.items() if several},
    )


def _is_known(watch: Watch, operation: Operation) -> bool:
    return operation in watch.series or any(one.operation is operation for one in watch.troubles)


def _usual(watch: Watch, operation: Operation) -> Usual:
    spans = sorted(watch.series[operation].spans) if operation in watch.series else []
    kinds = [one.outcome.kind for one in watch.troubles if one.operation is operation]
    half, most, nearly_all, longest = (quantile(spans, share) if spans else 0.0 for share in _SHARES)
    without = kinds.count(Kind.NO_ANSWER) + kinds.count(Kind.WAITING)
    return Usual(len(spans), half, most, nearly_all, longest, kinds.count(Kind.FAILED), without)


def current(watch: Watch, now_ns: int) -> Now:
    """Determines the present state from the latest rounds."""
    assert watch.last is not None
    recent = median(watch.totals.spans[-RECENT_ROUNDS:]) if watch.totals.spans else None
    usual = median(watch.totals.spans) if watch.totals.spans else None
    return Now(_state(watch, recent, usual, now_ns), watch.last.ts, recent, usual)


def _state(watch: Watch, recent: float | None, usual: float | None, now_ns: int) -> State:
    assert watch.last is not None
    kinds = {one.kind for one in watch.last.outcomes.values()}
    # In a round without any answer, each operation waits until its time limit.
    allowed = STALE_ROUNDS * watch.every_s + watch.limit_s * len(watch.last.outcomes)
    if now_ns - watch.last.ts > allowed * 1e9:
        return State.STALE
    if kinds & {Kind.NO_ANSWER, Kind.WAITING}:
        return State.NO_ANSWER
    if Kind.FAILED in kinds:
        return State.FAILING
    if recent is not None and usual is not None and recent > max(SLOW_FACTOR * usual, usual + SLOW_LEAST_NS):
        return State.SLOW
    return State.OK


def _effects(series: Series, marks: Sequence[Mark]) -> Iterator[MarkEffect]:
    times = [one.ts for one in marks]
    for at, mark in enumerate(marks):
        since = max([mark.ts - MARK_NS, *times[:at]])
        until = min([mark.ts + MARK_NS, *times[at + 1 :]])
        before, after = series.between(since, mark.ts), series.between(mark.ts, until)
        if min(len(before), len(after)) >= MARK_LEAST:
            chance = mann_whitney(before, after)
            yield MarkEffect(mark, median(before), median(after), len(before), len(after), chance)
