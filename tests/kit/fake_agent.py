"""Simulates agents that answer pulls from a list of frames, correctly or not."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

SPOOL = b"S" * 16
TYPE = "application/x-iodock-samples"


class FakeAgent(ThreadingHTTPServer):
    """An agent that sends the FRAMES (number, bytes) that the collector did not acknowledge, at most MOST in
    one answer."""

    daemon_threads = True

    def __init__(self, host: str, frames: list[tuple[int, bytes]], most: int = 2, token: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.host, self.frames, self.most, self.token = host, frames, most, token
        self.asked: list[dict[str, Any]] = []
        self.set_aside: list[int] = []
        self.clock_ns: int | None = None
        """How far its clock is ahead; None: it does not send its clock."""
        self.more = ""
        """A false answer to send instead."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, said: dict[str, Any]) -> tuple[bytes, str]:
        self.asked.append(said)
        if said.get("spool") == SPOOL.hex():
            self.frames = [one for one in self.frames if one[0] > said["kept"]]
            if said["refused"] and self.frames:
                self.set_aside.append(self.frames.pop(0)[0])
        given = self.frames[: self.most]
        more = self.more or ("yes" if len(self.frames) > len(given) else "no")
        return b"".join(frame for _, frame in given), more


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeAgent
    log_message: ClassVar[Any] = lambda *words: None

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        allowed = f"Bearer {self.server.token}" if self.server.token else None
        if self.path != "/api/v1/samples" or self.headers["Authorization"] != allowed:
            self.send_response(401)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"\x1b[no")
            return
        frames, more = self.server.answer(json.loads(body))
        self.send_response(200)
        for name, value in head(self.server.host, more, len(frames)).items():
            self.send_header(name, value)
        if self.server.clock_ns is not None:
            self.send_header("Iodock-Time", str(time.time_ns() + self.server.clock_ns))
        self.end_headers()
        self.wfile.write(frames)


def head(host: str, more: str, length: int) -> dict[str, str]:
    """Returns the headers of an agent's answer."""
    return {
        "Content-Type": TYPE, "Content-Length": str(length),
        "Iodock-Host": host, "Iodock-Spool": SPOOL.hex(), "Iodock-More": more,
    }  # fmt: skip


@contextmanager
def answering(*agents: FakeAgent) -> Iterator[None]:
    """Runs the agents in threads until the context ends."""
    threads = [threading.Thread(target=agent.serve_forever, args=(0.05,), daemon=True) for agent in agents]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for agent in agents:
            agent.shutdown()
            agent.server_close()


def raw_head(host: str, length: int) -> bytes:
    lines = [f"{name}: {value}" for name, value in head(host, "no", length).items()]
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode()


BAD = {
    "silent": (b"", False),
    "no http": (b"\x16\x03\x01 what?\r\n\r\n", False),
    "a head without an end": (b"HTTP/1.1 200 OK\r\nX: ", True),
    "promises too much": (raw_head("bad", 1 << 40), True),
    "breaks off": (raw_head("bad", 100) + b"IODOCS", False),
    "redirects": (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n", False),
    "another service": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
    "pieces without an end": (
        raw_head("bad", 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"10000\r\n", True,
    ),
}  # fmt: skip
"""The immediate answer, and whether bytes follow for ever."""


@contextmanager
def misbehaving(sent: bytes, floods: bool) -> Iterator[str]:
    """Starts a server that sends SENT to every client and, if it FLOODS, endless further bytes. Yields its
    address."""
    door = socket.create_server(("127.0.0.1", 0))
    end = threading.Event()

    def one(stream: socket.socket) -> None:
        with stream:
            try:
                stream.sendall(sent)
                while floods and not end.is_set():
                    stream.sendall(b"x" * 65536)
                if not sent:
                    end.wait(120)
                stream.shutdown(socket.SHUT_WR)
                end.wait(0.2)
            except OSError:
                time.sleep(0)

    def serve() -> None:
        while True:
            try:
                stream, _ = door.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(stream,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        end.set()
        door.shutdown(socket.SHUT_RDWR)
        door.close()
