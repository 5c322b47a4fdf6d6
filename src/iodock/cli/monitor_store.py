"""Defines the option `--store` of the monitor's commands. A store is the folder of a collector, or a
Prometheus that fetches samples from agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    from iodock.centre.prometheus import PrometheusStore
    from iodock.centre.store import MonitorTables

Function = TypeVar("Function", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True)
class StoreOptions:
    """The values of `--store` and of the related options."""

    store: str
    token: Path | None = None
    user: str = ""
    password: Path | None = None
    authority: Path | None = None

    @property
    def is_prometheus(self) -> bool:
        from iodock.centre.prometheus import is_address

        return is_address(self.store)

    def opened(self, patience_s: float | None = None) -> MonitorTables:
        """Opens the store for reading. PATIENCE_S is the time limit for answers of a Prometheus in seconds;
        None means the default. Raises RequestError."""
        from iodock.centre.store import MonitorStore
        from iodock.shared.settings import load

        if self.is_prometheus:
            return self.prometheus(patience_s)
        store = MonitorStore(self.folder())
        store.shows_job_names = load().privacy.job_names
        return store

    def folder(self) -> Path:
        """Returns the folder of a collector's store. Raises RequestError if the option does not name a
        folder."""
        if "://" in self.store:
            raise RequestError(
                f"--store {self.store}: neither a folder nor a Prometheus",
                "a Prometheus is prometheus://HOST:PORT or prometheus+https://HOST:PORT",
            )
        if self.token or self.user or self.password or self.authority:
            raise RequestError(
                f"--store {self.store} is a folder, so no authentication is needed",
                "--store-token, --store-user, --store-password and --store-ca are for a Prometheus",
            )
        folder = Path(self.store)
        if folder.exists() and not folder.is_dir():
            raise RequestError(f"--store {self.store}: not a folder")
        return folder

    def prometheus(self, patience_s: float | None = None) -> PrometheusStore:
        """Returns a store that queries the Prometheus. Raises RequestError."""
        from iodock.centre.prometheus import Client, Credentials, PrometheusStore, parsed

        address = parsed(self.store)
        credentials = Credentials(self.token, self.user, self.password, self.authority)
        credentials.check(address)
        client = Client(address, credentials)
        return PrometheusStore(client if patience_s is None else replace(client, patience_s=patience_s))


def store_options(help_text: str, required: bool = True) -> Callable[[Function], Function]:
    """Returns a decorator that adds `--store` and the options for its credentials to a command."""

    def decorate(function: Function) -> Function:
        for option in reversed(_options(help_text, required)):
            function = option(function)
        return function

    return decorate


def _options(help_text: str, required: bool) -> list[Callable[[Function], Function]]:
    # click takes `default=None` for a default value, so a required option must be declared without `default`.
    default: dict[str, Any] = {} if required else {"default": ""}
    return [
        click.option("--store", required=required, metavar="DIR", help=help_text, **default),
        click.option("--store-token", type=_FILE, metavar="FILE", help="for a Prometheus: a bearer token"),
        click.option("--store-user", default="", metavar="NAME", help="for a Prometheus: a user"),
        click.option("--store-password", type=_FILE, metavar="FILE", help="password of the user"),
        click.option(
            "--store-ca", type=_FILE, metavar="FILE", help="trust certificates of this authority (PEM)"
        ),
    ]
