"""Parses the address of a Prometheus server and reads the credentials for it."""

from __future__ import annotations

import base64
import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from iodock.shared.bounded import files
from iodock.shared.bounded.limits import SECRET
from iodock.shared.errors import RequestError

_PORTS = {"prometheus": 9090, "prometheus+https": 443}
_FORM = "prometheus://HOST:PORT/PREFIX or prometheus+https://HOST:PORT/PREFIX"


@dataclass(frozen=True)
class Address:
    """The address of a Prometheus server. `prefix` is the path before `/api/v1`, which is empty or begins
    with a slash."""

    host: str
    port: int
    prefix: str = ""
    is_secure: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"prometheus{'+https' if self.is_secure else ''}://{host}:{self.port}{self.prefix}"

    @property
    def is_private(self) -> bool:
        """Returns whether other machines can't read the connection, because it is encrypted or stays on this
        machine."""
        try:
            return self.is_secure or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def is_address(store: str) -> bool:
    """Returns whether the text is the address of a Prometheus rather than a folder."""
    return store.partition("://")[0] in _PORTS


def parsed(text: str) -> Address:
    """Parses `prometheus[+https]://HOST[:PORT][/PREFIX]`. Raises RequestError."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise RequestError(f"--store {text}: {error}", _FORM) from error
    if parts.username or parts.password:
        # The message does not quote the address, because it may contain a password.
        raise RequestError(
            "--store has a user or password in it, which all users of this machine can see",
            "--store-user NAME --store-password FILE",
        )
    if parts.scheme not in _PORTS or not host or parts.query or parts.fragment:
        raise RequestError(f"--store {text}: not an address of a Prometheus", _FORM)
    if not parts.path.isprintable() or " " in parts.path or not parts.path.isascii():
        raise RequestError(f"--store {text}: not a path", _FORM)
    number = _PORTS[parts.scheme] if port is None else port
    return Address(host, number, parts.path.rstrip("/"), parts.scheme == "prometheus+https")


@dataclass(frozen=True)
class Credentials:
    """The files with credentials for a Prometheus server. They are read again for each request, so new
    credentials apply without a restart."""

    token: Path | None = None
    """File with a bearer token."""
    user: str = ""
    password: Path | None = None
    """File with the password of `user`."""
    authority: Path | None = None
    """File with certificates (PEM) to trust, instead of the system's."""

    def check(self, address: Address) -> None:
        """Raises RequestError if the credentials are inconsistent, or would be sent unencrypted."""
        if bool(self.user) != bool(self.password):
            raise RequestError("--store-user and --store-password FILE belong together")
        if self.token and self.user:
            raise RequestError("--store-token and --store-user can't be combined")
        if self.authority and not address.is_secure:
            raise RequestError("--store-ca is for prometheus+https://", f"not for {address}")
        if (self.token or self.user) and not address.is_private:
            raise RequestError(
                f"{address}: the credentials would be sent unencrypted", "prometheus+https://HOST"
            )
        self.headers()
        if address.is_secure:
            self.trust()

    def headers(self) -> dict[str, str]:
        """Returns the headers of a request that contain the credentials. Raises RequestError if a file can't
        be read, or if other users may read it."""
        if self.token:
            return {"Authorization": f"Bearer {_secret(self.token)}"}
        if self.password:
            pair = f"{self.user}:{_secret(self.password)}".encode()
            return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return {}

    def trust(self) -> ssl.SSLContext:
        """Returns the TLS settings with the trusted certificates. Raises RequestError."""
        try:
            return ssl.create_default_context(cafile=str(self.authority) if self.authority else None)
        except (OSError, ssl.SSLError) as error:
            raise RequestError(f"{self.authority}: {error}", "--store-ca is a PEM file") from error


def _secret(path: Path) -> str:
    try:
        with files.opened(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            found = files.whole(file, path, SECRET).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: {error}") from error
    if mode & 0o077:
        raise RequestError(f"{path}: other users may read it", f"chmod 600 {path}")
    if not found or not found.isprintable():
        raise RequestError(f"{path}: not one line of text")
    return found
