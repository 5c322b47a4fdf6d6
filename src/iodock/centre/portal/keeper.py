"""The one way into the store for what agents send, pushed or pulled: taken by few threads, within each
sender's budget, and on the disk before anybody is told that it is kept."""

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
"""The header in which an agent says what its clock shows as it sends, ns since the epoch."""


def sent_of(text: str | None) -> int | None:
    """What the header says. Agents of before have none. Raises ValueError: it is no time."""
    if text is None:
        return None
    if not text.isascii() or not text.removeprefix("-").isdecimal() or len(text) > 20:
        raise ValueError(f"{SENT} is not in ns since the epoch")
    return max(-(1 << 63), min(int(text), (1 << 63) - 1))


class Keeper:
    """Of one event loop."""

    def __init__(self, collector: Collector, limits: AgentLimits, takers: int, memory: int) -> None:
        """TAKERS: threads; one store gains nothing by many, and each would keep memory of its own. MEMORY:
        bytes of bodies that are held at once; one sender's share is a quarter."""
        self._collector = collector
        self._budgets = Budgets(limits, time.monotonic)
        self._takers = CapacityLimiter(takers)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._safe = _Together(collector.sync)
        self.room = Room(memory)

    def refuse(self, refusal: Refusal, host: str = "") -> None:
        """Counts it."""
        self._collector.refuse(refusal, host)

    async def keep(
        self,
        body: bytes,
        sender: str,
        host: str | None = None,
        is_limited: bool = True,
        sent: int | None = None,
    ) -> MonitorTaken | Refusal:
        """Takes frames, of machine HOST only if it is given, and waits until they are safe. SENT: the agent's
        clock as it sent them. Of what is refused in the middle, and of more than the sender may send at once,
        the frames before it are kept. Raises StoreError."""
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
        """One sender does not take all threads, nor its budget twice. Forgotten when nobody waits for it."""
        turn = self._turns.get(sender) or asyncio.Lock()
        self._turns[sender] = turn
        return turn


class Room:
    """Memory for bodies: what has come, not what was promised, so that who sends nothing takes nothing."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._share = size // 4
        self._taken: defaultdict[str, int] = defaultdict(int)

    @contextmanager
    def some(self, sender: str) -> Iterator[Callable[[int], bool]]:
        """Gives a function that takes so many bytes more, if there are and the sender has not too much; all
        are given back."""
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
        """Would it hold more than its share with so many bytes more?"""
        return self._taken.get(sender, 0) + length > self._share


class _Together:
    """A call that serves all who wait when it begins: one sync of the disk for many."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Until a call that began after now has ended. Raises what it raises."""
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
                # Whatever it is: who waits must not wait for ever.
                error = failed
            for one in served:
                if not one.done():
                    one.set_exception(error) if error else one.set_result(None)
