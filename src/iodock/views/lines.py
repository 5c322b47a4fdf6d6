"""Sentences in lines of a terminal, also where a language has no spaces between its words."""

from __future__ import annotations

import re

from iodock.views.charts.words import cells

_WIDE = r"\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
_OPENING = r"「『（【〔"  # noqa: RUF001
_CLOSING = r":;,.?!)\]、。，．・：；？！」』）】〕ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々"  # noqa: RUF001
_PIECE = re.compile(
    # A number stays with its unit or what it counts: "1 つ", "23 %", "12 calls".
    rf"\s*(?:[{_OPENING}]*(?:[^\s{_WIDE}]*\d\ (?=\S))?(?:[^\s{_WIDE}]+|[{_WIDE}])[{_CLOSING}]*|[{_OPENING}]+)"
)


def wrapped(text: str, width: int) -> list[str]:
    """TEXT in lines of at most WIDTH cells: broken at spaces and between wide characters; what is longer than
    a line, such as a path, is broken anywhere. WIDTH is at least 2."""
    lines = [""]
    for piece in _PIECE.findall(text):
        if cells(lines[-1] + piece) <= width:
            lines[-1] += piece
            continue
        lines += _cut(piece.lstrip(), width)
    return [line for line in lines if line] or [""]


def _cut(piece: str, width: int) -> list[str]:
    lines = [""]
    for character in piece:
        if cells(lines[-1] + character) > width:
            lines.append("")
        lines[-1] += character
    return lines
