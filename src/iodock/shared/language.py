"""Translates texts for users. The code contains English texts, and gettext catalogues contain translations.

A text is an English sentence with placeholders, such as `"{n} files"`. It is translated when it is shown:
`text.gettext("Wall time")`, `text.ngettext("{n} file", "{n} files", count)`. A constant is marked with
`N_("...")` where it is defined, and translated later with `text.gettext(CONSTANT)`. `make messages` adds new
texts to `locale/LANGUAGE/LC_MESSAGES/iodock.po`. `make setup` and `make wheel` compile these files.
"""

from __future__ import annotations

import gettext
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from iodock.shared.locales import LANGUAGES as LANGUAGES
from iodock.shared.templates import Templates

_LIST_COMMAS = {"ja": "、"}
_CLAUSE_MARKS = {"ja": "、"}
_SENTENCE_GAPS = {"ja": ""}


def N_(text: str) -> str:
    """Marks a text for translation, and returns it unchanged. Views translate it when they show it."""
    return text


@dataclass(frozen=True, slots=True)
class Language:
    """The texts of iodock in one language."""

    code: str
    """Code of the language. It is `en` if the catalogue of another language was not compiled."""
    catalogue: gettext.NullTranslations

    def gettext(self, text: str, /, **values: object) -> str:
        """Returns the translation of TEXT, with VALUES in place of the `{name}` placeholders. If there is no
        translation, TEXT itself is used."""
        # gettext returns the catalogue's header for an empty text.
        return fill(self.catalogue.gettext(text), values) if text else ""

    def ngettext(self, one: str, many: str, count: int, /, **values: object) -> str:
        """Returns the translation of a text that has a singular and a plural form. COUNT selects the form and
        replaces `{n}`, with separators for thousands."""
        return fill(self.catalogue.ngettext(one, many, count), {"n": f"{count:,}", **values})

    def told(self, text: str) -> str:
        """Translates an English text in which the values are already filled in, such as an error message or a
        note of a store. The template is found by comparing the text with all templates. If none matches, the
        text remains in English."""
        return text if self.code == "en" else _told(self, text, _DEEPEST)

    def joined(self, clauses: Iterable[str]) -> str:
        """Joins clauses with the punctuation of this language."""
        return _CLAUSE_MARKS.get(self.code, "; ").join(clauses)

    def sentences(self, several: Iterable[str]) -> str:
        """Joins sentences with the spacing of this language."""
        return _SENTENCE_GAPS.get(self.code, " ").join(several)

    def listed(self, items: Iterable[str]) -> str:
        """Joins items with the commas of this language."""
        return _LIST_COMMAS.get(self.code, ", ").join(items)


_DEEPEST = 3
"""Number of levels to which a message may contain another one, as in `run.log: line 7: no time`."""


def _told(language: Language, text: str, depth: int) -> str:
    known = language.catalogue.gettext(text) if text else text
    if known != text or not depth or " " not in text:
        return known
    found = _templates(language).find(text)
    if found is not None:
        template, values = found
        return language.gettext(
            template, **{name: _inner(language, value, depth) for name, value in values.items()}
        )
    for mark in ("; ", ": "):
        head, there, rest = text.partition(mark)
        if there and (told := _told(language, rest, depth - 1)) != rest:
            return f"{_inner(language, head, depth)}{mark}{told}"
    return text


def _inner(language: Language, text: str, depth: int) -> str:
    # A text without spaces is a name. It must not be translated, even if a heading of a table has the same
    # text.
    return _told(language, text, depth - 1) if " " in text else text


@cache
def _templates(language: Language) -> Templates:
    # gettext has no public function that lists the texts of a catalogue. The keys of plural forms are tuples,
    # which are left out.
    texts: Mapping[object, str] = getattr(language.catalogue, "_catalog", {})
    return Templates(text for text in texts if isinstance(text, str))


@cache
def language_in(code: str) -> Language:
    """Returns the texts of a language. If its catalogue was not compiled, the texts are English, and `code`
    is `en`. Raises ValueError if iodock does not support the language."""
    if code not in LANGUAGES:
        raise ValueError(f"{code!r} has no texts: available are {' and '.join(LANGUAGES)}")
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
    """Replaces the `{name}` placeholders of TEMPLATE by VALUES. Braces inside a value are not replaced."""
    # TEMPLATE may contain braces that are not placeholders, such as those in the name of a file. str.format
    # would raise an error for them.
    parts = template.split("{")
    filled = [parts[0]]
    for part in parts[1:]:
        name, closed, rest = part.partition("}")
        filled.append(f"{values[name]}{rest}" if closed and name in values else "{" + part)
    return "".join(filled)
