"""Tests that slow senders and slow readers of the portal delay only themselves."""

from __future__ import annotations

import asyncio
import http.client
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from iodock.centre.monitor.access import Role, add_token
from iodock.centre.portal.connections import Accepted, InPieces, OpenConnections, client_of
from iodock.shared.settings import ConnectionLimits, load
from portal_site import serving

LONG = 64 << 20
"""Bytes of an answer that is too large for any socket buffer."""
OPEN_FILES = 300


async def _short(request: Request) -> Response:
    return PlainTextResponse("ok")


async def _long(request: Request) -> Response:
    return PlainTextResponse("x" * LONG)


async def _echo(request: Request) -> Response:
    return PlainTextResponse(await request.body())


_ASKED_LATE = threading.Event()


async def _late(request: Request) -> Response:
    _ASKED_LATE.set()
    await asyncio.sleep(1.5)
    return PlainTextResponse("late")


APP = InPieces(
    Starlette(
        routes=[
            Route("/", _short), Route("/long", _long), Route("/late", _late),
            Route("/echo", _echo, methods=["POST"]),
        ]
    )
)  # fmt: skip


def _connected(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def _answered(url: str, path: str = "/") -> int:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def _trickles_until_closed(connection: socket.socket, piece: bytes) -> None:
    """Sends PIECE again and again until the server closes the connection. If it never does, pytest's time
    limit ends the test."""
    connection.settimeout(0.05)
    while True:
        try:
            connection.sendall(piece)
            if connection.recv(4096) == b"":
                return
        except TimeoutError:
            continue
        except OSError:
            return


@pytest.mark.whole
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"", b"G"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: ", b"a"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTT", b"P"),
        (b"\r\n", b"\r\n"),
        (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", b"a"),
        # The server answers before the request is complete.
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", b"a"),
        (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    ],
)
def test_a_request_sent_too_slowly_is_ended(begin: bytes, piece: bytes) -> None:
    limits = ConnectionLimits(head_s=0.5, request_s=0.5, idle_s=60)
    with serving(APP, limits) as url:
        connection = _connected(url)
        connection.sendall(begin)
        _trickles_until_closed(connection, piece)
        assert _answered(url) == 200


@pytest.mark.whole
def test_a_client_that_does_not_read_is_ended() -> None:
    with serving(APP, ConnectionLimits(answer_s=0.5)) as url:
        connection = _connected(url)
        connection.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(2)
        read = 0
        try:
            while piece := connection.recv(1 << 20):
                read += len(piece)
        except OSError:
            pass
        assert read < LONG


@pytest.mark.whole
def test_a_client_that_reads_gets_the_complete_answer() -> None:
    with serving(APP, ConnectionLimits(head_s=0.5, request_s=0.5, answer_s=1)) as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        for _ in range(2):
            connection.request("GET", "/long")
            assert len(connection.getresponse().read()) == LONG
        # The connection may be idle for longer than a client may take to send a header, and the answer may
        # take longer than a request.
        time.sleep(1)
        connection.request("GET", "/late")
        assert connection.getresponse().read() == b"late"


@pytest.mark.whole
def test_at_its_limit_an_address_loses_its_oldest_idle_connection() -> None:
    with serving(APP, ConnectionLimits(at_once_per_address=8)) as url:
        late = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        _ASKED_LATE.clear()
        late.request("GET", "/late")
        assert _ASKED_LATE.wait(30)
        silent = [_connected(url) for _ in range(30)]
        assert _answered(url) == 200
        assert late.getresponse().read() == b"late"
        silent[0].settimeout(30)
        assert silent[0].recv(1) == b""


def _connection(places: OpenConnections, host: str, port: int) -> Accepted | None:
    made = Accepted(socket.AF_INET, socket.SOCK_STREAM)
    if places.enter(made, (host, port)):
        return made
    made.close()
    return None


