"""Reads single keys from a terminal, without Enter."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_ARROWS = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left"}
_ARROW_S = 0.02
_NAMES = {b"\r": "enter", b"\n": "enter", b"\x7f": "back", b"\x08": "back", b"\x1b": "escape", b" ": "space"}


@contextmanager
def single_keys() -> Iterator[int]:
    """While the context is open, keys arrive one by one without echo. Gives the terminal's descriptor."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def key(descriptor: int, wake: int, patience_s: float) -> str | None:
    """Returns the next key: a letter, or up, down, left, right, enter, back, escape, space. `end` means that
    the descriptor WAKE is readable or the terminal is closed. None means that no key was pressed within the
    time."""
    ready, _, _ = select.select([descriptor, wake], [], [], max(0.0, patience_s))
    if wake in ready:
        return "end"
    if not ready:
        return None
    pressed = _one(descriptor)
    if not pressed:
        return "end"
    known = _ARROWS.get(pressed) or _NAMES.get(pressed)
    return known or pressed.decode(errors="replace")


def _one(descriptor: int) -> bytes:
    """Reads the bytes of one key only, because others may have been pressed after it."""
    first = os.read(descriptor, 1)
    if first == b"\x1b":
        # The bytes of an arrow key arrive together. If only Escape was pressed, no byte follows.
        more = 2 if select.select([descriptor], [], [], _ARROW_S)[0] else 0
    else:
        more = sum(first >= lead for lead in (b"\xc0", b"\xe0", b"\xf0"))
    return first + (os.read(descriptor, more) if more else b"")
