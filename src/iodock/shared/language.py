"""The language of what a user reads: English texts in the code, translated by gettext catalogues.

A text is an English sentence with named places, `"{n} files"`. It is translated where it is rendered:
`text.gettext("Wall time")`, `text.ngettext("{n} file", "{n} files", count)`; a constant is marked by
`N_("...")` and translated later by `text.gettext(CONSTANT)`. `make messages` brings new texts into
`locale/LANGUAGE/LC_MESSAGES/iodock.po`; `make setup` and `make wheel` compile it.
"""

from __future__ import annotations

import gettext
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "ja")
"""English is in the code; the others have a catalogue."""
_LIST_COMMAS = {"ja": "、"}
_CLAUSE_MARKS = {"ja": "、"}


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


def chosen(option: str | None, environment: Mapping[str, str] | None = None) -> str:
    """The code of the language to use: OPTION, else that of the locale if iodock speaks it, else `en`."""
    return option or _of_locale(os.environ if environment is None else environment)


def _of_locale(environment: Mapping[str, str]) -> str:
    # The order is POSIX's; the first one that is set decides.
    locale = next(
        (environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), ""
    )
    code = locale.replace("_", ".").replace("@", ".").split(".")[0].lower()
    return code if code in LANGUAGES else "en"


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