@pytest.mark.whole
def test_the_total_limit_closes_connections_of_the_address_with_most() -> None:
    async def run() -> None:
        places = OpenConnections(ConnectionLimits(at_once=10), open_files=4096)
        greedy = [_connection(places, "192.0.2.1", port) for port in range(1, 9)]
        modest = [_connection(places, f"192.0.2.{number}", 1) for number in (2, 3)]
        more = _connection(places, "192.0.2.4", 1)
        assert more and len(places) == 10 and places.closed == {"made-room": 1}
        places.wait(modest[0].address)  # type: ignore[union-attr]
        for one in [*greedy, *modest, more]:
            if one:
                places.answer(one.address)
        assert _connection(places, "192.0.2.5", 1) is None, "all are being answered"
        more.close()
        last = _connection(places, "192.0.2.5", 1)
        assert last
        for one in [*greedy, *modest, last]:
            if one:
                one.close()
        assert len(places) == 0

    asyncio.run(run())


def test_a_proxy_has_no_limit_per_address() -> None:
    async def run() -> None:
        places = OpenConnections(
            ConnectionLimits(at_once_per_address=2), open_files=4096, proxies=frozenset({"192.0.2.9"})
        )
        made = [_connection(places, "192.0.2.9", port) for port in range(1, 6)]
        assert all(made) and len(places) == 5
        for one in made:
            if one:
                one.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_an_ipv6_network_counts_as_one_address(one: str, other: str, same: bool) -> None:
    assert (client_of(one) == client_of(other)) is same


def test_limits_of_connections_can_be_configured(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[connections]\nat_once_per_address = 9\nhead_s = 2.5\n")
    assert load(path).connections == ConnectionLimits(at_once_per_address=9, head_s=2.5)


@contextmanager
def _served_with_tls(folder: Path) -> Iterator[tuple[int, ssl.SSLContext, str]]:
    """Runs a collector whose soft limit of open files is 128 and whose hard limit is OPEN_FILES."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "ca.pem",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    token = add_token(folder / "tokens.toml", "ops", Role.OPERATOR)
    process = subprocess.Popen(
        [sys.executable, "-m", "iodock", "monitor", "serve", "--store", "store", "--listen", "127.0.0.1:0",
         "--tokens", "tokens.toml", "--tls-cert", "ca.pem", "--tls-key", "key.pem"],
        cwd=folder, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, OPEN_FILES)),
    )  # fmt: skip
    try:
        assert process.stderr
        port = int(process.stderr.readline().rpartition(":")[2])
        yield port, ssl.create_default_context(cafile=str(folder / "ca.pem")), token
    finally:
        process.terminate()
        _, told = process.communicate(timeout=60)
        assert "Traceback" not in told, told


def _raw(port: int, trust: ssl.SSLContext) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def _sending(text: bytes) -> Callable[[int, ssl.SSLContext], socket.socket]:
    def begin(port: int, trust: ssl.SSLContext) -> socket.socket:
        made = trust.wrap_socket(_raw(port, trust), server_hostname="127.0.0.1")
        made.sendall(text)
        return made

    return begin


@pytest.mark.whole
def test_hundreds_of_slow_connections_do_not_block_others(tmp_path: Path) -> None:
    """The connections are in each state in which a client can make the collector wait."""
    kinds = [
        _raw,
        _sending(b"GET / HTTP/1.1\r\nHost: x\r\nA: "),
        _sending(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\n\r\ntoken="),
        _sending(b"POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\n\r\na"),
        _sending(b"GET /static/portal.css HTTP/1.1\r\nHost: x\r\n\r\n" * 40),
    ]
    with _served_with_tls(tmp_path) as (port, trust, token):
        for begin in kinds:
            slow = [begin(port, trust) for _ in range(OPEN_FILES)]
            for path in ("/", "/jobs", "/healthz"):
                connection = http.client.HTTPSConnection("127.0.0.1", port, context=trust, timeout=30)
                connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
                assert connection.getresponse().status == 200
                connection.close()
            for one in slow:
                one.close()
