"""Draws a block of lines at the end of a terminal. The block can be redrawn repeatedly, and is finally
removed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

_SIZE = os.terminal_size((80, 24))


class Block:
    """A block of lines on a terminal. FD is the terminal's file descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._drawn: list[int] = []
        """Width of each displayed line, in cells."""

    @property
    def size(self) -> os.terminal_size:
        """The present size of the terminal, or 80 x 24 if it is not known."""
        try:
            found = os.get_terminal_size(self._fd)
        except OSError:
            return _SIZE
        return os.terminal_size((found.columns or _SIZE.columns, found.lines or _SIZE.lines))

    def draw(self, lines: Sequence[str], cells: Callable[[str], int]) -> None:
        """Replaces the displayed lines by LINES. CELLS is the function that returns the width of a text in
        terminal cells."""
        if self._is_ours():
            self._write(self._away() + "".join(f"{line}\r\n" for line in lines))
            self._drawn = [cells(line) for line in lines]

    def clear(self) -> None:
        """Removes the displayed lines."""
        if self._drawn and self._is_ours():
            self._write(self._away())
        self._drawn = []

    def _away(self) -> str:
        # If the terminal became narrower, it has wrapped the displayed lines, so that they occupy more rows.
        width = max(1, self.size.columns)
        rows = sum(max(1, -(-cells // width)) for cells in self._drawn)
        return f"\r\x1b[{rows}A\x1b[J" if rows else "\r"

    def _is_ours(self) -> bool:
        """Returns whether this job is in the foreground of the terminal. A job in the background must not
        write to it."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True

    def _write(self, said: str) -> None:
        # If the terminal was closed, writing fails. The program continues nevertheless.
        with contextlib.suppress(OSError):
            rest = said.encode("utf-8", "backslashreplace")
            while rest:
                rest = rest[os.write(self._fd, rest) :]
