"""Decides which clients may push samples, and which data each client may see.

If neither tokens nor a proxy are configured, the collector serves only the loopback interface and treats
every client there as an operator. The token file contains the SHA-256 of each token. A reader of the file can
neither use a hash as a token nor guess the token, because a token has 32 random bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_toml
from iodock.shared.bounded.limits import TOKENS
from iodock.shared.errors import RequestError


class Role(Enum):
    """Rights of a client."""

    AGENT = "agent"
    """May only push samples."""
    USER = "user"
    """May see the jobs of one user, and the total load of the file systems."""
    OPERATOR = "operator"
    """May see everything."""
    DIGEST = "digest"
    """May only read the digests of all jobs. A script that runs as root at the end of a job uses this
    role."""


@dataclass(frozen=True)
class Visitor:
    """The authenticated client of a request."""

    role: Role
    user: str = ""
    """Login name for the role USER."""
    name: str = field(default="", compare=False)
    """Name of the token."""
    host: str = ""
    """For the role AGENT, the only machine whose data the client may send; empty: any machine."""

    @property
    def may_push(self) -> bool:
        return self.role is Role.AGENT

    @property
    def may_see_all(self) -> bool:
        return self.role is Role.OPERATOR


@dataclass(frozen=True)
class Token:
    """One entry of the token file."""

    name: str
    role: Role
    sha256: str
    user: str = ""
    host: str = ""
    """For the role AGENT, the only machine whose data the agent may send; empty: any machine."""


class TokenFile:
    """Reads a token file again whenever it changes, so a token that was removed from the file no longer
    grants access."""

    def __init__(self, path: Path, on_error: Callable[[RequestError], None] = lambda error: None) -> None:
        """Reads the file. If it can't be read again after a later change, ON_ERROR is called with the error.
        Raises RequestError."""
        self._path, self._on_error = path, on_error
        self._seen = _mark(path)
        self._tokens = read_tokens(path)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Returns the tokens. If the file can't be read at the moment, for example because it is being
        edited, the tokens read last remain valid."""
        mark = _mark(self._path)
        if mark != self._seen:
            self._seen = mark
            try:
                self._tokens = read_tokens(self._path)
            except RequestError as error:
                self._on_error(error)
        return self._tokens


