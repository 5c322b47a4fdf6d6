"""Queries to a Prometheus: https://prometheus.io/docs/prometheus/latest/querying/api/."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import time
from dataclasses import dataclass, field
from urllib.parse import urlencode

from iodock.centre.prometheus.address import Address, Credentials
from iodock.shared.bounded.documents import from_json
from iodock.shared.errors import AnswerError

SECOND = 1_000_000_000
PATIENCE_S = 30.0
"""Time limit for one response."""
LONGEST_BYTES = 32 << 20
"""Largest size of one response. A longer one is fetched in several periods."""
_PIECE = 256 << 10
_TOO_MUCH = (
    "too many samples",
    "maxsamplesperquery",
    "maxpointspertimeseries",
    "exceeded maximum resolution",
)
"""Texts in the errors of Prometheus and VictoriaMetrics if a query would need more memory than is allowed."""


class TooMuch(Exception):
    """The response is too long for us or for the server, so a shorter period must be requested."""


@dataclass(frozen=True)
class Client:
    """Queries a Prometheus, or a compatible server."""

    address: Address
    credentials: Credentials = field(default_factory=Credentials)
    patience_s: float = PATIENCE_S
    longest_bytes: int = LONGEST_BYTES

    def readings(self, selector: str, begin: int, end: int) -> bytes:
        """Returns the response (JSON) with everything that was scraped from BEGIN to END, ns since the epoch.
        Raises TooMuch, AnswerError, RequestError."""
        # A period includes both of its ends, so adjacent periods must not share one: ends are rounded to
        # whole seconds.
        last, length = -(-end // SECOND), -(-(end - begin) // SECOND) + 1
        return self._asked("query", {"query": f"{selector}[{length}s]", "time": str(last)})

    def steps(self, expression: str, begin: int, end: int, step: int) -> bytes:
        """Evaluates an expression at BEGIN and at every STEP until END."""
        times = {"start": begin, "end": end, "step": step}
        form = {name: str(value // SECOND) for name, value in times.items()}
        return self._asked("query_range", {"query": expression, **form})

    def _asked(self, what: str, form: dict[str, str]) -> bytes:
        try:
            status, body = self._post(
                f"{self.address.prefix}/api/v1/{what}", {**form, "timeout": f"{self.patience_s:.0f}s"}
            )
        except TimeoutError:
            raise AnswerError(
                f"{self.address} has not answered after {self.patience_s:.0f} s", "query a shorter period"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            why = error.strerror if isinstance(error, socket.gaierror) else str(error) or type(error).__name__
            raise AnswerError(
                f"{self.address} does not answer: {why}",
                "check that the server is running, and whether it uses http or https",
            ) from error
        if status != 200:
            raise self._refusal(status, body)
        return body

    def _post(self, path: str, form: dict[str, str]) -> tuple[int, bytes]:
        """Returns status and body of a response. Neither redirects nor the environment's proxies are
        followed, because they would receive the credentials."""
        ends = time.monotonic() + self.patience_s
        headers = {
            "Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json",
            **self.credentials.headers(),
        }  # fmt: skip
        with contextlib.closing(self._connection()) as connection:
            connection.request("POST", path, urlencode(form).encode(), headers)
            answer = connection.getresponse()
            body = bytearray()
            while piece := answer.read1(_PIECE):
                body += piece
                if len(body) > self.longest_bytes:
                    raise TooMuch
                # The connection's time limit applies to each piece, so a slow response could exceed it in
                # total. The whole response is limited here.
                if time.monotonic() > ends:
                    raise TimeoutError
            if answer.length:
                raise http.client.IncompleteRead(b"", answer.length)
            return answer.status, bytes(body)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.address.host, self.address.port
        if self.address.is_secure:
            trust: ssl.SSLContext = self.credentials.trust()
            return http.client.HTTPSConnection(host, port, timeout=self.patience_s, context=trust)
        return http.client.HTTPConnection(host, port, timeout=self.patience_s)

    def _refusal(self, status: int, body: bytes) -> Exception:
        why = _error(body)
        if any(sign in why.lower() for sign in _TOO_MUCH):
            return TooMuch()
        if status in (401, 403):
            return AnswerError(
                f"{self.address} requires authentication: {status} {why}",
                "--store-token FILE, or --store-user NAME --store-password FILE",
            )
        if status == 404 or 300 <= status < 400:
            return AnswerError(
                f"{self.address}: does not answer like Prometheus: {status} {why}",
                "give the whole address, with the path before /api/v1",
            )
        return AnswerError(f"{self.address} refuses: {status} {why}")


def _error(body: bytes) -> str:
    """Returns the error message in a response as one short line."""
    try:
        found = from_json(body)
        text = f"{found['errorType']}: {found['error']}"
    except (ValueError, KeyError, TypeError):
        text = body[:200].decode(errors="replace")
    return "".join(letter if letter.isprintable() else " " for letter in text)[:200].strip()
