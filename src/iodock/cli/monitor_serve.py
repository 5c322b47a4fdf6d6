"""Implements `iodock monitor serve`, which runs the collector and its portal, and `iodock monitor token`,
which creates access tokens."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.ending import told_to_end
from iodock.cli.monitor_pull import pull_options
from iodock.cli.monitor_store import StoreOptions, store_options
from iodock.cli.options import examples, quiet
from iodock.cli.streams import say
from iodock.shared.errors import RequestError, StoreError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from iodock.centre.monitor.access import Access
    from iodock.centre.monitor.collector import Collector
    from iodock.centre.monitor.rolling import Keep
    from iodock.centre.portal.app import Tls
    from iodock.centre.portal.connections import OpenConnections
    from iodock.centre.portal.puller import Pulling
    from iodock.centre.portal.shown.page import Site
    from iodock.centre.watch.responder import Responder

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    epilog=examples(
        (
            "iodock monitor serve --store /scratch/monitor",
            "iodock monitor serve --store /scratch/monitor --listen 0.0.0.0:9847 --tokens tokens.toml "
            "--tls-cert portal.pem --tls-key portal.key",
            "iodock monitor serve --store /scratch/monitor --pull https://oss01:9846 --pull-ca ca.pem "
            "--pull-token pull.token",
            "iodock monitor serve --store prometheus://127.0.0.1:9090",
        )
    )
)
@store_options(
    "folder of samples, created if it does not exist; or prometheus://HOST:PORT, which scrapes the agents"
)
@click.option(
    "--listen", default="127.0.0.1:9847", show_default=True, metavar="ADDRESS",
    help="address for agents and browsers",
)  # fmt: skip
@pull_options
@click.option(
    "--tokens",
    type=_FILE,
    metavar="FILE",
    help="file with the tokens of those who may connect: see iodock monitor token",
)
@click.option(
    "--proxy", "proxies", multiple=True, metavar="ADDRESS",
    help="trust user names from this proxy; may be given several times",
)  # fmt: skip
@click.option(
    "--user-header",
    default="X-Remote-User",
    show_default=True,
    metavar="NAME",
    help="header in which the proxy sends the user name",
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="USER",
    help=("a user of the proxy who may see all jobs"),
)
@click.option("--tls-cert", type=_FILE, metavar="FILE", help="serve https with this certificate (PEM)")
@click.option("--tls-key", type=_FILE, metavar="FILE", help="key of the certificate (PEM)")
@click.option(
    "--client-ca",
    type=_FILE,
    metavar="FILE",
    help="accept only clients with a certificate that this authority signed (PEM)",
)
@click.option(
    "--keep-fine", type=click.FloatRange(0.05), default=1, show_default=True, metavar="DAYS",
    help="how long to keep raw readings",
)  # fmt: skip
@click.option(
    "--keep-minutes", type=click.FloatRange(0.05), default=7, show_default=True, metavar="DAYS",
    help="how long to keep sums per minute",
)  # fmt: skip
@click.option(
    "--keep", type=click.FloatRange(0.05), default=400, show_default=True, metavar="DAYS",
    help="how long to keep sums per ten minutes",
)  # fmt: skip
@click.option(
    "--jobid-name",
    metavar="FORM",
    help="how the servers name jobs, as `lctl get_param jobid_name` says, e.g. %j:%u:%H; default: guessed",
)
@click.option(
    "--response", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="keep episodes, notices and the audit log of actions in this folder; default: the store's name "
         "and .response",
)  # fmt: skip
@quiet
def serve(
    store: str,
    store_token: Path | None,
    store_user: str,
    store_password: Path | None,
    store_ca: Path | None,
    listen: str,
    tokens: Path | None,
    proxies: tuple[str, ...],
    user_header: str,
    operators: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
    client_ca: Path | None,
    keep_fine: float,
    keep_minutes: float,
    keep: float,
    jobid_name: str | None,
    response: Path | None,
    pulled: Pulling | None,
    quiet: bool,
) -> None:
    """Collect the data that agents push, or pull it, and serve the portal; for a Prometheus, which
    collects by itself, serve only the portal. Ends at Ctrl-C or SIGTERM."""
    installed()
    from iodock.centre.monitor.rolling import Keep
    from iodock.centre.portal.app import listening, places
    from iodock.shared.settings import load

    place = StoreOptions(store, store_token, store_user, store_password, store_ca)
    access = _access(tokens, proxies, user_header, operators)
    tls = _tls(tls_cert, tls_key, client_ca)
    site = _site(jobid_name)
    room = places(load().connections, access)
    serving = _Serving(listening(listen, access, tls), room, access, tls, site, quiet)
    if not place.is_prometheus:
        kept = load().privacy
        names = kept.job_names_days if kept.job_names else 0
        times = Keep(keep_fine, keep_minutes, keep, names, kept.events_days)
        _collect(place, times, serving, pulled, response)
    elif pulled:
        raise RequestError("--pull: a Prometheus scrapes the agents itself", "a folder as --store")
    else:
        _read(place, serving)


@dataclass(frozen=True)
class _Serving:
    """Everything that is needed to serve the portal."""

    door: socket.socket
    places: OpenConnections
    access: Access
    tls: Tls | None
    site: Site
    is_quiet: bool

    def tell(self, line: str) -> None:
        """Prints a line. With --quiet only errors are printed."""
        if not self.is_quiet or line.startswith("error: "):
            say(line)

    def until(self, wake: int, app: Starlette) -> None:
        from iodock.centre.portal.app import serve

        serve(app, self.door, self.tls, wake, lambda url: self.tell(f"note: {url}"), self.places)


def _read(place: StoreOptions, serving: _Serving) -> None:
    """Serves the portal for a store in Prometheus. This process only reads the store."""
    from iodock.centre.portal.app import reading

    app = reading(place.prometheus(), serving.access, serving.site, serving.places)
    with told_to_end() as wake:
        serving.until(wake, app)


_M_ARENA_MAX = -8
"""See mallopt(3)."""


def _few_arenas() -> None:
    """Limits the number of glibc's heaps (arenas). By default, glibc gives each thread a heap of its own,
    whose freed memory other threads can't use. A collector that receives data in several threads would then
    grow for hours."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _collect(
    place: StoreOptions, keep: Keep, serving: _Serving, pulled: Pulling | None, response: Path | None
) -> None:
    from iodock.centre.monitor.collector import FLUSH_EVERY_S, Collector
    from iodock.centre.portal.app import application
    from iodock.centre.portal.puller import pulling
    from iodock.centre.watch.watching import Watching
    from iodock.shared.settings import load

    limits = load().agents
    _few_arenas()
    collector = Collector(place.folder(), keep, serving.site.ids)
    collector.store.shows_job_names = serving.site.names_jobs
    batches, torn = collector.replayed
    if batches or torn:
        serving.tell(
            f"note: restored from the journal: batches {batches:,}, bytes of a truncated batch {torn:,}"
        )
    with contextlib.ExitStack() as stack:
        wake = stack.enter_context(told_to_end())
        # The watcher reads samples from files. If samples are shorter than usual, files must be written more
        # often.
        every_s = min(FLUSH_EVERY_S, serving.site.limits.sample_s / 2)
        stack.enter_context(collector.running(say, every_s))
        responder = _responder(response, place.folder(), collector, serving)
        if responder:
            stack.callback(responder.close)
            stack.enter_context(responder.running(say))
        if pulled:
            stack.enter_context(pulling(collector, pulled, limits, serving.tell))
        known = serving.site
        watching = Watching(collector.store, known.ids, known.limits, known.names_jobs)
        if responder:
            watching.listener = responder.respond
        stack.enter_context(watching.running(say))
        site = replace(serving.site, responder=responder, watching=watching)
        app = application(collector, serving.access, site, limits, serving.places)
        serving.until(wake, app)