def _mark(path: Path) -> tuple[int, ...] | None:
    """Returns numbers of which at least one changes when the file is changed; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@dataclass(frozen=True)
class Access:
    """The access rules. Without tokens and proxies the rules trust every client, so the collector may serve
    only the loopback interface."""

    tokens: tuple[Token, ...] | None = None
    """None: no token is required."""
    proxies: frozenset[str] = frozenset()
    """Addresses of proxies. In requests from these addresses the collector trusts the header with the user's
    name."""
    user_header: str = "x-remote-user"
    operators: frozenset[str] = frozenset()
    """Login names of operators."""
    file: TokenFile | None = None
    """The file from which `tokens` were read. If it changes, the tokens in the file apply instead of
    `tokens`."""

    @property
    def known(self) -> tuple[Token, ...]:
        """Returns the tokens that currently grant access."""
        return self.file.tokens if self.file else self.tokens or ()

    @property
    def is_open(self) -> bool:
        """Returns whether every client is trusted."""
        return self.tokens is None and not self.proxies

    def visitor(self, headers: dict[str, str], address: str) -> Visitor | None:
        """Returns the client that sent a request from this address with these headers, whose names are in
        lower case. Returns None for an unknown client."""
        if self.is_open:
            return Visitor(Role.OPERATOR)
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._bearer(secret.strip())
        user = headers.get(self.user_header.lower(), "")
        if user and address in self.proxies:
            return Visitor(Role.OPERATOR if user in self.operators else Role.USER, user)
        return None

    def origin(self, headers: dict[str, str], address: str) -> str:
        """Returns the address of the client. If the request comes from a trusted proxy, this is the last
        address in the header x-forwarded-for."""
        forwarded = headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        return forwarded if forwarded and address in self.proxies else address

    def may_push(self, visitor: Visitor | None) -> bool:
        """Returns whether this client may send samples."""
        return visitor is not None and (self.is_open or visitor.may_push)

    def _bearer(self, secret: str) -> Visitor | None:
        found = digest(secret)
        # The loop compares all tokens, so that the duration does not reveal which token matched.
        matches = [token for token in self.known if hmac.compare_digest(token.sha256, found)]
        return _visitor(matches[0]) if matches else None

    def bearer_of(self, sha256: str) -> Visitor | None:
        """Returns the client whose token has this hash, or None if no such token exists any more."""
        return next((_visitor(token) for token in self.known if token.sha256 == sha256), None)


def _visitor(token: Token) -> Visitor:
    return Visitor(token.role, token.user, token.name, token.host)


def digest(secret: str) -> str:
    """Returns the hash of a token in the form that the token file contains."""
    return hashlib.sha256(secret.encode()).hexdigest()


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Reads the tokens of a file. Raises RequestError if it is unreadable, has another format, or can be
    changed by other users."""
    try:
        with files.opened(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            found = from_toml(files.whole(file, path, TOKENS).decode())
    except (OSError, ValueError) as error:
        raise RequestError(f"{path}: {error}", "create such a file with iodock monitor token") from error
    # Other users may read the file, because it contains only hashes. They must not be able to write it,
    # because they could add a token for themselves.
    if mode & 0o022:
        raise RequestError(f"{path}: other users may change it", f"chmod 600 {path}")
    tokens = found.get("token")
    if not isinstance(tokens, list) or not tokens:
        raise RequestError(f"{path}: contains no [[token]]", "create one with iodock monitor token")
    return tuple(_token(path, number, entry) for number, entry in enumerate(tokens, 1))


def _token(path: Path, number: int, entry: object) -> Token:
    try:
        if not isinstance(entry, dict) or set(entry) - {"name", "role", "sha256", "user", "host"}:
            raise ValueError("a token has name, role, sha256 and, for users, user, for agents, host")
        token = Token(
            str(entry["name"]), Role(entry["role"]), str(entry["sha256"]), str(entry.get("user", "")),
            str(entry.get("host", "")),
        )  # fmt: skip
        if len(bytes.fromhex(token.sha256)) != 32:
            raise ValueError("sha256 has 64 hexadecimal digits")
        if (token.role is Role.USER) != bool(token.user):
            raise ValueError('role = "user", and only that, needs a user')
        if token.host and token.role is not Role.AGENT:
            raise ValueError('only role = "agent" has a host')
    except (KeyError, ValueError) as error:
        raise RequestError(
            f"{path}: token {number}: {error}", "create one with iodock monitor token"
        ) from error
    return token


def add_token(path: Path, name: str, role: Role, user: str = "", host: str = "") -> str:
    """Creates a token, adds its hash to a file and returns the token, which is stored nowhere. A new file
    gets mode 600. Raises RequestError."""
    if (role is Role.USER) != bool(user):
        raise RequestError(
            "a user must be given for a token of role user, and only for that role", "--role user --user NAME"
        )
    if host and role is not Role.AGENT:
        raise RequestError("only a token of role agent belongs to one host", "--role agent --host NAME")
    if path.exists():
        read_tokens(path)
    secret = secrets.token_urlsafe(32)
    lines = [f"name = {_toml(name)}", f'role = "{role.value}"', f'sha256 = "{digest(secret)}"']
    lines += [f"user = {_toml(user)}"] if user else []
    lines += [f"host = {_toml(host)}"] if host else []
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write("\n".join(["[[token]]", *lines, "", ""]))
    except OSError as error:
        raise RequestError(f"{path}: {error}") from error
    return secret


def _toml(text: str) -> str:
    """Formats a text as a TOML string. Raises RequestError for a value that is not valid text."""
    quoted = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    try:
        quoted.encode()
        tomllib.loads(f"text = {quoted}")
    except (UnicodeEncodeError, tomllib.TOMLDecodeError) as error:
        raise RequestError(f"{text!r} can't be written to a file of tokens", "give another name") from error
    return quoted
