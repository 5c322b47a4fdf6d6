"""Reads JSON and TOML, with limits on the number of values and levels. Real documents stay below them."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from iodock.shared.bounded.limits import MOST_DEPTH, MOST_VALUES

_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_KEY_PART = re.compile(_PART)
_DOTTED = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+")
"""Matches a dotted key, or text that looks like one. It takes linear time, because matched text is not
searched again."""
_FIRST_PART = 4096
_LONGEST_WORD = 16
"""Longer than any word of JSON that may be cut in two: a number's sign, a constant or an escaped
character."""


class DocumentError(ValueError):
    """A document that is not valid JSON or TOML, or exceeds a limit. `str()` says what is wrong."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason if column is None else f"{reason} (column {column})")
        self.reason = reason
        """The message without the column, so that errors of one kind have the same text."""
        self.line = line
        """Number of the line, if it is known."""

    @property
    def at(self) -> str:
        """Text to append to the file's name: `:LINE`, or empty."""
        return "" if self.line is None else f":{self.line}"


def from_json(document: bytes | str) -> Any:
    """Parses a JSON document. Raises DocumentError, which is a ValueError."""
    check_values(document)
    try:
        return _checked_depth(json.loads(document))
    except json.JSONDecodeError as error:
        raise DocumentError(f"is not JSON: {error.msg}", error.lineno, error.colno) from None
    except UnicodeDecodeError:
        raise DocumentError("is not JSON: it is not text") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        # Python refuses integers with thousands of digits.
        raise DocumentError(f"is not JSON: {error}") from None


def next_json(text: str, start: int) -> tuple[Any, int]:
    """Parses the JSON document at START of a text that has several, and returns it with the offset of its
    end. The caller calls `check_values` for the whole text. Raises DocumentError, whose line counts from
    START (line 1 is that of START)."""
    # The time for raising an error grows with the text before it, so a part of the text is tried first, then
    # more.
    size = _FIRST_PART
    while True:
        part = text[start : start + size]
        try:
            found, end = json.JSONDecoder().raw_decode(part)
            return _checked_depth(found), start + end
        except json.JSONDecodeError as error:
            if start + size >= len(text) or not _may_be_cut(error, len(part)):
                what = f"is not complete JSON: {error.msg}"
                raise DocumentError(what, error.lineno, error.colno) from None
        except RecursionError:
            raise _too_deep() from None
        except ValueError as error:
            raise DocumentError(f"is not JSON: {error}") from None
        size *= 4


def _may_be_cut(error: json.JSONDecodeError, size: int) -> bool:
    """Whether a part of SIZE characters may be invalid only because it was cut at its end."""
    return error.msg.startswith("Unterminated string") or error.pos >= size - _LONGEST_WORD


def from_toml(document: str) -> dict[str, Any]:
    """Parses a TOML document. Raises DocumentError, which is a ValueError."""
    # The time of Python's parser grows with the square of a dotted key's length.
    if any(len(_KEY_PART.findall(one[0])) > MOST_DEPTH for one in _DOTTED.finditer(document)):
        raise _too_deep()
    try:
        found: dict[str, Any] = _checked_depth(tomllib.loads(document))
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError(f"is not TOML: {error}") from None
    return found


def check_values(document: bytes | str) -> None:
    """Raises DocumentError if there are more values than MOST_VALUES."""
    signs: tuple[Any, ...] = (b",", b"[", b"{") if isinstance(document, bytes) else (",", "[", "{")
    # Signs inside strings are counted, too. This gives an upper bound, which is sufficient here.
    if sum(map(document.count, signs)) > MOST_VALUES:
        raise DocumentError(f"has more than {MOST_VALUES:,} values, the limit for one document")


def _too_deep() -> DocumentError:
    return DocumentError(f"is nested too deeply: more than {MOST_DEPTH} levels")


def _checked_depth(found: Any) -> Any:
    level = [found]
    for _ in range(MOST_DEPTH + 1):
        level = [
            value
            for one in level
            if isinstance(one, (dict, list))
            for value in (one.values() if isinstance(one, dict) else one)
            if isinstance(value, (dict, list))
        ]
        if not level:
            return found
    raise _too_deep()
