"""The language of this command. It comes from --lang, or else from the locale."""

from __future__ import annotations

from iodock.shared.locales import LANGUAGES, chosen

# The same value as typing's, whose import takes as long as Python's own start.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iodock.shared.language import Language

_PREFIXES = ("error", "hint", "note", "warning")
_asked: list[str] = []


def ask(code: str | None) -> None:
    """Sets the value of --lang; None resets it."""
    _asked[:] = [code] if code else []


def ask_by(arguments: Sequence[str]) -> None:
    """Sets the language from a command line that click has not parsed yet, and which may be invalid or
    contain --help."""
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
    """Code of the language: OPTION, else the value that was set before, else the locale's."""
    return chosen(option or "".join(_asked) or None)


def language() -> Language:
    """The language in which the command prints its texts."""
    from iodock.shared.language import language_in

    return language_in(code())


def told(line: str) -> str:
    """Translates an English line for stderr, `error: ...` or `note: ...`."""
    if code() == "en":
        return line
    text = language()
    prefix, mark, rest = line.partition(": ")
    if mark and prefix in _PREFIXES:
        return f"{text.gettext(prefix)}: {text.told(rest)}"
    return text.told(line)
