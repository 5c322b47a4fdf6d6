"""The language of what a user reads: English texts in the code, translated by gettext catalogues.

A text is an English sentence with named places, `"{n} files"`. It is translated where it is rendered:
`text.gettext("Wall time")`, `text.ngettext("{n} file", "{n} files", count)`; a constant is marked by
`N_("...")` and translated later by `text.gettext(CONSTANT)`. `make messages` brings new texts into
`locale/LANGUAGE/LC_MESSAGES/iodock.po`; `make setup` and `make wheel` compile it.
"""

from __future__ import annotations

import gettext
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from iodock.shared.locales import LANGUAGES as LANGUAGES

_LIST_COMMAS = {"ja": "、"}
_CLAUSE_MARKS = {"ja": "、"}
_SENTENCE_GAPS = {"ja": ""}


def N_(text: str) -> str:
    """Marks a text for translation, which happens where it is rendered. Returns it as it is."""
    return text


@dataclass(frozen=True, slots=True)
class Language:
    """Texts in one language."""

    code: str
    """`en` also where another language's catalogue was not compiled."""
    catalogue: gettext.NullTranslations

    def gettext(self, text: str, /, **values: object) -> str:
        """TEXT in this language, or as it is if there is no translation; its `{name}` places filled."""
        # gettext answers the empty text with the catalogue's header.
        return fill(self.catalogue.gettext(text), values) if text else ""

    def ngettext(self, one: str, many: str, count: int, /, **values: object) -> str:
        """As `gettext`, for one or many; `{n}` is the count, with thousands separated."""
        return fill(self.catalogue.ngettext(one, many, count), {"n": f"{count:,}", **values})

    def joined(self, clauses: Iterable[str]) -> str:
        """Clauses with what this language has between them."""
        return _CLAUSE_MARKS.get(self.code, "; ").join(clauses)

    def sentences(self, several: Iterable[str]) -> str:
        """Sentences with what this language has between them."""
        return _SENTENCE_GAPS.get(self.code, " ").join(several)

    def listed(self, items: Iterable[str]) -> str:
        """Items with this language's commas between them."""
        return _LIST_COMMAS.get(self.code, ", ").join(items)


@cache
def language_in(code: str) -> Language:
    """The texts of a language: English ones where its catalogue was not compiled (see `Language.code`).
    ValueError if iodock does not speak it."""
    if code not in LANGUAGES:
        raise ValueError(f"no texts in {code!r}: there is {' and '.join(LANGUAGES)}")
    if code == "en":
        return Language("en", gettext.NullTranslations())
    try:
        with _catalogue(code).open("rb") as content:
            return Language(code, gettext.GNUTranslations(content))
    except FileNotFoundError:
        return language_in("en")


def _catalogue(code: str) -> Path:
    return Path(__file__).parent.parent / "locale" / code / "LC_MESSAGES" / "iodock.mo"


def fill(template: str, values: Mapping[str, object]) -> str:
    """TEMPLATE with each `{name}` that VALUES has filled. What a value holds is not filled again."""
    # Not str.format: a file's name may hold braces.
    parts = template.split("{")
    filled = [parts[0]]
    for part in parts[1:]:
        name, closed, rest = part.partition("}")
        filled.append(f"{values[name]}{rest}" if closed and name in values else "{" + part)
    return "".join(filled)
