"""Stores what agents send, pushed or pulled. Few threads process the data, each sender has a budget, and the
data is synced to the disk before the agent is notified."""

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
    """Stores samples for one event loop."""

    def __init__(self, collector: Collector, limits: AgentLimits, takers: int, memory: int) -> None:
        """TAKERS: number of threads; more do not make one store faster, and each would use memory. MEMORY:
        total size of the bodies held at a time; one sender may use a quarter."""
        self._collector = collector
        self._budgets = Budgets(limits, time.monotonic)
        self._takers = CapacityLimiter(takers)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._safe = _Together(collector.sync)
        self.room = Room(memory)

    def refuse(self, refusal: Refusal, host: str = "") -> None:
        """Counts a refusal."""
        self._collector.refuse(refusal, host)

    async def keep(
        self,
        body: bytes,
        sender: str,
        host: str | None = None,
        is_limited: bool = True,
        sent: int | None = None,
    ) -> MonitorTaken | Refusal:
        """Stores frames and waits until they are synced. HOST: accept frames of this machine only. SENT: the
        agent's clock when it sent them. If a frame is refused, or the sender exceeds its budget, the frames
        before it are stored. Raises StoreError."""
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
        """The lock of a sender, so that one sender can't occupy all threads or use its budget twice. It is
        removed when no request waits for it."""
        turn = self._turns.get(sender) or asyncio.Lock()
        self._turns[sender] = turn
        return turn


class Room:
    """The memory for bodies. It is reserved as bytes arrive and not by the announced size, so a client that
    sends nothing reserves nothing."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._share = size // 4
        self._taken: defaultdict[str, int] = defaultdict(int)

    @contextmanager
    def some(self, sender: str) -> Iterator[Callable[[int], bool]]:
        """Gives a function that reserves a number of bytes. It returns False if they are not available, or if
        the sender would exceed its share. All bytes are released at the end."""
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
        """Returns whether this number of bytes would exceed the sender's share."""
        return self._taken.get(sender, 0) + length > self._share


class _Together:
    """Combines calls: one call serves all requests that are waiting when it begins. For example, one sync of
    the disk serves many requests."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Waits for the end of a call that begins after now. Raises the call's exception."""
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
                # All exceptions are passed on, because otherwise the waiting requests would wait forever.
                error = failed
            for one in served:
                if not one.done():
                    one.set_exception(error) if error else one.set_result(None)
