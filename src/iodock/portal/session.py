"""Who asks for a page: as for agents by token or proxy, and browsers by a cookie that has the token."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from iodock.monitor.access import Access, Role, Visitor

COOKIE = "iodock_token"
LONGEST_FORM = 4096
_A_MONTH_S = 30 * 86_400


def visitor(request: Request, access: Access) -> Visitor | None:
    """None: nobody who may see pages."""
    found = access.visitor(_headers(request), request.client.host if request.client else "")
    return None if found is None or found.role is Role.AGENT else found


def _headers(request: Request) -> dict[str, str]:
    """With the cookie's token as if it were sent as such."""
    headers = dict(request.headers)
    token = _cookie(headers.get("cookie", ""))
    if token and "authorization" not in headers:
        headers["authorization"] = f"Bearer {token}"
    return headers


def _cookie(text: str) -> str:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def has_cookie(request: Request) -> bool:
    """Did the visitor give a token in a form?"""
    return bool(_cookie(request.headers.get("cookie", "")))


async def token_in_form(request: Request) -> str | None:
    """The token of a form that was sent; None: too long, or from another site's page."""
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
    return parse_qs(body.decode("ascii", "replace")).get("token", [""])[0].strip()


def is_good(token: str, access: Access) -> bool:
    """Does this token show pages?"""
    headers = {"authorization": f"Bearer {token}"}
    found = access.visitor(headers, "")
    return found is not None and found.role is not Role.AGENT


def keep(response: Response, token: str, request: Request) -> None:
    """As a cookie that no script reads and no other site sends."""
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    response.set_cookie(
        COOKIE, token, max_age=_A_MONTH_S, httponly=True, samesite="strict", secure=secure, path="/"
    )


def forget(response: Response) -> None:
    """Logs out."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", path="/")
