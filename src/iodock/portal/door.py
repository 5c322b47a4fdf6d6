"""Where agents push their samples: `POST /api/v1/samples`.

A request that is too long, drips, or is no push costs itself only. 200 says that all is on the disk, 400
that it will never be taken, 503 that the collector can't keep it now: try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from iodock.errors import RequestError, StoreError
from iodock.monitor.access import Access
from iodock.monitor.collector import Collector

LONGEST_BYTES = 16 << 20
"""Of a request: the longest frame fits."""
TYPE = "application/x-iodock-samples"
"""A page in a browser can't send it without being asked first whether it may."""
TAKERS = 4
"""Threads that take pushes: one store gains nothing by more, and each would keep memory of its own."""
PATIENCE_S = 60.0
"""For a request to be here."""
AT_ONCE_BYTES = 256 << 20
"""Of requests that are held in memory."""


class Door:
    """Takes pushes."""

    def __init__(self, collector: Collector, access: Access) -> None:
        self._collector = collector
        self._access = access
        self._room = _Room(AT_ONCE_BYTES)
        self._safe = _Together(collector.sync)
        self._takers = CapacityLimiter(TAKERS)

    async def push(self, request: Request) -> Response:
        """Answers one request."""
        address = request.client.host if request.client else ""
        visitor = self._access.visitor(dict(request.headers), address)
        if visitor is None:
            return _refusal(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        if not self._access.may_push(visitor):
            return _refusal(403, "this token may not push samples")
        if request.headers.get("content-type") != TYPE:
            return _refusal(415, f"a push is {TYPE}")
        length = int_or_none(request.headers.get("content-length"))
        if length is None:
            return _refusal(411, "a push has a content-length")
        if length > LONGEST_BYTES:
            return _refusal(413, f"at most {LONGEST_BYTES} bytes a push")
        with self._room.some() as room:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    body = await _body(request, room)
            except TimeoutError:
                return _refusal(408, f"not here after {PATIENCE_S:.0f} s")
            except ClientDisconnect:
                return _refusal(400, "the sender went away")
            if body is None:
                return _refusal(503, "too many at once", {"Retry-After": "10"})
            return await self._keep(body)

    async def _keep(self, body: bytes) -> Response:
        try:
            kept, full = await to_thread.run_sync(self._collector.take, body, limiter=self._takers)
            await self._safe.wait()
        except RequestError as error:
            return _refusal(400, str(error))
        except StoreError:
            # Which path of the collector is full is nobody else's business; its own log says it.
            return _refusal(503, "it can't be kept now", {"Retry-After": "10"})
        return JSONResponse({"kept": kept, "full": full})


class _Room:
    """Memory for requests: what has come, not what was promised, so that who sends nothing takes nothing."""

    def __init__(self, size: int) -> None:
        self._left = size

    @contextmanager
    def some(self) -> Iterator[Callable[[int], bool]]:
        """Gives a function that takes so many bytes more, if there are; all are given back."""
        taken = 0

        def more(length: int) -> bool:
            nonlocal taken
            if length > self._left:
                return False
            self._left -= length
            taken += length
            return True

        try:
            yield more
        finally:
            self._left += taken


async def _body(request: Request, room: Callable[[int], bool]) -> bytes | None:
    """None: there is no room."""
    pieces = bytearray()
    async for piece in request.stream():
        if not room(len(piece)):
            return None
        pieces += piece
    return bytes(pieces)


class _Together:
    """A call that serves all who wait when it begins: one sync of the disk for many pushes."""

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
            error: StoreError | None = None
            try:
                await run_in_threadpool(self._call)
            except StoreError as failed:
                error = failed
            for one in served:
                if not one.done():
                    one.set_exception(error) if error else one.set_result(None)


def int_or_none(text: str | None) -> int | None:
    """A header's whole number, if it is one."""
    return int(text) if text and text.isdecimal() and len(text) < 20 else None


def _refusal(status: int, why: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": why}, status, headers)
