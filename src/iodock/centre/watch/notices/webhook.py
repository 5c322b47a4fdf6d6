"""Posts notices as JSON to an HTTP address."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping

from iodock.centre.watch.notices.outbox import Refused, TryAgain
from iodock.centre.watch.notices.recipients import Letter
from iodock.shared.response import Notices

_AGAIN = (408, 425, 429)
"""HTTP statuses of refusals that are temporary."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, because a server could redirect a request with its token to an address that the site
    did not choose."""

    def redirect_request(self, *given: object, **named: object) -> None:
        return None


class Webhook:
    """Posts letters. TOKENS maps the name of a recipient to the bearer token for it."""

    def __init__(self, rules: Notices, tokens: Mapping[str, str]) -> None:
        self._rules, self._tokens = rules, tokens
        self._opener = urllib.request.build_opener(_NoRedirects)

    def __call__(self, letter: Letter) -> None:
        """Sends a letter. Raises TryAgain, Refused."""
        facts = {"subject": letter.message.subject, "text": letter.message.text, **letter.message.facts}
        headers = {"Content-Type": "application/json", "User-Agent": "iodock", "Idempotency-Key": letter.key}
        if token := self._tokens.get(letter.recipient):
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(letter.address, json.dumps(facts).encode(), headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._rules.timeout_s):
                pass
        except urllib.error.HTTPError as error:
            error.close()
            passing = error.code >= 500 or error.code in _AGAIN
            raise (TryAgain if passing else Refused)(f"the server answers {error.code}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TryAgain(type(error).__name__) from error
