"""Pulls the samples of one agent over HTTP. The caller limits the time and the memory of a response.
Redirects are not followed, because the token would be sent to the new address."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

import h11

from iodock.centre.monitor.targets import Target
from iodock.centre.portal.keeper import SENT, sent_of
from iodock.shared.errors import AnswerError

PATH = "/api/v1/samples"
TYPE = b"application/x-iodock-samples"
LONGEST_BYTES = 16 << 20
"""Size of a response: the longest frame fits."""
_LONGEST_HEAD = 16 << 10
_PIECE = 64 << 10
_COMPLAINT = 200


@dataclass(frozen=True)
class Known:
    """Describes the data of an agent that the collector has stored. The collector sends this description to
    the agent with the next request."""

    spool: str = ""
    kept: int = 0
    full: bool = False
    refused: bool = False
    """Whether the collector will never accept the batch after `kept`."""

    def encoded(self) -> bytes:
        """Formats the description as the JSON that the agent expects."""
        if not self.spool:
            return b"{}"
        said = {"spool": self.spool, "kept": self.kept, "full": self.full, "refused": self.refused}
        return json.dumps(said).encode()


@dataclass(frozen=True)
class Pull:
    """The response of an agent to one request."""

    host: str
    spool: str
    has_more: bool
    frames: bytes = field(repr=False)
    sent: int | None = None
    """The agent's clock when it sent the response, ns since the epoch. Older agents do not send it."""


class NoRoom(Exception):
    """Says that the collector does not have enough memory for the response at the moment. This is not an
    error of the agent."""


class Asking:
    """A connection to one agent."""

    def __init__(self, target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._target, self._reader, self._writer = target, reader, writer
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)

    @classmethod
    async def begin(cls, target: Target, address: str, trust: ssl.SSLContext | None) -> Asking:
        """Connects to an agent at ADDRESS, which is one of the IP addresses of the target's name. Raises
        OSError, ssl.SSLError."""
        reader, writer = await asyncio.open_connection(
            address, target.port, ssl=trust, server_hostname=target.host if trust else None
        )
        return cls(target, reader, writer)

    def end(self) -> None:
        """Closes the connection without waiting for the agent."""
        self._writer.transport.abort()

    async def ask(self, known: Known, bearer: str | None, room: Callable[[int], bool]) -> Pull:
        """Requests samples. KNOWN describes the data that the collector has. ROOM is a function that reserves
        memory. Raises AnswerError for an invalid response, NoRoom, OSError."""
        body = known.encoded()
        headers = [
            ("Host", self._target.authority), ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))), ("User-Agent", "iodock"),
        ]  # fmt: skip
        headers += [("Authorization", f"Bearer {bearer}")] if bearer else []
        sent = [h11.Request(method="POST", target=PATH, headers=headers), h11.Data(body), h11.EndOfMessage()]
        self._writer.write(b"".join(self._state.send(event) or b"" for event in sent))
        await self._writer.drain()
        try:
            head, frames = await self._answer(room)
            self._state.start_next_cycle()
        except h11.ProtocolError as error:
            raise AnswerError(f"the reply is not from an agent: {error}") from error
        return _pull(head, frames)

    async def _answer(self, room: Callable[[int], bool]) -> tuple[h11.Response, bytes]:
        head = None
        pieces = bytearray()
        while True:
            event = self._state.next_event()
            if event is h11.NEED_DATA:
                self._state.receive_data(await self._reader.read(_PIECE))
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                if len(pieces) + len(event.data) > LONGEST_BYTES:
                    raise AnswerError(f"an answer of more than {LONGEST_BYTES} bytes")
                if not room(len(event.data)):
                    raise NoRoom
                pieces += event.data
            elif isinstance(event, h11.EndOfMessage) and head:
                return head, bytes(pieces)
            elif not isinstance(event, h11.InformationalResponse):
                raise AnswerError("the connection was closed")


def _pull(head: h11.Response, frames: bytes) -> Pull:
    if head.status_code != 200:
        why = _shown(frames.decode("utf-8", "replace"))
        raise AnswerError(f"status {head.status_code}: {why}" if why else f"status {head.status_code}")
    headers = dict(head.headers)
    host = headers.get(b"iodock-host", b"").decode("utf-8", "replace")
    spool = headers.get(b"iodock-spool", b"").decode("ascii", "replace")
    if headers.get(b"content-type") != TYPE or not host or not _is_spool(spool):
        raise AnswerError("the reply is not from an agent with --serve-spool")
    said = headers.get(SENT.encode())
    try:
        sent = sent_of(said.decode("ascii", "replace") if said is not None else None)
    except ValueError as error:
        raise AnswerError(str(error)) from error
    return Pull(host, spool, headers.get(b"iodock-more") == b"yes", frames, sent)


def _is_spool(text: str) -> bool:
    return len(text) == 32 and not set(text) - set("0123456789abcdef")


def _shown(text: str) -> str:
    """Returns the beginning of an agent's error message as one line of printable characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:_COMPLAINT]).strip()


async def addresses_of(target: Target) -> list[str]:
    """Looks up the target's name and returns its IP addresses, at least one. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))
