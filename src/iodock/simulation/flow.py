"""Simulates the operations of one job id on one target, with the entry that the server keeps and the true
counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from iodock.simulation.counters import Rate, Tallies, Tally, add_all

if TYPE_CHECKING:
    from iodock.simulation.jobs import Job


class Keeper(Protocol):
    """The properties of a target that a stream needs."""

    name: str
    speed: float
    """Speed of the target. 1: as usual; 0: no request is answered."""
    live: dict[str, Stream]
    """The active streams, by job id."""
    changes: int
    """Number of changes. It is incremented whenever an entry appears, disappears or is settled."""

    def appear(self, stream: Stream, start_ns: int, now_ns: int) -> Entry: ...


class Entry:
    """The entry of one id in a target's `job_stats`. Times in ns since the epoch, by the server's clock."""

    __slots__ = ("_settled", "_updated_ns", "job_id", "start_ns", "stream", "tallies", "text")

    def __init__(self, stream: Stream, now_ns: int) -> None:
        self.stream, self.job_id = stream, stream.job_id
        self.start_ns = self._updated_ns = now_ns
        self.tallies: Tallies = {}
        self.text: str | None = None
        """The entry as it was last printed; None after a change."""
        self._settled: dict[str, int] | None = None

    @property
    def job(self) -> Job:
        return self.stream.job

    def updated_ns(self, now_ns: int) -> int:
        """Returns the time of the entry's last use."""
        return max(self._updated_ns, self.stream.last_ns(now_ns))

    def is_used_after(self, since_ns: int) -> bool:
        """Returns whether the entry may have been used after this time. True may be wrong, but False is
        always right."""
        return bool(self.stream.rates) or self._updated_ns > since_ns

    def counters(self, now_ns: int) -> dict[str, int]:
        """Returns the values by name, named as in `iodock-agent`, without zeros. They must not be
        modified."""
        if self._settled is None:
            self._settled = _named(self.tallies)
        stream = self.stream
        if not stream.rates:
            return self._settled
        values = self._settled.copy()
        known = values.get
        elapsed = now_ns - stream.since_ns
        # This is the content of `unsettled`, repeated here because most of the time for a long history is
        # spent in it.
        for rate, base in zip(stream.rates, stream.base, strict=True):
            samples = elapsed // rate.period_ns + 1 - base
            if samples:
                values[rate.count_name] = known(rate.count_name, 0) + samples
                values[rate.sum_name] = known(rate.sum_name, 0) + samples * rate.amount
        return values

    def tallies_at(self, now_ns: int) -> Tallies:
        """Returns the tally of each operation at the time NOW_NS."""
        tallies = dict(self.tallies)
        for rate, samples in self.stream.unsettled(now_ns):
            tally = tallies[rate.operation].copy() if rate.operation in tallies else Tally()
            tally.add(samples, rate.amount)
            tallies[rate.operation] = tally
        return tallies

    def add(self, rate: Rate, samples: int) -> None:
        self.tallies.setdefault(rate.operation, Tally()).add(samples, rate.amount)
        self.text = self._settled = None
        self.stream.target.changes += 1

    def touch(self, at_ns: int) -> None:
        self._updated_ns = max(self._updated_ns, at_ns)


def _named(tallies: Tallies) -> dict[str, int]:
    values: dict[str, int] = {}
    for operation, tally in tallies.items():
        if tally.samples:
            rate = Rate(operation, 1, 0)
            values[rate.count_name] = tally.samples
            if tally.sum:
                values[rate.sum_name] = tally.sum
    return values


class Stream:
    """The operations of one job id on one target. Between two changes of its rates, all counts are a function
    of the time, because the n-th operation happens n periods after the change. Therefore counts do not depend
    on how often they are read, and no work is needed to advance the time."""

    __slots__ = ("base", "entry", "job", "job_id", "rates", "since_ns", "target", "truth", "wanted")

    def __init__(self, job: Job, job_id: str, target: Keeper) -> None:
        self.job, self.job_id, self.target = job, job_id, target
        self.wanted: Sequence[Rate] = ()
        """The job's rates if the target had its usual speed."""
        self.rates: Sequence[Rate] = ()
        self.truth: Tallies = {}
        """Operations up to the last change."""
        self.entry: Entry | None = None
        self.since_ns = 0
        self.base: list[int] = []

    def unsettled(self, now_ns: int) -> list[tuple[Rate, int]]:
        """Returns rates, and the number of operations of each since the last settling."""
        elapsed = now_ns - self.since_ns
        return [
            (rate, elapsed // rate.period_ns + 1 - base)
            for rate, base in zip(self.rates, self.base, strict=True)
        ]

    def last_ns(self, now_ns: int) -> int:
        """Returns the time of the last operation; 0 if there was none since the last change."""
        since = self.since_ns
        return max(
            (since + (now_ns - since) // rate.period_ns * rate.period_ns for rate in self.rates), default=0
        )

    def change(self, rates: Sequence[Rate], now_ns: int) -> None:
        """Changes the job's rates. The first operation of each happens immediately."""
        self.settle(now_ns)
        self.wanted = rates
        speed = self.target.speed
        self.rates = [rate.slowed(speed) for rate in rates] if speed > 0 else ()
        self.since_ns, self.base = now_ns, [0] * len(self.rates)
        if self.rates and self.entry is None:
            self._appear(now_ns)
        if rates:
            self.target.live[self.job_id] = self
        else:
            self.target.live.pop(self.job_id, None)

    def settle(self, now_ns: int) -> None:
        """Adds the operations until now to the entry and to the true counts."""
        if not self.rates:
            return
        done = self.unsettled(now_ns)
        if self.entry is None and any(samples > 0 for _, samples in done):
            self._appear(now_ns)
        for at, (rate, samples) in enumerate(done):
            if samples <= 0:
                continue
            self.base[at] += samples
            self.truth.setdefault(rate.operation, Tally()).add(samples, rate.amount)
            assert self.entry is not None
            self.entry.add(rate, samples)
        if self.entry is not None:
            self.entry.touch(self.last_ns(now_ns))

    def _appear(self, now_ns: int) -> None:
        """Creates the entry on the target. Its start is the time of the first operation that is not counted
        yet."""
        first_ns = min(
            self.since_ns + base * rate.period_ns for rate, base in zip(self.rates, self.base, strict=True)
        )
        self.entry = self.target.appear(self, first_ns, now_ns)

    def truth_at(self, now_ns: int) -> Tallies:
        """Returns the true tally of each operation until NOW_NS."""
        tallies: Tallies = {}
        add_all(tallies, self.truth)
        for rate, samples in self.unsettled(now_ns):
            tallies.setdefault(rate.operation, Tally()).add(samples, rate.amount)
        return {operation: tally for operation, tally in tallies.items() if tally.samples}
