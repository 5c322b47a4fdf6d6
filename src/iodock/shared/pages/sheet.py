"""Combines markup, style sheets and scripts to a complete HTML page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from iodock.shared.language import Language
from iodock.shared.pages.markup import join


@cache
def joined(kind: str) -> str:
    """Returns all style sheets (`css`) or scripts (`js`) of the pages as one text. The files are sorted by
    name."""
    folder = resources.files(__package__) / "assets" / kind
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(f".{kind}")), key=lambda entry: entry.name
    )
    return "\n".join(entry.read_text(encoding="utf-8") for entry in files)


@cache
def asset(kind: str, name: str) -> str:
    """Returns the text of one style sheet or script."""
    return (resources.files(__package__) / "assets" / kind / name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The parts of a page that differ from page to page. All except `style`, `data` and `script` are
    markup."""

    title: str
    header: str
    navigation: str
    """Items of the list with links to the sections."""
    body: str
    footer: str
    style: str
    images: bool = False
    """Whether the page has pictures, which are then embedded in it."""
    data: str | None = None
    """JSON for the script, made by `embedded_json`."""
    script: str | None = None


def document(page: Page, text: Language) -> str:
    """Returns the whole HTML document. Its security policy allows only its own style sheet and script, which
    it identifies by their hashes, so that the page can neither load nor send anything."""
    sources = [f"style-src '{_hash(page.style)}'"]
    if page.images:
        sources.insert(0, "img-src data:")
    if page.script is not None:
        sources.insert(0, f"script-src '{_hash(page.script)}'")
    pieces = {
        "LANG": text.code,
        "SOURCES": "; ".join(sources),
        "TITLE": page.title,
        "STYLE": page.style,
        "SKIP": join(text.gettext("Skip to the content")),
        "HEADER": page.header,
        "NAV_LABEL": join(text.gettext("Sections")),
        "NAV": page.navigation,
        "BODY": page.body,
        "FOOTER": page.footer,
        "SCRIPTS": _scripts(page),
    }
    template = (resources.files(__package__) / "assets" / "page.html").read_text(encoding="utf-8")
    return _filled(template, pieces)


def _scripts(page: Page) -> str:
    data = (
        "" if page.data is None else f'\n<script type="application/json" id="page-data">{page.data}</script>'
    )
    return data + ("" if page.script is None else f"\n<script>{page.script}</script>")


def _hash(content: str) -> str:
    """Returns the hash of a script or style sheet in the form that a content security policy needs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _filled(template: str, pieces: Mapping[str, str]) -> str:
    """Replaces each `@PLACE@` of the template by its piece. Raises KeyError if there is no piece for a
    place."""
    parts = template.split("@")
    # The template is split before the pieces are inserted, so an `@` inside a piece is not taken for a place.
    return "".join(pieces[part] if index % 2 else part for index, part in enumerate(parts))
