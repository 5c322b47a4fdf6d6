"""Parses JSON and TOML. The number of values and of nested levels is limited; the limits are far above those
of real documents."""

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
    """The error that is raised if a document is not valid JSON or TOML, or exceeds a limit."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason if column is None else f"{reason} (column {column})")
        self.reason = reason
        """The message without the column, so that errors of one kind have the same text."""
        self.line = line
        """Number of the line, if it is known."""

    @property
    def at(self) -> str:
        """The text `:LINE`, to be appended to the name of the file. It is empty if the line is not known."""
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
        # Python raises ValueError for integers with thousands of digits.
        raise DocumentError(f"is not JSON: {error}") from None


def next_json(text: str, start: int) -> tuple[Any, int]:
    """Parses one JSON document, which begins at START of TEXT. Returns it with the offset of its end. The
    text may contain further documents. The caller must call `check_values` for the whole text before. Raises
    DocumentError, whose line numbers count from START (1 is the line of START)."""
    # For an error, the parser computes a line number, which takes time in proportion to the text. A small
    # part of the text is therefore parsed first, and a larger one only if the document does not end in it.
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
    """Returns whether the parser may have failed only because the text was cut off after SIZE characters."""
    return error.msg.startswith("Unterminated string") or error.pos >= size - _LONGEST_WORD


def from_toml(document: str) -> dict[str, Any]:
    """Parses a TOML document. Raises DocumentError, which is a ValueError."""
    # Python's TOML parser needs time in proportion to the square of the number of parts of a dotted key, so
    # long keys are refused before parsing.
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
    """Raises DocumentError if the document has more than MOST_VALUES values."""
    signs: tuple[Any, ...] = (b",", b"[", b"{") if isinstance(document, bytes) else (",", "[", "{")
    # Characters inside strings are counted as well, so the count may be too high. It is only compared with a
    # limit that is far above the values of real documents.
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
