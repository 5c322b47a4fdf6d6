"""Sends requests to a portal for commands of iodock. It uses only the HTTP module of the standard library,
because a command that runs at the end of every job must start quickly."""

from __future__ import annotations

import http.client
import os
import time
from urllib.parse import urlencode, urlsplit

from iodock.shared.errors import AnswerError, RequestError

TYPE_CHECKING = False
"""The same value as typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    import ssl

LONGEST_BYTES = 32 << 20
_PIECE = 256 << 10
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Portal:
    """A portal to which requests are sent. TOKEN is a file with a token, which is read for each request.
    AUTHORITY is a file with certificates (PEM) that are trusted instead of the system's. PATIENCE_S is the
    time limit for one response in s."""

    def __init__(
        self, url: str, token: str | None = None, authority: str | None = None, patience_s: float = 10.0
    ) -> None:
        self.url, self.token, self.authority, self.patience_s = url, token, authority, patience_s

    def get(self, path: str, values: dict[str, str]) -> tuple[int, bytes]:
        """Requests PATH with the parameters VALUES and returns the status and content of the response.
        Redirects and the proxies in environment variables are ignored, because they would receive the token.
        Raises RequestError if the address or the token is invalid, and AnswerError if there is no
        response."""
        host, port, is_secure = self._place()
        ends = time.monotonic() + self.patience_s
        headers = {"Authorization": f"Bearer {_secret(self.token)}"} if self.token else {}
        rest = urlencode(values)
        try:
            connection = self._connection(host, port, is_secure)
            try:
                connection.request("GET", f"{path}?{rest}" if rest else path, None, headers)
                answer = connection.getresponse()
                return answer.status, _content(answer, ends)
            finally:
                connection.close()
        except TimeoutError:
            # The import is here and not at the top, because it is rarely needed and would delay the start of
            # a command that runs at the end of every job.
            from iodock.shared.units import number_text

            raise AnswerError(
                f"{self.url} has not answered after {number_text(self.patience_s, 6)} s"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise AnswerError(f"{self.url} does not answer: {why}") from error

    def _place(self) -> tuple[str, int, bool]:
        form = "https://HOST:PORT, as printed by `iodock monitor serve`"
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise RequestError(f"--portal {self.url}: {error}", form) from error
        if parts.username or parts.password:
            raise RequestError("--portal has a user or password in it", "--token-file FILE")
        is_secure = parts.scheme == "https"
        if parts.scheme not in ("http", "https") or not host or parts.path.strip("/") or parts.query:
            raise RequestError(f"--portal {self.url}: not an address of a portal", form)
        if self.token and not is_secure and host not in _LOOPBACK:
            raise RequestError(f"{self.url}: the token would be sent unencrypted", form)
        return host, port or (443 if is_secure else 80), is_secure

    def _connection(self, host: str, port: int, is_secure: bool) -> http.client.HTTPConnection:
        if not is_secure:
            return http.client.HTTPConnection(host, port, timeout=self.patience_s)
        return http.client.HTTPSConnection(host, port, timeout=self.patience_s, context=self._trust())

    def _trust(self) -> ssl.SSLContext:
        import ssl

        try:
            return ssl.create_default_context(cafile=self.authority)
        except (OSError, ssl.SSLError) as error:
            raise RequestError(f"{self.authority}: {error}", "--portal-ca is a PEM file") from error


def _content(answer: http.client.HTTPResponse, ends: float) -> bytes:
    """Reads a response until the time ENDS. The time limit of the connection applies only to each single
    read, so a response that arrives slowly could take longer in total."""
    content = bytearray()
    while piece := answer.read1(_PIECE):
        content += piece
        if len(content) > LONGEST_BYTES:
            raise http.client.HTTPException(f"more than {LONGEST_BYTES} bytes")
        if time.monotonic() > ends:
            raise TimeoutError
    if answer.length:
        raise http.client.IncompleteRead(bytes(content), answer.length)
    return bytes(content)


def _secret(name: str) -> str:
    from pathlib import Path

    from iodock.shared.bounded import files
    from iodock.shared.bounded.limits import SECRET

    path = Path(name)
    try:
        with files.opened(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            found = files.whole(file, path, SECRET).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f"{path}: {error}", "check that the file contains the token that you were given"
        ) from error
    if mode & 0o077:
        raise RequestError(f"{path}: other users may read it", f"chmod 600 {path}")
    if not found or not found.isprintable():
        raise RequestError(
            f"{path}: not one line of text", "check that the file contains the token that you were given"
        )
    return found
