"""Stores the data that agents send by push or pull. A few threads process the data, each sender has a budget,
and an agent gets a positive response only after its data is on the disk."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool

from iodock._native import MonitorTaken
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.limits import Budgets, Refusal
from iodock.shared.settings import AgentLimits

SENT = "iodock-time"
"""Name of the HTTP header with the agent's clock when it sent the data, ns since the epoch."""


def sent_of(text: str | None) -> int | None:
    """Parses the header `iodock-time`, which older agents do not send. Raises ValueError if it is not a
    time."""
    if text is None:
        return None
    if not text.isascii() or not text.removeprefix("-").isdecimal() or len(text) > 20:
        raise ValueError(f"{SENT} is not in ns since the epoch")
    return max(-(1 << 63), min(int(text), (1 << 63) - 1))


class Keeper:
    """Stores the samples that one event loop receives."""

    def __init__(self, collector: Collector, limits: AgentLimits, takers: int, memory: int) -> None:
        """TAKERS is the number of threads. More threads do not make one store faster, and each one uses
        memory. MEMORY is the largest total size of request bodies in memory in bytes; one sender may use a
        quarter of it."""
        self._collector = collector
        self._budgets = Budgets(limits, time.monotonic)
        self._takers = CapacityLimiter(takers)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._safe = _Together(collector.sync)
        self.room = Room(memory)

    def refuse(self, refusal: Refusal, host: str = "") -> None:
        """Counts data that was refused."""
        self._collector.refuse(refusal, host)

    async def keep(
        self,
        body: bytes,
        sender: str,
        host: str | None = None,
        is_limited: bool = True,
        sent: int | None = None,
    ) -> MonitorTaken | Refusal:
        """Stores the frames in BODY and waits until they are on the disk. If HOST is given, only frames of
        this machine are accepted. SENT is the time of the agent's clock when it sent the frames, in ns since
        the epoch. If a frame is refused or exceeds the sender's budget, the frames before it are stored.
        Raises StoreError."""
        async with self._turn(sender):
            most = self._budgets.left(sender) if is_limited else None
            if isinstance(most, Refusal):
                self.refuse(most)
                return most
            taken = await to_thread.run_sync(
                self._collector.take, body, host, most, sent, limiter=self._takers
            )
            if is_limited:
                self._budgets.spend(sender, taken.work)
        await self._safe.wait()
        if taken.refused:
            self.refuse(Refusal(sender, taken.refused), taken.host)
        return taken

    def _turn(self, sender: str) -> asyncio.Lock:
        """Returns the lock of a sender. Requests of one sender are processed one after the other, so that a
        sender can't occupy all threads, and so that a request sees the budget that the previous one left. The
        dictionary of locks is weak, so an unused lock is removed."""
        turn = self._turns.get(sender) or asyncio.Lock()
        self._turns[sender] = turn
        return turn


class Room:
    """Limits the memory for request bodies. Memory is reserved when bytes arrive and not when a request
    announces its size, so a client that sends nothing uses nothing."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._share = size // 4
        self._taken: defaultdict[str, int] = defaultdict(int)

    @contextmanager
    def some(self, sender: str) -> Iterator[Callable[[int], bool]]:
        """Provides a function that reserves a number of bytes for a sender. The function returns False if
        these bytes are not available or would exceed the sender's share. All bytes are released at the end of
        the context."""
        taken = 0

        def more(length: int) -> bool:
            nonlocal taken
            if length > self._left or self.is_greedy(sender, length):
                return False
            self._left -= length
            self._taken[sender] += length
            taken += length
            return True

        try:
            yield more
        finally:
            self._left += taken
            self._taken[sender] -= taken
            if not self._taken[sender]:
                del self._taken[sender]

    def is_greedy(self, sender: str, length: int) -> bool:
        """Returns whether LENGTH more bytes would exceed the sender's share."""
        return self._taken.get(sender, 0) + length > self._share


class _Together:
    """Runs one call, such as a sync of the disk, for all requests that are waiting when the call begins."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Waits until a call has ended that began after this function was called. Raises the call's
        exception."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        await mine

    async def _run(self) -> None:
        while self._waiting:
            served, self._waiting = self._waiting, []
            error: Exception | None = None
            try:
                await run_in_threadpool(self._call)
            except Exception as failed:
                # Any exception is passed to the waiting requests, because otherwise they would wait forever.
                error = failed
            for one in served:
                if not one.done():
                    one.set_exception(error) if error else one.set_result(None)
