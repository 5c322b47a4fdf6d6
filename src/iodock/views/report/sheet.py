"""What all pages share: the style sheet, the hash by which a page's security policy allows it, and how a page
is put together."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def joined(kind: str) -> str:
    """All style sheets (`css`) or scripts (`js`) of the report, in the order of their names."""
    folder = resources.files(__package__) / "assets" / kind
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(f".{kind}")), key=lambda entry: entry.name
    )
    return "\n".join(entry.read_text(encoding="utf-8") for entry in files)


def content_hash(content: str) -> str:
    """As `script-src` and `style-src` of a content security policy want it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def filled(template: str, pieces: Mapping[str, str]) -> str:
    """The template with each `@PLACE@` filled. KeyError for a place without a piece."""
    parts = template.split("@")
    # One pass over the template only: a place's content is never searched for places.
    return "".join(pieces[part] if index % 2 else part for index, part in enumerate(parts))
