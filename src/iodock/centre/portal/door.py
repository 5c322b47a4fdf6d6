"""Receives samples that agents push: `POST /api/v1/samples`.

A request that is too long, too slow or not a push does not affect other requests. The status of a response
means: 200: all data is on the disk; 400: the data will never be accepted; 403: the token does not allow the
push; 429: the sender sends more than a machine needs; 503: the collector can't store the data now, and the
agent should try again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from iodock.centre.monitor.access import Access, Visitor
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.limits import Refusal, sender_of
from iodock.centre.portal.keeper import SENT, Keeper, sent_of
from iodock.shared.errors import StoreError
from iodock.shared.settings import AgentLimits

LONGEST_BYTES = 16 << 20
"""Largest size of a request: the longest frame fits."""
TYPE = "application/x-iodock-samples"
"""Content type of pushes. A web page can't send this type to another site without a preflight request."""
TAKERS = 4
"""Number of threads that process pushes. More threads do not make one store faster, and each would use
memory."""
PATIENCE_S = 60.0
"""Time within which a request must arrive."""
AT_ONCE_BYTES = 256 << 20
"""Total size of the requests that are held in memory."""
RETRY_AFTER_S = 10


class Door:
    """Receives the samples that agents push."""

    def __init__(self, collector: Collector, access: Access, limits: AgentLimits | None = None) -> None:
        self._access = access
        self._keeper = Keeper(collector, limits or AgentLimits(), TAKERS, AT_ONCE_BYTES)

    async def push(self, request: Request) -> Response:
        """Answers one push."""
        headers, address = dict(request.headers), request.client.host if request.client else ""
        visitor = self._access.visitor(headers, address)
        if visitor is None:
            return _refusal(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        if not self._access.may_push(visitor):
            return _refusal(403, "this token may not push samples")
        if request.headers.get("content-type") != TYPE:
            return _refusal(415, f"a push is {TYPE}")
        length = int_or_none(request.headers.get("content-length"))
        if length is None:
            return _refusal(411, "a push needs a content-length")
        try:
            sent = sent_of(request.headers.get(SENT))
        except ValueError as error:
            return _refusal(400, str(error))
        sender = sender_of(visitor.name, self._access.origin(headers, address))
        if length > LONGEST_BYTES:
            self._keeper.refuse(Refusal(sender, "an oversized push"), visitor.host)
            return _refusal(413, f"at most {LONGEST_BYTES} bytes a push")
        with self._keeper.room.some(sender) as room:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    body = await _body(request, room)
            except TimeoutError:
                return _refusal(408, f"not here after {PATIENCE_S:.0f} s")
            except ClientDisconnect:
                return _refusal(400, "the sender went away")
            if body is None and self._keeper.room.is_greedy(sender, length):
                refusal = Refusal(sender, "too many pushes at once", RETRY_AFTER_S)
                self._keeper.refuse(refusal, visitor.host)
                return _too_fast(refusal)
            if body is None:
                return _refusal(503, "too many at once", {"Retry-After": f"{RETRY_AFTER_S}"})
            return await self._keep(body, sender, visitor, sent)

    async def _keep(self, body: bytes, sender: str, visitor: Visitor, sent: int | None) -> Response:
        # Without authentication all agents on this machine have the same name and address and count as one
        # sender. One budget would be too small for all of them, so the data is not limited.
        is_limited = not self._access.is_open
        try:
            taken = await self._keeper.keep(body, sender, visitor.host or None, is_limited, sent)
        except StoreError:
            # The collector's log has the reason, such as the path of a full disk. The agent does not need to
            # know it.
            return _refusal(
                503, "the data can't be stored at the moment", {"Retry-After": f"{RETRY_AFTER_S}"}
            )
        if isinstance(taken, Refusal):
            return _too_fast(taken)
        if taken.refused:
            # An agent discards a batch after status 400. If only the machine's name is refused, another token
            # may allow the batch, so the status is 403.
            return _refusal(403 if taken.is_name_refused else 400, taken.refused)
        return JSONResponse({"kept": taken.kept, "full": taken.full})


async def _body(request: Request, room: Callable[[int], bool]) -> bytes | None:
    """Reads the body of a request. Returns None if ROOM can't reserve memory for it."""
    pieces = bytearray()
    async for piece in request.stream():
        if not room(len(piece)):
            return None
        pieces += piece
    return bytes(pieces)


def int_or_none(text: str | None) -> int | None:
    """Returns the value of a header as an integer, or None if it is not a number of less than 20 digits."""
    return int(text) if text and text.isdecimal() and len(text) < 20 else None


def _too_fast(refusal: Refusal) -> Response:
    wait = math.ceil(refusal.wait_s)
    return _refusal(429, f"{refusal.why}; come again in {wait} s", {"Retry-After": f"{wait}"})


def _refusal(status: int, why: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": why}, status, headers)
