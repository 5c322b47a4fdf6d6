"""The language of texts for users: the code has English texts, and gettext catalogues translate them.

A text is an English sentence with named places, `"{n} files"`. It is translated where it is rendered:
`text.gettext("Wall time")`, `text.ngettext("{n} file", "{n} files", count)`; a constant is marked by
`N_("...")` and translated later by `text.gettext(CONSTANT)`. `make messages` adds new texts to
`locale/LANGUAGE/LC_MESSAGES/iodock.po`; `make setup` and `make wheel` compile it.
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
    """Marks a text for translation. It is translated where it is rendered, and returned unchanged here."""
    return text


@dataclass(frozen=True, slots=True)
class Language:
    """Texts in one language."""

    code: str
    """Code of the language. It is `en` if the catalogue of another language was not compiled."""
    catalogue: gettext.NullTranslations

    def gettext(self, text: str, /, **values: object) -> str:
        """Returns TEXT in this language, with its `{name}` places filled. Without a translation the text is
        unchanged."""
        # For an empty text, gettext returns the header of the catalogue.
        return fill(self.catalogue.gettext(text), values) if text else ""

    def ngettext(self, one: str, many: str, count: int, /, **values: object) -> str:
        """Like `gettext`, with a singular and a plural. `{n}` is the count, with a separator for
        thousands."""
        return fill(self.catalogue.ngettext(one, many, count), {"n": f"{count:,}", **values})

    def told(self, text: str) -> str:
        """Translates an English TEXT whose values are filled in already, such as an error or a note of a
        store. Without a translation it stays English."""
        return text if self.code == "en" else _told(self, text, _DEEPEST)

    def joined(self, clauses: Iterable[str]) -> str:
        """Joins clauses as this language does."""
        return _CLAUSE_MARKS.get(self.code, "; ").join(clauses)

    def sentences(self, several: Iterable[str]) -> str:
        """Joins sentences as this language does."""
        return _SENTENCE_GAPS.get(self.code, " ").join(several)

    def listed(self, items: Iterable[str]) -> str:
        """Joins items with this language's commas."""
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
    # A single word is a name, so it is not translated, even if it is also the heading of a table.
    return _told(language, text, depth - 1) if " " in text else text


@cache
def _templates(language: Language) -> Templates:
    # gettext has no function that lists its texts. Plural forms have keys that are not texts.
    texts: Mapping[object, str] = getattr(language.catalogue, "_catalog", {})
    return Templates(text for text in texts if isinstance(text, str))


@cache
def language_in(code: str) -> Language:
    """Returns the texts of a language. They are English if its catalogue was not compiled (see
    `Language.code`). Raises ValueError if iodock does not support the language."""
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
    """Fills the `{name}` places of TEMPLATE with VALUES. Places inside a value are not filled."""
    # str.format can't be used here, because a file's name may contain braces.
    parts = template.split("{")
    filled = [parts[0]]
    for part in parts[1:]:
        name, closed, rest = part.partition("}")
        filled.append(f"{values[name]}{rest}" if closed and name in values else "{" + part)
    return "".join(filled)