def _responder(folder: Path | None, store: Path, collector: Collector, serving: _Serving) -> Responder | None:
    """Returns the responder, or None if its folder can't be created and no setting needs it. The folder is
    next to the store instead of inside it. Restoring a backup of the store therefore does not undo what the
    folder says about suspended jobs. Raises RequestError and StoreError."""
    from iodock.centre.watch.responder import Responder
    from iodock.centre.watch.sufferers import sufferers
    from iodock.shared.settings import load

    settings, store = load(), store.absolute()
    place = folder or store.with_name(f"{store.name}.response")
    try:
        return Responder(place, settings, time.time_ns(), sufferers(collector.store, serving.site.ids))
    except StoreError as error:
        if folder or settings.notices.to or settings.response.mode != "suggest":
            raise
        serving.tell(f"note: {error}; episodes of servers are not kept: --response DIR names a folder")
        return None


def installed() -> None:
    """Raises RequestError if a package is missing that is needed to serve pages."""
    try:
        import prometheus_client
        import starlette
        import uvicorn
    except ModuleNotFoundError as error:
        raise RequestError(
            f"{error.name} is not installed", 'install it with: pip install "iodock[monitor]"'
        ) from error
    del prometheus_client, starlette, uvicorn


def _site(jobid_name: str | None) -> Site:
    from iodock.centre.monitor.questions.ids import job_ids
    from iodock.centre.portal.shown.page import Site
    from iodock.shared.settings import load

    found = load()
    return Site(job_ids(jobid_name), found.states, found.privacy.job_names)


