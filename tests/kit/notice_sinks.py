"""Runs servers on the loopback interface that receive notices and store them: mail, HTTP and syslog."""

from __future__ import annotations

import base64
import contextlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class MailSink:
    """An SMTP server (RFC 5321). ANSWERS: verb -> answer that replaces the usual one; after `hang` the server
    sends none."""

    answers: dict[str, str] = field(default_factory=dict)
    mails: list[tuple[str, list[str], bytes]] = field(default_factory=list)
    """Sender, recipients, content."""
    logins: list[bytes] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)
    address: str = ""
    tls: ssl.SSLContext | None = None
    """If set, it offers STARTTLS, and AUTH after it."""
    gone: threading.Event = field(default_factory=threading.Event)


class _Smtp(socketserver.StreamRequestHandler):
    sink: MailSink

    def handle(self) -> None:
        self.sender, self.to = "", []
        self.say("220 sink ESMTP")
        with contextlib.suppress(ConnectionError):
            while (line := self.rfile.readline()) and self.command(line.decode().strip()):
                pass

    def command(self, line: str) -> bool:
        """Answers one command. Returns `False` if the connection must end."""
        verb = line.split(" ")[0].upper()
        self.sink.verbs.append(verb)
        other = self.sink.answers.get(verb)
        if other == "hang":
            self.sink.gone.wait(20)
            return False
        if other:
            self.say(other)
        elif verb == "EHLO":
            is_safe = isinstance(self.connection, ssl.SSLSocket)
            offers = "AUTH PLAIN" if is_safe else "STARTTLS" if self.sink.tls else "8BITMIME"
            self.say(f"250-sink\r\n250 {offers}")
        elif verb == "STARTTLS" and self.sink.tls:
            self.say("220 go on")
            return self.secured()
        elif verb == "AUTH":
            self.sink.logins.append(base64.b64decode(line.split(" ")[2]))
            self.say("235 welcome")
        elif verb == "MAIL":
            self.sender, self.to = line.partition("<")[2].partition(">")[0], []
            self.say("250 ok")
        elif verb == "RCPT":
            self.to.append(line.partition("<")[2].partition(">")[0])
            self.say("250 ok")
        elif verb == "DATA":
            self.say("354 go on")
            self.sink.mails.append((self.sender, self.to, self.data()))
            self.say("250 taken")
        elif verb in ("RSET", "NOOP"):
            self.say("250 ok")
        else:
            self.say("221 bye" if verb == "QUIT" else "502 not known")
        return verb != "QUIT"

    def secured(self) -> bool:
        """Starts TLS. Returns `False` if the client does not trust the certificate."""
        assert self.sink.tls
        try:
            self.connection = self.sink.tls.wrap_socket(self.connection, server_side=True)
        except (ssl.SSLError, OSError):
            return False
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        return True

    def data(self) -> bytes:
        found = b""
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            found += line[1:] if line.startswith(b"..") else line
        return found

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextlib.contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True


@contextlib.contextmanager
def mail_sink(**answers: str) -> Iterator[MailSink]:
    sink = MailSink(answers)
    server = _Threads(("127.0.0.1", 0), type("Handler", (_Smtp,), {"sink": sink}))
    sink.address = f"127.0.0.1:{server.server_address[1]}"
    with _serving(server):
        yield sink
        sink.gone.set()


@dataclass
class WebSink:
    """An HTTP server that answers every request with STATUS."""

    status: int = 204
    location: str = ""
    posts: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    """Path, headers (names in lower case), body."""
    url: str = ""


@contextlib.contextmanager
def web_sink() -> Iterator[WebSink]:
    sink = WebSink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            sink.posts.append((self.path, headers, self.rfile.read(length)))
            self.send_response(sink.status)
            if sink.location:
                self.send_header("Location", sink.location)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *given: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sink.url = f"http://127.0.0.1:{server.server_address[1]}"
    with _serving(server):
        yield sink


@contextlib.contextmanager
def syslog_sink(path: Path | None = None) -> Iterator[tuple[str, socket.socket]]:
    """Yields the sink's address in the form of the settings, and its socket: a Unix socket if a path is
    given, else UDP."""
    with socket.socket(socket.AF_UNIX if path else socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(str(path) if path else ("127.0.0.1", 0))
        made.settimeout(10)
        yield (str(path) if path else f"127.0.0.1:{made.getsockname()[1]}"), made
