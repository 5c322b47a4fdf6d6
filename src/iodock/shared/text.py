"""Converts names to labels. A file's name may contain any bytes. A label contains only visible characters and
is short enough to read.

Vega does not interpret the data of a chart, so brackets, dots and quotes are safe in labels. This module
replaces invisible characters (line breaks, direction marks) by escapes, and shortens names in such a way that
different names get different labels.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable

LABEL_CELLS = 44
TIP_CELLS = 160


# Characters that Python considers printable but that are invisible: those with the property
# Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt, and the empty Braille pattern. Names
# that differ only in these characters would look the same.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Returns TEXT with escapes in place of control characters, direction marks, and other invisible
    characters."""
    if text.isprintable() and (text.isascii() or not _UNSEEN.search(text)):
        return text
    return "".join(_shown(character) for character in text)


def visible_lines(text: str) -> str:
    """Returns TEXT with the same escapes as `visible`, but keeps its line breaks. It is used for texts of
    several lines that contain names."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _shown(character: str) -> str:
    # Python considers the ideographic space (U+3000) unprintable, but it is common in Japanese names.
    if (character.isprintable() and not _UNSEEN.match(character)) or character == "\u3000":
        return character
    if "\udc80" <= character <= "\udcff":
        # Python represents a byte that is not valid UTF-8 by a character from this range (surrogateescape).
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape", "replace").decode("ascii")


def cells(text: str) -> int:
    """Returns the width of TEXT in terminal cells. Wide East Asian characters occupy two cells, combining
    characters none."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(text: str, limit: int = LABEL_CELLS) -> str:
    """Shortens TEXT to at most LIMIT cells. Its middle is left out, because the beginning and especially the
    end of a path contain most information."""
    text = visible(text)
    if cells(text) <= limit:
        return text
    tail = _take(reversed(text), (limit - 1) * 2 // 3)[::-1]
    head = _take(text, limit - 1 - cells(tail))
    return f"{head}…{tail}"


def _take(text: Iterable[str], limit: int) -> str:
    taken: list[str] = []
    for character in text:
        limit -= _cell(character)
        if limit < 0:
            break
        taken.append(character)
    return "".join(taken)


def labels(names: list[str], limit: int = LABEL_CELLS) -> list[str]:
    """Shortens names, and keeps different names different. Otherwise, two long paths could get the same
    label, and a chart would draw them as one bar."""
    alike: dict[str, set[str]] = {}
    for name in names:
        alike.setdefault(shorten(name, limit), set()).add(visible(name))
    seen: dict[str, int] = {}
    result = []
    for name in names:
        label = _apart(visible(name), alike[shorten(name, limit)], limit)
        seen[label] = seen.get(label, 0) + 1
        result.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return result


def _apart(name: str, alike: set[str], limit: int) -> str:
    """Shortens NAME. ALIKE contains the names that would get the same short form. The last folders that
    distinguish NAME from them are kept."""
    if len(alike) == 1:
        return shorten(name, limit)
    parts = name.split("/")
    others = [other.split("/") for other in alike if other != name]
    own = next((n for n in range(1, len(parts)) if all(parts[-n:] != one[-n:] for one in others)), None)
    if own is None:
        return shorten(name, limit)
    end = "/".join(parts[-own:])
    if cells(end) + 2 <= limit:
        return f"…/{end}"
    first = shorten(parts[-own], limit // 2)
    if own == 1:
        return shorten(name, limit)
    return f"…/{first}/…/{shorten(parts[-1], limit - cells(first) - 5)}"


def heading(text: str, width: int) -> list[str]:
    """Breaks a title into at most three lines, each at most WIDTH pixels wide."""
    per_line = max(20, width // 8)
    lines: list[str] = []
    for line in text.split("\n"):
        lines += _wrapped(visible(line.strip()), per_line)
    if len(lines) > 3:
        lines = [*lines[:2], _take(lines[2], per_line - 1) + "…"]
    return lines or [""]


def _wrapped(line: str, per_line: int) -> list[str]:
    # textwrap counts characters, not cells. The limit is reduced for lines with many wide characters.
    stretch = max(1.0, cells(line) / max(1, len(line)))
    return textwrap.wrap(line, max(10, int(per_line / stretch)))
