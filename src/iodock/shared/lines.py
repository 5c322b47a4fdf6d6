"""Breaks sentences into lines for a terminal, including Japanese sentences, which have no spaces between
words."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from iodock.shared.text import cells

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = r"\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
_OPENING = r"「『（【〔"  # noqa: RUF001
_CLOSING = r":;,.?!)\]、。，．・：；？！」』）】〕ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々"  # noqa: RUF001
_KANJI = r"\u4e00-\u9fff々〆"


@cache
def _pieces() -> re.Pattern[str]:
    """Returns a regular expression that matches the pieces between which a line may be broken. It is compiled
    on first use, because compiling takes longer than importing this module."""
    # The expression matches a Japanese word with its particles, such as "ファイルを" or "読み込みでは".
    # Certain kana before a kanji do not end the word, because they are inside a verb ("書き込む").
    inside = rf"[いきぎしじちにびみりえけげせてねべめれ][{_KANJI}]+"
    phrase = rf"[ァ-ヺー]*(?:[{_KANJI}]+(?:{inside})*)?[ぁ-ん]*"
    # A number stays on the same line as the unit or noun that follows it, such as "1 つ", "23 %" or "12
    # calls".
    counted = rf"(?:[^\s{_WIDE}]*\d\ (?=\S))?"
    one = rf"(?:[^\s{_WIDE}]+|(?=[ァ-ヺーぁ-ん{_KANJI}]){phrase}|[{_WIDE}])"
    return re.compile(rf"\s*(?:[{_OPENING}]*{counted}{one}[{_CLOSING}]*|[{_OPENING}]+)")


def print_sentence(console: Console, sentence: str, style: str | None = None, indent: int = 0) -> None:
    """Prints a sentence on a rich console, and breaks it into lines."""
    for line in wrapped(sentence, max(2, console.width - indent)):
        # A sentence may contain names of files. The console must not interpret parts of them as markup or
        # emoji codes, or highlight them.
        shown = " " * indent + line
        console.print(shown, style=style, markup=False, highlight=False, emoji=False, soft_wrap=True)


def wrapped(text: str, width: int) -> list[str]:
    """Breaks TEXT into lines that are at most WIDTH terminal cells wide. WIDTH must be at least 2. Lines are
    broken at spaces and between Japanese phrases. A piece that is longer than a line, such as a path, is
    broken anywhere."""
    lines = [""]
    for piece in _pieces().findall(text):
        if cells(lines[-1] + piece) <= width:
            lines[-1] += piece
            continue
        lines += _cut(piece.lstrip(), width)
    return [line for line in lines if line] or [""]


def _cut(piece: str, width: int) -> list[str]:
    lines = [""]
    for character in piece:
        if cells(lines[-1] + character) > width:
            # A line must not begin with closing punctuation, so the character before it moves to the new line
            # as well.
            moves = character in _CLOSING and len(lines[-1]) > 1 and cells(lines[-1][-1] + character) <= width
            kept = lines[-1][:-1] if moves else lines[-1]
            lines[-1:] = [kept, lines[-1][len(kept) :]]
        lines[-1] += character
    return lines
