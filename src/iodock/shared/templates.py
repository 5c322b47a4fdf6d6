"""Finds the template from which an English text was made. The text can then be translated.

Errors and notes are formatted where they arise, and stores keep notes as text, so views get only finished
English texts. An example of a template is `"{path}: no such folder"`. A placeholder `{name}` may stand for
any text.
"""

from __future__ import annotations

import re

# This constant equals typing.TYPE_CHECKING. Importing `typing` takes as long as starting Python.
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
    """All templates of a catalogue. Those with more letters outside of placeholders are tried first, because
    a match with them is more reliable."""

    def __init__(self, texts: Iterable[str]) -> None:
        split = [(text, _PLACE.split(text)) for text in texts if "{" in text]
        telling = [(text, parts) for text, parts in split if _letters(parts) >= _FEWEST_LETTERS]
        self._parts = sorted(telling, key=lambda one: (-_letters(one[1]), one[0]))

    def find(self, text: str) -> tuple[str, dict[str, str]] | None:
        """Returns the template of TEXT with the values of its placeholders, or None if no template
        matches."""
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
    """Returns the values of the placeholders, or None if TEXT does not match. PARTS is a template that was
    split at its placeholders."""
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
