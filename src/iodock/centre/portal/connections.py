"""Manages the connections to the collector and limits how long each may keep it waiting.

A client that sends or reads slowly does not delay others. When the number of connections reaches a limit, the
collector closes the connection on which it has waited longest for the client, and accepts the new one, so new
clients can always connect unless all connections are busy. A connection whose request is being processed is
never closed to make room for another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import resource
import socket
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from iodock.shared.settings import ConnectionLimits

_RESERVED_FILES = 192
"""Number of open files that are reserved for the store, its queries, and agents that are pulled."""
_FEWEST = 16
_CLOSED_AT_ONCE = 64
"""Largest number of connections that are closed to make room before the event loop has freed their files."""
_LINGER_S = 5.0
"""If a response is sent before the request was complete, the client has this time to read it."""
_PIECE_BYTES = 64 << 10

Address = tuple[str, int]


def raise_open_files() -> int:
    """Raises this process's soft limit of open files to the hard limit. Returns the limit that applies
    then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft
    return hard


def client_of(host: str) -> str:
    """Returns the client to which an address belongs. This is the address itself, or for IPv6 its network of
    64 bits, because one machine may use all addresses of such a network."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if found.version == 4:
        return host
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))


class Accepted(socket.socket):
    """The socket of an accepted connection. Closing it frees the connection's slot."""

    places: OpenConnections | None = None
    address: Address = ("", 0)
    has_begun = False
    """Whether the protocol has begun; with TLS this is after the handshake."""

    def close(self) -> None:
        super().close()
        if self.places is not None:
            self.places.leave(self)

    def end(self) -> None:
        """Shuts the connection down in both directions. The event loop notices this in every state of the
        connection, also during a TLS handshake, and closes the socket."""
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)


class OpenConnections:
    """The open connections of one listening socket."""

    def __init__(
        self, limits: ConnectionLimits, open_files: int, proxies: frozenset[str] = frozenset()
    ) -> None:
        """OPEN_FILES is this process's limit of open files. PROXIES are addresses that represent many
        clients, so the limit per address does not apply to them."""
        self.limits = limits
        self.most = min(limits.at_once, max(_FEWEST, open_files - _RESERVED_FILES))
        self.closed: Counter[str] = Counter()
        """Number of connections that the collector ended, by reason."""
        self._proxies = frozenset(map(client_of, proxies))
        self._open: dict[Address, Accepted] = {}
        self._by_client: Counter[str] = Counter()
        self._waiting: defaultdict[str, dict[Address, Accepted]] = defaultdict(dict)
        """For each client, the connections on which the collector waits for the client, the longest wait
        first."""
        self._ending: set[Accepted] = set()
        """Connections that were ended to make room, but whose files are still open."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_behind(self) -> bool:
        """Returns whether the event loop must close ended connections before new ones are accepted."""
        return len(self._ending) >= _CLOSED_AT_ONCE

    def enter(self, connection: Accepted, address: Address) -> bool:
        """Gives the connection a slot, and closes another one to free a slot if necessary. Returns False if
        all slots are used by requests that are being processed."""
        client = client_of(address[0])
        is_many = client not in self._proxies and self._by_client[client] >= self.limits.at_once_per_address
        if is_many and not self._make_room([client]):
            self.closed["address-limit"] += 1
            return False
        if len(self._open) >= self.most:
            greediest = sorted(self._waiting, key=lambda one: len(self._waiting[one]), reverse=True)
            if not self._make_room(greediest):
                self.closed["limit"] += 1
                return False
        connection.places, connection.address = self, address
        self._open[address] = self._waiting[client][address] = connection
        self._by_client[client] += 1
        loop = asyncio.get_running_loop()
        loop.call_later(self.limits.head_s, self._check_begun, connection)
        return True

    def _make_room(self, clients: list[str]) -> bool:
        for client in clients:
            oldest = next(iter(self._waiting.get(client, {}).values()), None)
            if oldest is not None:
                self.closed["made-room"] += 1
                self.leave(oldest)
                oldest.end()
                self._ending.add(oldest)
                # If the socket is still open after this time, it is no longer counted, because otherwise it
                # would keep `is_behind` true and block new connections.
                asyncio.get_running_loop().call_later(_LINGER_S, self._ending.discard, oldest)
                return True
        return False

    def _check_begun(self, connection: Accepted) -> None:
        if not connection.has_begun and connection.fileno() >= 0:
            self.closed["handshake-deadline"] += 1
            connection.end()

    def leave(self, connection: Accepted) -> None:
        """Frees the connection's slot. Does nothing if the slot is already free."""
        self._ending.discard(connection)
        if self._open.get(connection.address) is not connection:
            return
        del self._open[connection.address]
        client = client_of(connection.address[0])
        self._by_client[client] -= 1
        if not self._by_client[client]:
            del self._by_client[client]
        self._forget_waiting(client, connection.address)

    def begun(self, address: Address) -> None:
        """Records that the protocol of a connection has begun, which is after the handshake for TLS."""
        if found := self._open.get(address):
            found.has_begun = True

    def wait(self, address: Address) -> None:
        """Records that the collector waits for the client from now on."""
        if found := self._open.get(address):
            self._forget_waiting(client_of(address[0]), address)
            self._waiting[client_of(address[0])][address] = found

    def answer(self, address: Address) -> None:
        """Records that the client waits for the collector from now on."""
        self._forget_waiting(client_of(address[0]), address)

    def _forget_waiting(self, client: str, address: Address) -> None:
        waiting = self._waiting.get(client)
        if waiting is not None:
            waiting.pop(address, None)
            if not waiting:
                del self._waiting[client]


