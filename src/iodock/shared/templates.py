"""Finds the template of an English text, so that the text can be translated afterwards.

Errors and notes are built where they arise, and stores keep notes as text: a view has only the finished
English text. `"{path}: no such folder"` is a template; a `{name}` place stands for any text.
"""

from __future__ import annotations

import re

# The same value as typing's, whose import takes as long as Python's own start.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLACE = re.compile(r"{(\w+)}")
_FEWEST_LETTERS = 4
"""A template needs this number of letters outside of its places. Otherwise, such as `{path}: {reason}`, it
would fit nearly any text."""


_TELLING_LETTERS = 10
"""In a template with fewer letters, such as `{name} has no {kind}`, places stand for names and lists, not for
sentences."""
_LONGEST_NAME = 2


class Templates:
    """Templates, sorted by the length of their fixed text. The longest comes first, because it identifies a
    text most reliably."""

    def __init__(self, texts: Iterable[str]) -> None:
        split = [(text, _PLACE.split(text)) for text in texts if "{" in text]
        telling = [(text, parts) for text, parts in split if _letters(parts) >= _FEWEST_LETTERS]
        self._parts = sorted(telling, key=lambda one: (-_letters(one[1]), one[0]))

    def find(self, text: str) -> tuple[str, dict[str, str]] | None:
        """Returns the template of TEXT and the values of its places; None if no template fits."""
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
    """Returns the values of the places of a split template; None if TEXT does not match it."""
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
