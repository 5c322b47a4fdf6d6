"""Describes the agents from which the collector pulls data: their addresses, the names of their machines, and
the files with the collector's credentials."""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from iodock.shared.bounded import files
from iodock.shared.bounded.limits import ADDRESSES, SECRET
from iodock.shared.errors import RequestError

_FORM = "https://HOST:PORT, or http://127.0.0.1:PORT"
_PORT = 9846


@dataclass(frozen=True)
class Target:
    """The address of one agent from which the collector pulls data."""

    host: str
    port: int
    is_secure: bool
    name: str = ""
    """The only machine that the agent may send data for, if the site names one."""

    def __str__(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.authority}"

    @property
    def authority(self) -> str:
        """Returns the address as HOST:PORT. An IPv6 address is put in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_here(self) -> bool:
        """Returns whether the address is on the loopback interface."""
        address = _address(self.host)
        return self.host == "localhost" if address is None else address.is_loopback

    @property
    def own_names(self) -> tuple[str, ...]:
        """Returns the names of the machine in lower case: the given name, or else the DNS name of the address
        with and without its domain. The result is empty for a numeric address or localhost without a given
        name."""
        if self.name:
            return (self.name.lower(),)
        if self.host == "localhost" or _address(self.host):
            return ()
        own = self.host.lower()
        return (own, own.partition(".")[0])

    def may_be(self, machine: str) -> bool | None:
        """Returns whether the agent may send data for this machine, or None if neither the given name nor the
        address determines it."""
        if self.name:
            return machine == self.name
        return machine.lower() in self.own_names if self.own_names else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def target_of(text: str, where: str, name: str = "") -> Target:
    """Parses the address of an agent. WHERE is the option or line that contains the address; error messages
    quote WHERE. Raises RequestError."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise RequestError(f"{where}: {text}: {error}", _FORM) from error
    if parts.username or parts.password:
        # The message does not quote the address, because it may contain a password.
        raise RequestError(f"{where}: a user or password in an address", "--pull-token FILE")
    is_named = host is not None and host.isascii() and host.isprintable() and " " not in host
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not host or not is_named or not is_bare or port == 0:
        raise RequestError(f"{where}: {text}: not an agent's address", _FORM)
    target = Target(host, port or _PORT, parts.scheme == "https", name)
    if not target.is_secure and not target.is_here:
        raise RequestError(f"{where}: {text}: the token and the jobs could be read on the way", "https://")
    return target


def read_targets(path: Path) -> list[Target]:
    """Reads a file with an address in each line. The machine's name follows the address if it differs from
    the host name in the address. Lines that are empty or begin with # are ignored. Raises RequestError."""
    try:
        lines = files.text(path, ADDRESSES).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: {error}", "a text file with one address per line") from error
    targets = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            raise RequestError(f"{path}: line {number}: more than an address and a name", _FORM)
        targets.append(target_of(words[0], f"{path}: line {number}", *words[1:]))
    return targets


def each_once(targets: list[Target]) -> list[Target]:
    """Returns TARGETS unchanged. Raises RequestError if an agent or a machine's name appears twice."""
    for what in (str, lambda target: target.name):
        seen: set[str] = set()
        for target in targets:
            said = what(target)
            if said and said in seen:
                raise RequestError(
                    f"--pull: {said} is given twice", "list each agent and each machine only once"
                )
            seen.add(said)
    return targets


@dataclass(frozen=True)
class Shown:
    """The files with the collector's credentials. The collector reads the token again for each connection,
    and the other files only when it starts."""

    token: Path | None = None
    authority: Path | None = None
    """File with certificates (PEM) to trust, instead of the system's."""
    certificate: Path | None = None
    key: Path | None = None
    """File with the key of the collector's own certificate."""

    def bearer(self) -> str | None:
        """Reads the token. Returns None if there is no token file. Raises RequestError if the file is
        unreadable, or if other users may read it."""
        if self.token is None:
            return None
        text = _secret(self.token, "--pull-token").decode("ascii", "replace").strip()
        if not text or not text.isascii() or not text.isprintable() or " " in text:
            raise RequestError(
                f"--pull-token {self.token}: must be a file with one line that contains a token"
            )
        return text

    def trust(self) -> ssl.SSLContext:
        """Returns the TLS settings. Raises RequestError if a file is invalid or other users may read the
        key."""
        if bool(self.certificate) != bool(self.key):
            raise RequestError("--pull-cert and --pull-key belong together", "give both")
        try:
            context = ssl.create_default_context(cafile=str(self.authority) if self.authority else None)
            if self.certificate and self.key:
                _secret(self.key, "--pull-key")
                # If the key is encrypted and no password is given, OpenSSL prompts for one on the terminal.
                # The empty password makes it fail instead.
                context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ssl.SSLError) as error:
            raise RequestError(
                f"--pull: TLS: {error}", "--pull-ca, --pull-cert and --pull-key are PEM"
            ) from error
        return context


def _secret(path: Path, option: str) -> bytes:
    try:
        with files.opened(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            found = files.whole(file, f"{option} {path}", SECRET)
    except OSError as error:
        raise RequestError(f"{option} {path}: {error}") from error
    if mode & 0o077:
        raise RequestError(f"{option} {path}: other users may read it", f"chmod 600 {path}")
    return found