def _access(
    tokens: Path | None, proxies: tuple[str, ...], user_header: str, operators: tuple[str, ...]
) -> Access:
    from iodock.centre.monitor.access import Access, TokenFile

    if operators and not proxies:
        raise RequestError(
            "--operator names a user of a proxy", "--proxy ADDRESS, or a token of role operator"
        )
    file = TokenFile(tokens, _tokens_not_taken) if tokens else None
    known = file.tokens if file else None
    return Access(known, frozenset(proxies), user_header, frozenset(operators), file)


def _tokens_not_taken(error: RequestError) -> None:
    """Reports that the changed file of tokens can't be used. The message is printed even with --quiet,
    because tokens that were removed from the file are still accepted."""
    say(f"error: {error}; the tokens read before are still valid")


def _tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    from iodock.centre.portal.app import Tls

    if certificate and key:
        return Tls(certificate, key, client_ca)
    if certificate or key or client_ca:
        raise RequestError("https needs a certificate and its key", "--tls-cert FILE --tls-key FILE")
    return None


@click.command(
    epilog=examples(
        (
            "iodock monitor token --tokens tokens.toml --role agent --name compute-nodes > agents.token",
            "iodock monitor token --tokens tokens.toml --role user --user alice --name alice",
        )
    )
)
@click.option(
    "--tokens",
    required=True,
    type=_FILE,
    metavar="FILE",
    help="add the token to this file, which is created if needed",
)
@click.option(
    "--role", required=True, type=click.Choice(["agent", "user", "operator", "digest"]),
    help="agents push; users see their own jobs, operators see all jobs; digest reads all digests only",
)  # fmt: skip
@click.option(
    "--name", required=True, metavar="TEXT", help="whose token it is, a name for your own reference"
)
@click.option("--user", default="", metavar="USER", help="the login name of a user")
@click.option(
    "--host", default="", metavar="HOST", help="the only machine for which an agent may send samples"
)
def token(tokens: Path, role: str, name: str, user: str, host: str) -> None:
    "Create a token and print it. FILE holds only its SHA-256, so it can't be printed again."
    from iodock.centre.monitor.access import Role, add_token

    click.echo(add_token(tokens, name, Role(role), user, host))
