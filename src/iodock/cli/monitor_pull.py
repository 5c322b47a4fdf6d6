"""Defines the option `--pull` of `iodock monitor serve`, with which the collector fetches data from agents.
Without it, agents send the data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    from iodock.centre.portal.puller import Pulling

Function = TypeVar("Function", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)
_NAMES = ("pull", "pull_list", "pull_every", "pull_token", "pull_ca", "pull_cert", "pull_key")


def pull_options(function: Function) -> Function:
    """Adds `--pull` and related options to a command. Their values are passed as one argument `pulled`, which
    is a Pulling or None."""

    @functools.wraps(function)
    def gathered(*arguments: Any, **options: Any) -> Any:
        options["pulled"] = _pulling(*(options.pop(name) for name in _NAMES))
        return function(*arguments, **options)

    decorated: Any = gathered
    for option in reversed(_options()):
        decorated = option(decorated)
    found: Function = decorated
    return found


def _pulling(
    urls: tuple[str, ...],
    listed: Path | None,
    every_s: float,
    token: Path | None,
    authority: Path | None,
    certificate: Path | None,
    key: Path | None,
) -> Pulling | None:
    if not urls and listed is None:
        if token or authority or certificate or key:
            raise RequestError("no agent is named", "--pull URL, or --pull-list FILE")
        return None
    from iodock.centre.monitor.targets import Shown, each_once, read_targets, target_of
    from iodock.centre.portal.puller import Pulling

    targets = [target_of(url, "--pull") for url in urls]
    targets += read_targets(listed) if listed else []
    if not targets:
        raise RequestError(f"--pull-list {listed}: contains no address", "give one address per line")
    return Pulling(tuple(each_once(targets)), Shown(token, authority, certificate, key), every_s)


def _options() -> list[Callable[[Function], Function]]:
    return [
        click.option(
            "--pull", multiple=True, metavar="URL",
            help="pull from the agent at this address (iodock-agent run --serve-spool); may be given several "
            "times",
        ),
        click.option(
            "--pull-list", type=_FILE, metavar="FILE",
            help=("pull from these agents too: one address per line, followed by the machine's name if "
                  "it differs"),
        ),
        click.option(
            "--pull-every", type=click.FloatRange(0.1, 3600), default=10, show_default=True,
            metavar="SECONDS", help="interval between requests to each agent",
        ),
        click.option("--pull-token", type=_FILE, metavar="FILE", help="bearer token to send to agents"),
        click.option(
            "--pull-ca", type=_FILE, metavar="FILE",
            help="trust agents' certificates of this authority (PEM); default: the system's",
        ),
        click.option("--pull-cert", type=_FILE, metavar="FILE", help="certificate to show to agents (PEM)"),
        click.option("--pull-key", type=_FILE, metavar="FILE", help="key of the certificate (PEM)"),
    ]  # fmt: skip
