"""Identifies visitors of the portal by a token, by the user's name that a proxy sends, or by a session cookie
of the browser.

A session is identified by a random number in a cookie. Only the browser has this number; the portal keeps a
hash of it in memory. A session ends after 12 hours, at logout, when the collector restarts, or when the token
with which the visitor logged in is revoked.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from iodock.centre.monitor.access import Access, Role, Visitor, digest

COOKIE = "iodock_session"
LONGEST_FORM = 4096
LASTS_S = 12 * 3600
MOST_SESSIONS = 10_000
_NO_PAGES = (Role.AGENT, Role.DIGEST)


@dataclass(frozen=True)
class _Session:
    token: str
    """SHA-256 of the token with which the visitor logged in."""
    ends: float


class Sessions:
    """The sessions of one portal. The methods may be called from any thread."""

    def __init__(self, access: Access, clock: Callable[[], float] = time.monotonic) -> None:
        self._access, self._clock = access, clock
        self._lock = threading.Lock()
        self._key = secrets.token_bytes(32)
        self._sessions: dict[str, _Session] = {}
        """Sessions by the SHA-256 of their cookie, the oldest first."""

    def visitor(self, request: Request) -> Visitor | None:
        """Returns the visitor who sent a request, or None if the visitor has no access to pages."""
        headers = dict(request.headers)
        cookie = "" if "authorization" in headers else _cookie(headers.get("cookie", ""))
        found = self._of_cookie(cookie) if cookie else None
        found = found or self._access.visitor(headers, request.client.host if request.client else "")
        return None if found is None or found.role in _NO_PAGES else found

    def reader(self, request: Request) -> Visitor | None:
        """Returns the visitor who sent a request for a digest, or None for an unknown one. A client with a
        token for digests is treated as an operator, because it may read the digests of all users. Other
        visitors are identified by `visitor`."""
        found = self._access.visitor(dict(request.headers), request.client.host if request.client else "")
        if found is not None and found.role is Role.DIGEST:
            return Visitor(Role.OPERATOR, name=found.name)
        return self.visitor(request)

    def _of_cookie(self, cookie: str) -> Visitor | None:
        key = digest(cookie)
        with self._lock:
            session = self._sessions.get(key)
            visitor = None
            if session is not None and session.ends > self._clock():
                visitor = self._access.bearer_of(session.token)
            if visitor is None:
                self._sessions.pop(key, None)
            return visitor

    def is_in_one(self, request: Request) -> bool:
        """Returns whether the request has the cookie of a valid session."""
        cookie = _cookie(request.headers.get("cookie", ""))
        return bool(cookie) and self._of_cookie(cookie) is not None

    def form_token(self, request: Request, visitor: Visitor) -> str:
        """Returns the token that a form must contain if it changes something. Only pages of this visitor
        contain the token, so a page of another site can't submit a form in the visitor's name. The token is
        valid until the session ends or the collector restarts."""
        who = (_cookie(request.headers.get("cookie", "")), visitor.role.value, visitor.user, visitor.name)
        return hmac.new(self._key, "\0".join(who).encode(), "sha256").hexdigest()

    def is_own_form(self, request: Request, visitor: Visitor, fields: dict[str, str]) -> bool:
        """Returns whether the form came from one of this visitor's pages."""
        given = fields.get("form", "").encode()
        return hmac.compare_digest(given, self.form_token(request, visitor).encode())

    def begin(self, response: Response, token: str, request: Request) -> bool:
        """Begins a session and adds its cookie, which scripts and other sites can't read, to RESPONSE.
        Returns False if TOKEN gives no access to pages."""
        found = self._access.visitor({"authorization": f"Bearer {token}"}, "")
        if found is None or found.role in _NO_PAGES:
            return False
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions.pop(digest(_cookie(request.headers.get("cookie", ""))), None)
            while len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[digest(secret)] = _Session(digest(token), self._clock() + LASTS_S)
        secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        response.set_cookie(
            COOKIE, secret, max_age=LASTS_S, httponly=True, samesite="strict", secure=secure, path="/"
        )
        return True

    def end(self, response: Response, request: Request) -> None:
        """Ends the session, so that the cookie and all copies of it become invalid, and deletes the cookie in
        the browser."""
        with self._lock:
            self._sessions.pop(digest(_cookie(request.headers.get("cookie", ""))), None)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict", path="/")


def _cookie(text: str) -> str:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


async def token_in_form(request: Request) -> str | None:
    """Reads the token in a submitted form. Returns None if the form is too long or comes from a page of
    another site."""
    fields = await form(request)
    return None if fields is None else fields.get("token", "").strip()


async def form(request: Request) -> dict[str, str] | None:
    """Reads the first value of each field of a submitted form. Returns None if the form is too long or comes
    from a page of another site."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return None
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > LONGEST_FORM:
                return None
    except ClientDisconnect:
        return None
    return {name: values[0] for name, values in parse_qs(body.decode("ascii", "replace")).items()}
