"""Implements the collector, which receives the samples of agents and maintains its store in the
background."""

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
"""Prints one line for the person who runs the collector."""


_REASONS = ("an oversized push", "too many pushes at once", "more samples than one machine can have")
_MOST_SENDERS = 100_000


@dataclass
class Taken:
    """Counts of the data that the collector received and refused since it started."""

    batches: int = 0
    size_bytes: int = 0
    values: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Number of refusals, by reason."""
    agents: dict[str, int] = field(default_factory=dict)
    """For each machine, the time when the last batch of its agent was stored, ns since the epoch."""


class Collector:
    """A collector with the store that this process writes. `push` may be called from any thread."""

    def __init__(self, folder: Path, keep: Keep | None = None, ids: JobIds | None = None) -> None:
        """Opens a store. KEEP has the retention times. IDS parses the ids of jobs for summaries. Raises
        StoreError if the store is in use or damaged, or if its file system fails."""
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
        """Returns the number of batches that were only in the journal when the store was opened, and the
        number of damaged bytes after them."""
        return self._intake.replayed()

    @property
    def writer(self) -> Writer:
        """Returns the writer of the catalogue. Only one thread may use it at a time."""
        return self._intake

    def take(
        self, frames: bytes, host: str | None = None, most: Work | None = None, sent: int | None = None
    ) -> _native.MonitorTaken:
        """Receives frames of one agent. They are on the disk after the next `sync`. If HOST is given, only
        data of this machine is accepted. MOST is the size after which no further frame is accepted. SENT is
        the time of the agent's clock when it sent the frames, in ns since the epoch; the frames are refused
        if it differs too much from this machine's clock. Errors of the sender are in the result. Raises
        StoreError if the frames could not be stored."""
        with _as_store_error():
            taken = self._intake.take(frames, host, most, sent)
        self._count(taken)
        return taken

    def taken(self) -> Taken:
        """Returns a copy of the current counts. May be called from any thread."""
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
                # Each spool numbers its batches consecutively, so the growth of the last number is the number
                # of new batches. For the first push of a spool it is not known how many batches are new, and
                # one is counted.
                before = self._kept.get(sender, taken.kept - 1)
                self._taken.batches += max(0, taken.kept - before)
                if len(self._kept) < _MOST_SENDERS or sender in self._kept:
                    self._kept[sender] = max(taken.kept, before)
                    self._taken.agents[taken.host] = time.time_ns()

    def refuse(self, refusal: Refusal, host: str = "") -> None:
        """Counts refused data. The next flush writes the count to the store as a loss. May be called from any
        thread."""
        with self._refusing:
            self._refused[host, refusal.sender, refusal.why] += 1
        with self._counting:
            self._taken.refused[refusal.why if refusal.why in _REASONS else "not a good batch"] += 1

    def sync(self) -> None:
        """Waits until everything received so far is on the disk. Raises StoreError."""
        with _as_store_error():
            self._intake.sync()

    def push(self, frames: bytes) -> tuple[int, bool]:
        """Receives frames and waits until they are on the disk. Returns the number of the last stored batch,
        and whether the agent must send all counters again. Raises RequestError if the frames are refused, and
        StoreError."""
        taken = self.take(frames)
        if taken.refused:
            raise RequestError(taken.refused)
        self.sync()
        return taken.kept, taken.full

    def flush(self) -> None:
        """Writes received data to files. Raises StoreError."""
        with self._refusing:
            refused, self._refused = self._refused, Counter()
        for (host, sender, why), count in refused.items():
            self._intake.lose(host, "refused-samples", sender, count, why)
        with _as_store_error():
            self._intake.flush()

    def tend(self, now: int) -> None:
        """Runs all steps of the upkeep once. If a step fails, the remaining steps still run. NOW: ns since
        the epoch. Raises StoreError."""
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
            # The check comes last, because it raises an error if the steps before it left out damaged files.
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
        """Flushes and maintains the store in background threads while the context is open. At the end of the
        context it flushes the store once more."""
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
        """Reports an error of a background task only when it begins, changes or ends. Otherwise a lasting
        error, such as a full disk, would fill the log."""
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
