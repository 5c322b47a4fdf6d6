"""Implements `iodock monitor import-sar`, which imports sysstat's data of servers that have no agent."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from iodock.cli.options import examples, quiet
from iodock.cli.streams import say
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_json
from iodock.shared.bounded.limits import ANSWER, SECRET
from iodock.shared.errors import IodockError, RequestError

_FILE = click.Path(path_type=Path, dir_okay=False)
_PUSH_BYTES = 1 << 20
_PATIENCE_S = 60
_ADDRESS = "/api/v1/samples"

Push = Callable[[bytes], None]

Function = TypeVar("Function", bound=Callable[..., Any])
_OPTIONS = (
    click.option("--url", metavar="URL", help="push to this running collector"),
    click.option(
        "--store", "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
        help="write into this store, whose collector is not running",
    ),
    click.option(
        "--token-file", type=_FILE, metavar="FILE", help="a token that allows pushing: iodock monitor token"
    ),
    click.option("--ca", type=_FILE, metavar="FILE", help="trust the collector by this certificate (PEM)"),
    click.option("--cert", type=_FILE, metavar="FILE", help="show this certificate to the collector (PEM)"),
    click.option("--key", type=_FILE, metavar="FILE", help="key of the certificate (PEM)"),
)  # fmt: skip


def goes_to(function: Function) -> Function:
    """Adds the options for the destination of the imported data."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command(
    name="import-sar",
    epilog=examples(
        (
            "iodock monitor import-sar --url http://127.0.0.1:9847 /var/log/sysstat/sa21",
            "ssh oss07 sadf -j /var/log/sa/sa21 -- -A > oss07.json; "
            "iodock monitor import-sar --store /scratch/monitor oss07.json",
        )
    ),
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_FILE)
@goes_to
@quiet
def import_sar(
    files: tuple[Path, ...],
    url: str | None,
    folder: Path | None,
    token_file: Path | None,
    ca: Path | None,
    cert: Path | None,
    key: Path | None,
    quiet: bool,
) -> None:
    """Add sysstat's recordings of servers without an agent to the data of agents.

    FILE is the JSON output of sadf, or a binary file of sadc (saDD) that the sadf of this machine can
    read. Values that were imported before are not counted twice."""
    from iodock.centre.monitor.sar import read

    with goes(url, folder, token_file, ca, cert, key) as push:
        for path in files:
            for found in read(path):
                for frames in pushes(found.frames):
                    push(frames)
                if not quiet:
                    say(
                        f"note: {path}: {found.host}: readings {len(found.frames) - 1:,} "
                        f"from {clock(found.begin)} to {clock(found.end)}"
                    )
                for note in found.notes:
                    say(f"note: {path}: {found.host}: {note}")


def goes(
    url: str | None, folder: Path | None, token_file: Path | None, ca: Path | None, cert: Path | None,
    key: Path | None,
) -> AbstractContextManager[Push]:  # fmt: skip
    """Returns a context that yields the function `push`, which sends data to the destination. Raises
    RequestError unless exactly one destination is given."""
    if (url is None) == (folder is None):
        raise RequestError(
            "give a destination", "give either --url of a running collector, or --store of a stopped one"
        )
    return into_store(folder) if folder else to_collector(url or "", token_file, ca, cert, key)


def clock(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def pushes(frames: list[bytes]) -> Iterator[bytes]:
    """Combines frames to pieces of about 1 MiB. The data of one machine and day may be too large for a single
    request."""
    waiting: list[bytes] = []
    for frame in frames:
        if waiting and sum(map(len, waiting)) + len(frame) > _PUSH_BYTES:
            yield b"".join(waiting)
            waiting = []
        waiting.append(frame)
    yield b"".join(waiting)


@contextmanager
def into_store(folder: Path) -> Iterator[Push]:
    from iodock.centre.monitor.collector import Collector

    collector = Collector(folder)
    yield lambda frames: collector.push(frames) and None
    collector.flush()


@contextmanager
def to_collector(
    url: str, token_file: Path | None, ca: Path | None, cert: Path | None, key: Path | None
) -> Iterator[Push]:
    if not url.startswith(("http://", "https://")):
        raise RequestError(f"--url {url}: not an address", "e.g. http://127.0.0.1:9847")
    if url.startswith("http://") and not _is_loopback(url):
        raise RequestError(f"--url {url}: the token and the data could be read on their way", "https://")
    headers = {"Content-Type": "application/x-iodock-samples"}
    if token_file:
        headers["Authorization"] = f"Bearer {_token(token_file)}"
    context = _tls(ca, cert, key) if url.startswith("https://") else None

    def push(frames: bytes) -> None:
        request = urllib.request.Request(url.rstrip("/") + _ADDRESS, frames, headers)
        try:
            urllib.request.urlopen(request, timeout=_PATIENCE_S, context=context).close()
        except urllib.error.HTTPError as error:
            raise IodockError(f"{url}: the collector does not accept them: {_said(error)}") from error
        except (urllib.error.URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise IodockError(f"{url}: no collector answers: {reason}") from error

    yield push


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _token(path: Path) -> str:
    try:
        return files.text(path, SECRET).strip()
    except (OSError, ValueError) as error:
        raise RequestError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _tls(ca: Path | None, cert: Path | None, key: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca)
        if cert:
            context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise RequestError(f"--ca, --cert and --key: {error}") from error
    return context


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return f"{error.code} {from_json(error.read(ANSWER.size_bytes))['error']}"
    except (ValueError, KeyError, TypeError, OSError):
        return str(error.code)
