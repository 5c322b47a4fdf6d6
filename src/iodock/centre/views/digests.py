"""Lists the formats of a digest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iodock.centre.views.digest_html import digest_html
from iodock.centre.views.digest_json import digest_json
from iodock.centre.views.digest_text import digest_text
from iodock.centre.watch.digest import Digest
from iodock.shared.language import Language

FORMS: Mapping[str, Callable[[Digest, Language], str]] = {
    "text": digest_text, "json": digest_json, "html": digest_html,
}  # fmt: skip
KINDS: Mapping[str, str] = {
    "text": "text/plain; charset=utf-8", "json": "application/json", "html": "text/html; charset=utf-8",
}  # fmt: skip
"""Maps a format to its content type."""
