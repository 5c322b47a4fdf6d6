"""Reads single keys from a terminal. Users need not press Enter."""

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
    """Switches the terminal to a mode in which each key arrives at once and is not echoed, and restores the
    mode at the end. Yields the terminal's file descriptor."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def key(descriptor: int, wake: int, patience_s: float) -> str | None:
    """Returns the next key: a letter, or one of up, down, left, right, enter, back, escape and space. Returns
    `end` if the descriptor WAKE becomes readable or the terminal is closed, and None if no key is pressed
    within PATIENCE_S seconds."""
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
    """Reads the bytes of a single key. Further keys may already be waiting, and remain for the next call."""
    first = os.read(descriptor, 1)
    if first == b"\x1b":
        # An arrow key sends three bytes at once. If no further byte arrives within 20 ms, the user pressed
        # Escape alone.
        more = 2 if select.select([descriptor], [], [], _ARROW_S)[0] else 0
    else:
        more = sum(first >= lead for lead in (b"\xc0", b"\xe0", b"\xf0"))
    return first + (os.read(descriptor, more) if more else b"")
