"""Makes labels from names. A file name may contain any bytes; a label is safe to draw and short enough to
read.

Vega does not parse the data of a chart, so brackets, dots and quotes are safe. This module shows characters
that are invisible (line breaks, direction marks), shortens names, and keeps different names different.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable

LABEL_CELLS = 44
TIP_CELLS = 160


# Characters that are printable for Python but invisible: Default_Ignorable_Code_Point of Unicode's
# DerivedCoreProperties.txt, and the empty Braille pattern. Two names that differ only in these would look the
# same.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Returns `text` with control, direction, invisible and other unprintable characters written as
    escapes."""
    if text.isprintable() and (text.isascii() or not _UNSEEN.search(text)):
        return text
    return "".join(_shown(character) for character in text)


def visible_lines(text: str) -> str:
    """Like `visible`, for texts of several lines, such as the text of a page that contains names."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _shown(character: str) -> str:
    # The ideographic space is unprintable for Python, but ordinary in Japanese names.
    if (character.isprintable() and not _UNSEEN.match(character)) or character == "\u3000":
        return character
    if "\udc80" <= character <= "\udcff":
        # This is how Python represents a byte of a file's name that is not UTF-8.
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape", "replace").decode("ascii")


def cells(text: str) -> int:
    """Returns the width of `text` in character cells. East Asian wide characters take two, combining ones
    none."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(text: str, limit: int = LABEL_CELLS) -> str:
    """Shortens `text` to at most `limit` cells. It is cut in the middle, because the ends of a path are the
    most informative, above all the last one."""
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
    """Shortens names so that they stay different: two long paths may look alike once cut, and must not share
    a bar."""
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
    """Shortens NAME so that the folder that distinguishes it from those in ALIKE stays visible."""
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
    """Breaks a title into up to three lines that fit `width` pixels."""
    per_line = max(20, width // 8)
    lines: list[str] = []
    for line in text.split("\n"):
        lines += _wrapped(visible(line.strip()), per_line)
    if len(lines) > 3:
        lines = [*lines[:2], _take(lines[2], per_line - 1) + "…"]
    return lines or [""]


def _wrapped(line: str, per_line: int) -> list[str]:
    # textwrap counts characters. A line that consists mostly of wide characters holds only half as many.
    stretch = max(1.0, cells(line) / max(1, len(line)))
    return textwrap.wrap(line, max(10, int(per_line / stretch)))
