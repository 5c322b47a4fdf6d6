"""Builds the collector's web applications and runs the server."""

from __future__ import annotations

import ipaddress
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from iodock.centre.monitor.access import Access
from iodock.centre.monitor.collector import Collector
from iodock.centre.portal.connections import InPieces, Listener, OpenConnections, protocol, raise_open_files
from iodock.centre.portal.door import Door
from iodock.centre.portal.metrics import Metrics
from iodock.centre.portal.pages import Pages
from iodock.centre.portal.shown.page import Site
from iodock.centre.store import MonitorTables
from iodock.shared.errors import RequestError
from iodock.shared.settings import AgentLimits, ConnectionLimits

_GRACE_S = 5
"""When the collector is stopped, requests in progress have this time to finish."""


@dataclass(frozen=True)
class Tls:
    """Files for TLS. If `client_ca` is given, clients must present a certificate that this authority
    signed."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


def application(
    collector: Collector,
    access: Access,
    site: Site | None = None,
    limits: AgentLimits | None = None,
    places: OpenConnections | None = None,
) -> Starlette:
    """Returns the application of a collector. It has the portal's pages, the address to which agents push
    samples, and the collector's own metrics."""
    responder = site.responder if site else None
    metrics = Metrics(collector.store, access, time.time_ns, collector, places, responder)
    door = Door(collector, access, limits)

    async def push(request: Request) -> Response:
        response = await door.push(request)
        metrics.pushes.labels(str(response.status_code)).inc()
        return response

    more = [Route("/api/v1/samples", push, methods=["POST"]), Route("/metrics", metrics.answer)]
    return _application(collector.store, access, site, more)


def reading(
    store: MonitorTables, access: Access, site: Site | None = None, places: OpenConnections | None = None
) -> Starlette:
    """Returns an application that has only the pages and metrics of its own. Another program collects the
    data in STORE."""
    metrics = Metrics(store, access, time.time_ns, None, places)
    return _application(store, access, site, [Route("/metrics", metrics.answer)])


def _application(store: MonitorTables, access: Access, site: Site | None, more: Sequence[Route]) -> Starlette:
    pages = Pages(store, access, site)
    routes = [*more, Route("/healthz", _healthy), *pages.routes()]
    # Without authentication every request from this machine is accepted. Another site could make its name
    # resolve to 127.0.0.1, so that its page in a browser on this machine reads the portal. Such requests have
    # the site's name in the Host header and are rejected.
    hosts = ["127.0.0.1", "localhost", "[::1]"] if access.is_open else ["*"]
    return Starlette(
        routes=routes,
        middleware=[Middleware(InPieces), Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
        exception_handlers={HTTPException: pages.failed, Exception: pages.failed},
    )


async def _healthy(request: Request) -> Response:
    return PlainTextResponse("ok\n")


def listening(address: str, access: Access, tls: Tls | None) -> socket.socket:
    """Opens a listening socket at ADDRESS, which is HOST:PORT. Raises RequestError if the address is invalid
    or in use. For an address beyond the loopback interface, also raises it if no authentication is
    configured, or if tokens would be sent unencrypted."""
    host, _, port = address.rpartition(":")
    try:
        found = ipaddress.ip_address(host.strip("[]"))
        number = int(port)
        if not 0 <= number < 65_536:
            raise ValueError
    except ValueError:
        raise RequestError(f"--listen {address}: not an address and port, as 127.0.0.1:9847") from None
    if not found.is_loopback:
        _check_open_door(address, access, tls)
    try:
        family = socket.AF_INET6 if found.version == 6 else socket.AF_INET
        door = socket.create_server((str(found), number), family=family, backlog=512)
        # The head and the body of a response are sent separately. TCP_NODELAY makes the kernel send the body
        # before the client has acknowledged the head. Accepted sockets inherit this option.
        door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return door
    except OSError as error:
        raise RequestError(f"--listen {address}: {error.strerror}", "give another port") from error


def _check_open_door(address: str, access: Access, tls: Tls | None) -> None:
    if access.is_open:
        raise RequestError(
            f"--listen {address}: beyond the loopback interface, users must be authenticated",
            "create tokens for --tokens FILE with iodock monitor token; or give --proxy ADDRESS",
        )
    if access.tokens and tls is None and not access.proxies:
        raise RequestError(
            f"--listen {address}: tokens would be sent unencrypted", "--tls-cert FILE --tls-key FILE"
        )


def address_of(door: socket.socket, tls: Tls | None) -> str:
    """Returns the URL of the listening socket for agents and browsers."""
    host, port = door.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def places(limits: ConnectionLimits, access: Access) -> OpenConnections:
    """Returns a new set of open connections with these limits. Raises this process's limit of open files to
    the hard limit first."""
    return OpenConnections(limits, raise_open_files(), access.proxies)


def serve(
    app: Starlette,
    door: socket.socket,
    tls: Tls | None,
    wake: int,
    ready: Callable[[str], None],
    places: OpenConnections,
) -> None:
    """Serves requests until the descriptor WAKE is readable. Calls READY with the URL before the server
    starts. Raises RequestError if a file for TLS is invalid."""
    config = uvicorn.Config(
        app,
        http=protocol(places),
        ws="none",
        # Warnings are not logged, because uvicorn logs one for every invalid request and clients could fill
        # the log.
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
        timeout_keep_alive=max(1, round(places.limits.idle_s)),
        ssl_certfile=str(tls.certificate) if tls else None,
        ssl_keyfile=str(tls.key) if tls else None,
        ssl_ca_certs=str(tls.client_ca) if tls and tls.client_ca else None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if tls and tls.client_ca else ssl.CERT_NONE,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise RequestError(f"TLS: {error}", "--tls-cert, --tls-key and --client-ca are PEM files") from error
    ready(address_of(door, tls))
    server = uvicorn.Server(config)
    listener = Listener.of(door, places)
    # uvicorn replaces the process's signal handlers only if it runs in the main thread. Here it runs in
    # another thread, so iodock's own handlers stay in place. They make WAKE readable.
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while thread.is_alive() and not select.select([wake], [], [], 1.0)[0]:
        pass
    server.should_exit = True
    thread.join()
