"""Sends queries to a Prometheus server. The interface is described at
https://prometheus.io/docs/prometheus/latest/querying/api/."""

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
    """Says that the response would be longer than this client or the server allows. The caller must request a
    shorter period."""


@dataclass(frozen=True)
class Client:
    """Sends queries to a Prometheus server or a compatible one."""

    address: Address
    credentials: Credentials = field(default_factory=Credentials)
    patience_s: float = PATIENCE_S
    longest_bytes: int = LONGEST_BYTES

    def readings(self, selector: str, begin: int, end: int) -> bytes:
        """Returns the response (JSON) with all samples of the selected series from BEGIN to END, ns since the
        epoch. Raises TooMuch, AnswerError, RequestError."""
        # The interface takes whole seconds, so the ends are rounded outwards. Adjacent periods may therefore
        # return the same sample twice; duplicates are removed later.
        last, length = -(-end // SECOND), -(-(end - begin) // SECOND) + 1
        return self._asked("query", {"query": f"{selector}[{length}s]", "time": str(last)})

    def steps(self, expression: str, begin: int, end: int, step: int) -> bytes:
        """Evaluates an expression at BEGIN and then every STEP ns until END, and returns the response (JSON).
        Raises TooMuch, AnswerError, RequestError."""
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
        """Sends a request and returns the status and body of the response. Redirects and the proxies in
        environment variables are ignored, because they would receive the credentials."""
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
                # The time limit of the connection applies only to each single read, so a response that
                # arrives slowly could take longer in total. This check limits the whole response.
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
    """Returns the error message in a response as one line of at most 200 characters."""
    try:
        found = from_json(body)
        text = f"{found['errorType']}: {found['error']}"
    except (ValueError, KeyError, TypeError):
        text = body[:200].decode(errors="replace")
    return "".join(letter if letter.isprintable() else " " for letter in text)[:200].strip()
