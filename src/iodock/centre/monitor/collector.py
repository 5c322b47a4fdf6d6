"""The collector: takes what agents send, and keeps its store in order in the background."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from iodock import _native
from iodock.centre.monitor.limits import Refusal, Work
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.rolling import Keep, Writer, expire, roll, tidy
from iodock.centre.monitor.summaries import summarise
from iodock.centre.store import MonitorStore
from iodock.shared.errors import IodockError, RequestError, StoreError

FLUSH_EVERY_S = 5.0
ROLL_EVERY_S = 120.0

Tell = Callable[[str], None]
"""Gets one line for whoever runs the collector."""


_REASONS = ("a push that is too long", "too many pushes at once", "more samples than one machine can have")
_MOST_SENDERS = 100_000


@dataclass
class Taken:
    """What came since the collector began."""

    batches: int = 0
    size_bytes: int = 0
    values: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Of a few reasons, how often."""
    agents: dict[str, int] = field(default_factory=dict)
    """Machine -> when a batch of its agent was kept last, ns since the epoch."""


class Collector:
    """One store that this process writes. `push` may be called from any thread."""

    def __init__(self, folder: Path, keep: Keep | None = None, ids: JobIds | None = None) -> None:
        """IDS: how jobs' ids are taken apart in summaries. Raises StoreError: in use, damaged, or its file
        system fails."""
        with _as_store_error():
            self._intake = _native.MonitorIntake(folder)
        self.store = MonitorStore(folder)
        self.keep = keep or Keep()
        self.ids = ids or JobIds()
        self._end = threading.Event()
        self._trouble: dict[str, str] = {}
        self._refused: Counter[tuple[str, str, str]] = Counter()
        self._refusing = threading.Lock()
        self._taken, self._kept = Taken(), dict[tuple[str, str], int]()
        self._counting = threading.Lock()

    @property
    def replayed(self) -> tuple[int, int]:
        """Batches that were not in files when the store was opened, and damaged bytes behind them."""
        return self._intake.replayed()

    @property
    def writer(self) -> Writer:
        """Who changes the catalogue."""
        return self._intake

    def take(
        self, frames: bytes, host: str | None = None, most: Work | None = None, sent: int | None = None
    ) -> _native.MonitorTaken:
        """Takes frames of one agent, which are safe after the next `sync`. HOST: of this machine only. MOST:
        after so much no frame more is taken. SENT: the agent's clock as it sent them, ns since the epoch; a
        clock that is far from ours is refused. What the sender is to blame for is in the answer. Raises
        StoreError where they could not be kept."""
        with _as_store_error():
            taken = self._intake.take(frames, host, most, sent)
        self._count(taken)
        return taken

    def taken(self) -> Taken:
        """As of now. May be called from any thread."""
        with self._counting:
            one = self._taken
            return replace(one, refused=one.refused.copy(), agents=one.agents.copy())

    def _count(self, taken: _native.MonitorTaken) -> None:
        size_bytes, values, _ = taken.work
        sender = (taken.host, taken.spool)
        with self._counting:
            self._taken.size_bytes += size_bytes
            self._taken.values += values
            if taken.kept:
                # Batches of a spool are numbered. Of one that was not heard yet the last one is new.
                before = self._kept.get(sender, taken.kept - 1)
                self._taken.batches += max(0, taken.kept - before)
                if len(self._kept) < _MOST_SENDERS or sender in self._kept:
                    self._kept[sender] = max(taken.kept, before)
                    self._taken.agents[taken.host] = time.time_ns()

    def refuse(self, refusal: Refusal, host: str = "") -> None:
        """Counts what is not taken; the next flush writes it as a loss. May be called from any thread."""
        with self._refusing:
            self._refused[host, refusal.sender, refusal.why] += 1
        with self._counting:
            self._taken.refused[refusal.why if refusal.why in _REASONS else "not a good batch"] += 1

    def sync(self) -> None:
        """Puts on the disk what was taken until now. Raises StoreError."""
        with _as_store_error():
            self._intake.sync()

    def push(self, frames: bytes) -> tuple[int, bool]:
        """Takes frames and syncs. Raises RequestError, StoreError."""
        taken = self.take(frames)
        if taken.refused:
            raise RequestError(taken.refused)
        self.sync()
        return taken.kept, taken.full

    def flush(self) -> None:
        """Makes files of what came. Raises StoreError."""
        with self._refusing:
            refused, self._refused = self._refused, Counter()
        for (host, sender, why), count in refused.items():
            self._intake.lose(host, "refused-samples", sender, count, why)
        with _as_store_error():
            self._intake.flush()

    def tend(self, now: int) -> None:
        """One round of upkeep. NOW: ns since the epoch. What fails keeps nothing else from being done. Raises
        StoreError."""
        failed = [error for error in map(self._tried, self._upkeep(now)) if error]
        if failed:
            raise failed[0]

    def _upkeep(self, now: int) -> list[Callable[[], object]]:
        return [
            self.flush,
            lambda: roll(self.store, self._intake, now),
            lambda: tidy(self.store, self._intake, now),
            lambda: expire(self.store, self._intake, self.keep, now),
            lambda: summarise(self.store, self.ids),
            # Damaged files were left out.
            self.store.check,
        ]

    def _tried(self, step: Callable[[], object]) -> IodockError | None:
        try:
            with _as_store_error():
                step()
        except IodockError as error:
            return error
        return None

    @contextlib.contextmanager
    def running(self, tell: Tell, flush_every_s: float = FLUSH_EVERY_S) -> Iterator[None]:
        """Flushes and tends in the background as long as the context lasts, and flushes at its end."""
        work = ((self.flush, flush_every_s), (self._tend_now, ROLL_EVERY_S))
        threads = [threading.Thread(target=self._again, args=(*one, tell), daemon=True) for one in work]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._end.set()
            for thread in threads:
                thread.join()
            self.flush()

    def _tend_now(self) -> None:
        self.tend(time.time_ns())

    def _again(self, task: Callable[[], None], every: float, tell: Tell) -> None:
        name = task.__name__
        while not self._end.wait(every):
            try:
                task()
            except IodockError as error:
                self._note(name, str(error), tell)
            else:
                self._note(name, "", tell)

    def _note(self, task: str, trouble: str, tell: Tell) -> None:
        """Says what is new: a full disk must not fill a log, too."""
        before = self._trouble.get(task, "")
        if trouble != before:
            tell(f"error: {trouble}" if trouble else f"over: {before}")
        self._trouble[task] = trouble


@contextlib.contextmanager
def _as_store_error() -> Iterator[None]:
    try:
        yield
    except _native.NativeError as error:
        kind = RequestError if error.usage else StoreError
        raise kind(str(error), error.hint) from error
