"""The words of the check-up and the report: one dictionary file per language, `LANGUAGE.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

LANGUAGES = ("en", "ja")


@dataclass(frozen=True, slots=True)
class Text:
    """The words of one language."""

    language: str
    entries: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The text of `key` with its `{name}` places filled; KeyError if the dictionary lacks it."""
        return _fill(self.entries[key], values)

    def counted(self, key: str, count: int, **values: object) -> str:
        """As calling, for texts written `one|many`: `{n}` is the count."""
        forms = self.entries[key].split("|")
        return _fill(forms[0] if count == 1 else forms[-1], {"n": f"{count:,}", **values})

    def get(self, key: str, default: str) -> str:
        """The text of `key` where the dictionary has it."""
        return self.entries.get(key, default)


@cache
def text_in(language: str) -> Text:
    """The words of a language; ValueError if there are none."""
    if language not in LANGUAGES:
        raise ValueError(f"no texts in {language!r}: there is {' and '.join(LANGUAGES)}")
    content = (resources.files(__package__) / f"{language}.json").read_text(encoding="utf-8")
    return Text(language, json.loads(content))


def _fill(template: str, values: Mapping[str, object]) -> str:
    # Not str.format: a value may hold braces, and must not be filled again.
    parts = template.split("{")
    filled = [parts[0]]
    for part in parts[1:]:
        name, closed, rest = part.partition("}")
        filled.append(f"{values[name]}{rest}" if closed and name in values else "{" + part)
    return "".join(filled)
