"""Serves a portal with a small file system, filled from handmade batches, in a thread of this process."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette

from batches import BYTES, COUNT, SESSION, Entry, Part, frame
from iodock.centre.monitor.access import Access, Role, add_token, read_tokens
from iodock.centre.monitor.collector import Collector
from iodock.centre.portal.app import application
from iodock.centre.portal.connections import Listener, OpenConnections, protocol
from iodock.centre.portal.shown.page import Site
from iodock.shared.settings import ConnectionLimits

SECOND = 1_000_000_000
TIME, SUM = 2, 3
STEPS, EVERY_S = 20, 10
OWN, OTHER = "700", "80070065"
"""The other user's id differs from all numbers on a page, so that a search cannot find it by chance."""
OWN_USER = "root"
"""User 0 exists on every machine; the other id belongs to no user."""
OTHER_ID = "1905432178"
READ, WRITTEN, OPENED = 1_000_000, 2_000_000, 30
"""The load of each node of the own job in a step; the other job has ten times as much."""


@dataclass
class Server:
    """A running portal and its collector."""

    url: str
    collector: Collector
    secrets: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, role: str = "", **headers: str) -> tuple[int, str, dict[str, str]]:
        """Requests PATH with the token of ROLE. Returns status, body and headers (names in lower case)."""
        return self.ask("GET", path, role, b"", **headers)

    def ask(
        self, method: str, path: str, role: str = "", body: bytes = b"", **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if role:
            sent["Authorization"] = f"Bearer {self.secrets[role]}"
        try:
            connection.request(method, path, body or None, sent)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, text, {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def log_in(self, role: str) -> str:
        """Logs in and returns the session's cookie."""
        form = urlencode({"token": self.secrets[role]}).encode()
        status, _, headers = self.ask("POST", "/login", "", form)
        assert status == 303
        return headers["set-cookie"]


def fill(collector: Collector, extra: list[str] | None = None, queue: int = 1, wait_us: int = 50) -> int:
    """Pushes STEPS readings, the last one half a minute ago. Returns the time of the first. EXTRA: ids of
    further jobs."""
    now = time.time_ns()
    begin = now - (STEPS * EVERY_S + 30) * SECOND
    owners = {
        f"{OWN}:0:r01": 1,
        f"{OWN}:0:r02": 1,
        f"{OTHER}:{OTHER_ID}:r03": 10,
        **dict.fromkeys(extra or [], 1),
    }
    for step in range(STEPS + 1):
        at = begin + step * EVERY_S * SECOND
        objects = [
            Entry(owner, _moved(step * factor), start=begin - SECOND, updated=at)
            for owner, factor in owners.items()
        ]
        opened = [
            Entry(owner, {("open", COUNT): step * factor * OPENED}, start=begin - SECOND, updated=at)
            for owner, factor in owners.items()
        ]
        collector.push(frame(step + 1, [Part(at, objects, full=step == 0)], spool=b"O" * 16, host="oss01"))
        metadata = Part(at, opened, "mdt_job_stats", "lfs", "lfs-MDT0000", full=step == 0)
        service = Part(at, [_service(step, queue, wait_us)], "mds_stats", "", "mdt", full=step == 0)
        collector.push(frame(step + 1, [metadata, service], spool=b"M" * 16, host="mds01"))
        node = Part(at, [_process(step)], "process_io", "", "", full=step == 0)
        collector.push(frame(step + 1, [node], spool=b"N" * 16, host="r01"))
    collector.flush()
    return begin


def _moved(times: int) -> dict[tuple[str, int], int]:
    return {
        ("read_bytes", BYTES): times * READ, ("read_bytes", COUNT): times,
        ("write_bytes", BYTES): times * WRITTEN, ("write_bytes", COUNT): times * 2,
    }  # fmt: skip


def _service(step: int, queue: int, wait_us: int) -> Entry:
    handled = step * 100
    values = {
        ("req_waittime", COUNT): handled, ("req_waittime", TIME): handled * wait_us,
        ("req_qdepth", COUNT): handled, ("req_qdepth", SUM): handled * queue,
    }  # fmt: skip
    return Entry("", values, evidence=0)


def _process(step: int) -> Entry:
    values = {("read_call", BYTES): step * 5000, ("write_call", BYTES): step * 7000}
    return Entry("", values, user=OWN_USER, evidence=SESSION)


@contextmanager
def portal(folder: Path, access: Access | None = None, site: Site | None = None) -> Iterator[Server]:
    """Serves a portal without data. Without ACCESS it needs no token, as on a personal machine."""
    collector = Collector(folder)
    with serving(application(collector, access or Access(), site)) as url:
        yield Server(url, collector)


@contextmanager
def serving(app: Starlette, limits: ConnectionLimits | None = None) -> Iterator[str]:
    """Serves APP as `iodock monitor serve` does, with these limits for connections. Yields its URL."""
    places = OpenConnections(limits or ConnectionLimits(), open_files=4096)
    listener = Listener.of(socket.create_server(("127.0.0.1", 0), backlog=512), places)
    port = listener.getsockname()[1]
    config = uvicorn.Config(
        app, http=protocol(places), ws="none", log_level="critical", lifespan="off", proxy_headers=False,
        timeout_keep_alive=round(places.limits.idle_s),
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


def with_tokens(folder: Path) -> tuple[Access, dict[str, str]]:
    """Creates one token for each role. The token of the role USER belongs to OWN_USER."""
    path = folder / "tokens.toml"
    secrets = {
        role.value: add_token(path, role.value, role, OWN_USER if role is Role.USER else "") for role in Role
    }
    return Access(read_tokens(path)), secrets
