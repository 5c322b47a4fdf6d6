"""Finds the template that an English text was made from, so that the text can be translated afterwards.

Errors and notes are put together where they arise, and notes are kept in stores: whoever shows them has the
finished English text only. `"{path}: no such folder"` is a template; a `{name}` place holds any text.
"""

from __future__ import annotations

import re

# As typing's, whose import takes as long as Python's own start.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLACE = re.compile(r"{(\w+)}")
_FEWEST_LETTERS = 4
"""Outside of its places. With fewer, as in `{path}: {reason}`, a template would fit nearly any text."""


_TELLING_LETTERS = 12
"""Of a template with fewer, such as `{name} has no {kind}`, places hold names and lists, no sentences."""
_LONGEST_NAME = 2


class Templates:
    """Templates, those with most text of their own first, since these say most surely what a text is."""

    def __init__(self, texts: Iterable[str]) -> None:
        split = [(text, _PLACE.split(text)) for text in texts if "{" in text]
        telling = [(text, parts) for text, parts in split if _letters(parts) >= _FEWEST_LETTERS]
        self._parts = sorted(telling, key=lambda one: (-_letters(one[1]), one[0]))

    def find(self, text: str) -> tuple[str, dict[str, str]] | None:
        """The template that TEXT was made from and what stands in its places; None if none fits."""
        for template, parts in self._parts:
            values = _values(parts, text)
            if values is not None and (_letters(parts) >= _TELLING_LETTERS or _are_names(values.values())):
                return template, values
        return None


def _letters(parts: list[str]) -> int:
    return sum(character.isalpha() for own in parts[::2] for character in own)


def _are_names(values: Iterable[str]) -> bool:
    return all(len(part.split()) <= _LONGEST_NAME for value in values for part in value.split(", "))


def _values(parts: list[str], text: str) -> dict[str, str] | None:
    """What stands in the places of a split template; None if TEXT is not made from it."""
    first, last = parts[0], parts[-1]
    if len(parts) < 3 or not text.startswith(first) or not text.endswith(last):
        return None
    at, end = len(first), len(text) - len(last)
    values: dict[str, str] = {}
    for name, own in zip(parts[1:-2:2], parts[2:-1:2], strict=True):
        found = text.find(own, at, end)
        if found < 0:
            return None
        values[name] = text[at:found]
        at = found + len(own)
    if at > end:
        return None
    values[parts[-2]] = text[at:end]
    return values
