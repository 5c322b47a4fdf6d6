"""Reads the rounds of each watch from a probe store. Durations are kept in arrays instead of objects, because
a year has half a million rounds."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.records import End, Kind, Late, Mark, Outcome, Record, Round, Run
from iodock.file_system.probe.store import Losses, ProbeStore, Progress


@dataclass(slots=True)
class Series:
    """Durations of an operation, sorted by time. Only rounds in which the operation was answered are
    included."""

    times: array[int] = field(default_factory=lambda: array("q"))
    """Time of each round, ns since the epoch."""
    spans: array[int] = field(default_factory=lambda: array("q"))
    """Duration in each round, ns."""

    def add(self, ts: int, ns: int) -> None:
        self.times.append(ts)
        self.spans.append(ns)

    def between(self, since: int, until: int) -> array[int]:
        """Returns the durations of rounds from SINCE until before UNTIL."""
        return self.spans[bisect_left(self.times, since) : bisect_left(self.times, until)]

    def ordered(self) -> Series:
        """Returns the series sorted by time. The store is not sorted if several runs wrote to it at the same
        time."""
        if all(self.times[at] <= self.times[at + 1] for at in range(len(self.times) - 1)):
            return self
        pairs = sorted(zip(self.times, self.spans, strict=True))
        return Series(array("q", (ts for ts, _ in pairs)), array("q", (ns for _, ns in pairs)))


@dataclass(frozen=True, slots=True)
class Trouble:
    """An operation that failed, or that was not answered in time."""

    ts: int
    operation: Operation
    outcome: Outcome


@dataclass(slots=True)
class Watch:
    """The data about one folder or command that was watched from one host."""

    host: str
    target: str
    is_command: bool
    every_s: float
    """Interval between rounds, from the settings of the latest run."""
    limit_s: float
    series: dict[Operation, Series] = field(default_factory=lambda: defaultdict(Series))
    totals: Series = field(default_factory=Series)
    """Duration of each round in which all operations were answered: the sum over its operations."""
    troubles: list[Trouble] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    rounds: int = 0
    last: Round | None = None
    """The latest round."""
    first_ts: int = 0
    found: dict[str, int] = field(default_factory=dict)
    """Free bytes and inodes according to the latest `df`."""

    def add(self, one: Round) -> None:
        total, good = 0, True
        for operation, outcome in one.outcomes.items():
            if outcome.kind is Kind.ANSWERED and outcome.ns is not None:
                self.series[operation].add(one.ts, outcome.ns)
                total += outcome.ns
            else:
                good = False
                if outcome.kind is not Kind.NOT_TRIED:
                    self.troubles.append(Trouble(one.ts, operation, outcome))
        if good:
            self.totals.add(one.ts, total)
        self.rounds += 1
        self.first_ts = min(self.first_ts or one.ts, one.ts)
        if self.last is None or one.ts >= self.last.ts:
            self.last = one
            self.found.update(one.found)

    def finish(self) -> None:
        """Sorts the data by time, because several runs may have written to the store at the same time."""
        self.series = {one: self.series[one].ordered() for one in Operation if one in self.series}
        self.totals = self.totals.ordered()
        self.troubles.sort(key=lambda one: one.ts)


@dataclass(frozen=True, slots=True)
class History:
    """The content of a probe store, or that of a period."""

    watches: tuple[Watch, ...]
    marks: tuple[Mark, ...]
    losses: Losses
    orphans: int
    """Number of rounds whose target is unknown, because the record of their run is damaged."""


def history(
    store: ProbeStore,
    since_ns: int | None = None,
    until_ns: int | None = None,
    progress: Progress | None = None,
) -> History:
    """Reads the data of a period from the store. Raises StoreError."""
    losses = Losses()
    records = list(_within(store.records(losses, since_ns, progress), since_ns, until_ns))
    runs = {one.run: one for one in records if isinstance(one, Run)}
    watches: dict[tuple[str, str], Watch] = {}
    orphans = 0
    for record in records:
        if not isinstance(record, Round | Late):
            continue
        run = runs.get(record.run)
        if run is None:
            orphans += 1
            continue
        _add(_watch(watches, run), record)
    for one in watches.values():
        one.finish()
    marks = sorted((one for one in records if isinstance(one, Mark)), key=lambda one: one.ts)
    known = tuple(watches[key] for key in sorted(watches))
    return History(known, tuple(marks), losses, orphans)


def _within(records: Iterable[Record], since: int | None, until: int | None) -> Iterator[Record]:
    for one in records:
        # A round can be interpreted only with the record of its run, which may have begun before the period.
        # Records of runs are therefore always kept.
        inside = (since is None or one.ts >= since) and (until is None or one.ts < until)
        if isinstance(one, Run) or (inside and not isinstance(one, End)):
            yield one


def _watch(watches: dict[tuple[str, str], Watch], run: Run) -> Watch:
    made = Watch(run.host, run.target, run.is_command, run.every_s, run.limit_s)
    found = watches.setdefault((run.target, run.host), made)
    found.every_s, found.limit_s = run.every_s, run.limit_s
    return found


def _add(watch: Watch, record: Round | Late) -> None:
    if isinstance(record, Late):
        watch.late.append(record)
    else:
        watch.add(record)
