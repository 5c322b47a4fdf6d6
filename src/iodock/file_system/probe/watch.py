"""Executes rounds at fixed intervals until the run is stopped, and writes each round to the store."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from secrets import token_hex

from iodock.file_system.probe.records import End, Late, Mark, Record, Round, Run
from iodock.file_system.probe.rounds import Plan, Prober, Stopped
from iodock.file_system.probe.store import ProbeStore, host_name
from iodock.shared.errors import StoreError

_MOST_KEPT = 10_000
"""Number of records that are kept while the store is not writable."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The target and the settings that the user requested."""

    target: str
    is_command: bool
    every_s: float
    limit_s: float
    size_bytes: int
    rounds: int | None = None
    """Number of rounds after which it ends; None: until it is stopped."""


Tell = Callable[[Round | Late | StoreError], None]


class _Log:
    """Writes records to the store. If writing fails, up to 10,000 records are kept and written with the next
    one."""

    def __init__(self, store: ProbeStore, tell: Tell) -> None:
        self.store, self.tell = store, tell
        self.waiting: deque[Record] = deque(maxlen=_MOST_KEPT)
        self.lost = 0
        self.has_failed = False

    def add(self, record: Record) -> None:
        self.lost += len(self.waiting) == _MOST_KEPT
        self.waiting.append(record)
        try:
            while self.waiting:
                self.store.append(self.waiting[0])
                self.waiting.popleft()
            self.has_failed = False
        except StoreError as error:
            if not self.has_failed:
                self.tell(error)
            self.has_failed = True


def watch(wish: Wish, store: ProbeStore, wake: int, tell: Tell) -> int:
    """Executes rounds until WAKE becomes readable, or until the requested number of rounds is reached.
    Returns the number of records that could not be written. Raises StoreError if the very first record can't
    be written."""
    plan = Plan(
        f"{host_name()[:40]}-{token_hex(4)}", wish.target, wish.is_command, wish.limit_s, wish.size_bytes
    )
    begin = partial(_run, plan, wish)
    store.append(begin())
    log = _Log(store, tell)
    prober = Prober(plan, wake)
    try:
        _rounds(wish, prober, log, begin)
    except Stopped:
        pass
    finally:
        log.add(End(time.time_ns(), plan.run, prober.end()))
    return log.lost + len(log.waiting)


def _run(plan: Plan, wish: Wish) -> Run:
    return Run(
        time.time_ns(), plan.run, host_name(), os.getpid(), wish.target, wish.is_command, wish.every_s,
        wish.limit_s, wish.size_bytes, metadata.version("iodock"),
    )  # fmt: skip


def _rounds(wish: Wish, prober: Prober, log: _Log, begin: Callable[[], Run]) -> None:
    first, turn, number = time.monotonic(), 0, 0
    day = _day(time.time_ns())
    while not _pause(first + turn * wish.every_s, prober.wake):
        _late(prober, log)
        done = prober.round(number)
        if _day(done.ts) != day:
            # The record of the run is repeated every day. Otherwise, the rounds could not be interpreted if
            # the first record is damaged.
            log.add(begin())
            day = _day(done.ts)
        log.add(done)
        log.tell(done)
        _late(prober, log)
        number += 1
        if wish.rounds is not None and number >= wish.rounds:
            return
        # A round may take longer than the interval. The rounds that should have started in the meantime are
        # skipped.
        turn = max(turn + 1, int((time.monotonic() - first) // wish.every_s) + 1)


def _day(ts: int) -> int:
    return ts // 86_400_000_000_000


def _late(prober: Prober, log: _Log) -> None:
    for late in prober.late():
        log.add(late)
        log.tell(late)


def _pause(until: float, wake: int | None) -> bool:
    """Waits until UNTIL, a time of the monotonic clock. Returns True if the run was stopped."""
    waiting = select.poll()
    if wake is not None:
        waiting.register(wake, select.POLLIN)
    while (rest := until - time.monotonic()) > 0:
        # The wait is at most an hour, because poll() accepts only a limited number of milliseconds.
        if waiting.poll(min(rest, 3600.0) * 1e3):
            return True
    return bool(waiting.poll(0))


def mark(store: ProbeStore, text: str, ts: int | None = None) -> Mark:
    """Writes a user's note about a change to the store. Raises StoreError."""
    made = Mark(time.time_ns() if ts is None else ts, text)
    store.append(made)
    return made