class Listener(socket.socket):
    """A listening socket for an event loop. It gives each accepted connection a slot, or closes the
    connection if there is none."""

    places: OpenConnections

    @classmethod
    def of(cls, listening: socket.socket, places: OpenConnections) -> Listener:
        """Makes a listener from a socket and takes over its descriptor."""
        made = cls(listening.family, listening.type, listening.proto, fileno=listening.detach())
        made.places = places
        return made

    def accept(self) -> tuple[socket.socket, Any]:
        """Accepts a connection that gets a slot. Raises BlockingIOError if no connection is pending, or if
        the event loop must first close connections that were ended to make room."""
        for _ in range(_CLOSED_AT_ONCE):
            if self.places.is_behind:
                break
            plain, address = super().accept()
            accepted = Accepted(plain.family, plain.type, plain.proto, fileno=plain.detach())
            if self.places.enter(accepted, address[:2]):
                return accepted, address
            accepted.close()
        raise BlockingIOError


class Connection(H11Protocol):
    """The HTTP protocol of one connection. It sets deadlines by which the client must send the head of a
    request, send its body, and read a response."""

    def __init__(
        self,
        places: OpenConnections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._places = places
        self._address: Address = ("", 0)
        self._awaited = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._address = peer[:2] if peer else self._address
        self._places.begun(self._address)
        self._await("head", self._places.limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._await("")
        self._await_reading(0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow(has_data=True)

    def _follow(self, has_data: bool) -> None:
        """Sets a deadline when the head or the body of a request begins. Further bytes of the same part do
        not extend the deadline."""
        limits = self._places.limits
        state = self.conn.their_state
        if state is h11.IDLE and has_data and self._awaited != "head":
            self._await("head", limits.head_s)
            self._places.wait(self._address)
        elif state is h11.SEND_BODY and self._awaited not in ("body", "rest"):
            self._await("body", limits.request_s)
        elif state not in (h11.IDLE, h11.SEND_BODY):
            self._await("")
            if self.cycle is not None and not self.cycle.response_complete:
                self._places.answer(self._address)

    def on_response_complete(self) -> None:
        was_incomplete = self.conn.their_state is h11.SEND_BODY
        self._await("")
        self._places.wait(self._address)
        super().on_response_complete()
        if self.transport.is_closing():
            self._await_reading(self._places.limits.answer_s)
        elif was_incomplete:
            self._await("rest", _LINGER_S)
        else:
            self._follow(has_data=bool(self.conn.trailing_data[0]))

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        # The client may not read the rest of the last response. Without this deadline the data would stay in
        # memory forever.
        self._await_reading(_LINGER_S)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._places.wait(self._address)
        self._await_reading(self._places.limits.answer_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._await_reading(0)
        if self.cycle is not None and not self.cycle.response_complete:
            self._places.answer(self._address)

    def _await(self, what: str, seconds: float = 0) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._awaited = what
        self._deadline = self.loop.call_later(seconds, self._end, f"{what}-deadline") if what else None

    def _await_reading(self, seconds: float) -> None:
        if self._reading:
            self._reading.cancel()
        self._reading = self.loop.call_later(seconds, self._end, "answer-deadline") if seconds else None

    def _end(self, reason: str) -> None:
        self._places.closed[reason] += 1
        self.transport.abort()


def protocol(places: OpenConnections) -> Any:
    """Returns the function that uvicorn calls for each connection."""
    return partial(Connection, places)


class InPieces:
    """Wraps an application so that it sends long responses in pieces. A piece is sent only when the buffers
    have room again, so they never hold a whole response of a slow client."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            body = message.get("body", b"")
            if message["type"] != "http.response.body" or len(body) <= _PIECE_BYTES:
                await send(message)
                return
            for begin in range(0, len(body), _PIECE_BYTES):
                end = begin + _PIECE_BYTES
                has_more = message.get("more_body", False) or end < len(body)
                await send({**message, "body": body[begin:end], "more_body": has_more})

        await self._app(scope, receive, send_pieces)
