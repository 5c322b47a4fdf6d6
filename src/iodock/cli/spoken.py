"""Stores the language in which the present command prints texts. The option --lang determines it, or else the
locale."""

from __future__ import annotations

from iodock.shared.locales import LANGUAGES, chosen

# This constant equals typing.TYPE_CHECKING. Importing `typing` takes as long as starting Python.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iodock.shared.language import Language

_PREFIXES = ("error", "hint", "note", "warning")
_asked: list[str] = []


def ask(code: str | None) -> None:
    """Stores the value of --lang. None removes the stored value."""
    _asked[:] = [code] if code else []


def ask_by(arguments: Sequence[str]) -> None:
    """Searches the arguments for --lang and stores its value. This is done before click parses them, so that
    help texts and errors about invalid arguments are in this language as well."""
    ask(None)
    for at, one in enumerate(arguments):
        if one == "--":
            return
        code = one.removeprefix("--lang=") if one.startswith("--lang=") else ""
        if one == "--lang":
            code = "".join(arguments[at + 1 : at + 2])
        if code in LANGUAGES:
            ask(code)


def code(option: str | None = None) -> str:
    """Returns the code of the language: OPTION, or else the stored value, or else the language of the
    locale."""
    return chosen(option or "".join(_asked) or None)


def language() -> Language:
    """Returns the texts of the language in which the command prints."""
    from iodock.shared.language import language_in

    return language_in(code())


def told(line: str) -> str:
    """Translates an English line for stderr, such as `error: ...` or `note: ...`."""
    if code() == "en":
        return line
    text = language()
    prefix, mark, rest = line.partition(": ")
    if mark and prefix in _PREFIXES:
        return f"{text.gettext(prefix)}: {text.told(rest)}"
    return text.told(line)
