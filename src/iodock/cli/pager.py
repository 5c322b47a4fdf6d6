"""Shows long output in a pager, such as less."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from iodock.cli.streams import say

if TYPE_CHECKING:
    from typing_extensions import Buffer

_COLOURS = re.compile(rb"\x1b\[[0-9;]*m")
# Exit statuses of a shell if it can't start a command, or can't find it.
_NOT_STARTED = (126, 127)
_PIPE_BYTES = 1 << 20
"""More bytes than any pipe holds. If this much was written, the pager has read a part of it."""


class _Left(BrokenPipeError):
    """The user quit the pager before all text was written."""


class _Screen(io.BufferedIOBase):
    """Output to a terminal. Text that fits on the screen is printed directly. Longer text is sent to the
    pager."""

    def __init__(self, command: str, sideways: bool) -> None:
        self._command, self._sideways = command, sideways
        self._out = sys.stdout.buffer
        # The text so far. It is kept until the pager has certainly started, so that it can be printed without
        # the pager.
        self._kept = bytearray()
        self._sent = 0
        self._pager: subprocess.Popen[bytes] | None = None
        self._has_failed = False

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return sys.__stdout__.fileno() if sys.__stdout__ else 1

    def write(self, data: Buffer) -> int:
        given = bytes(data)
        if self._has_failed:
            self._out.write(given)
        elif self._pager is not None:
            self._send(given)
        else:
            self._kept += given
            if _is_longer_than_screen(bytes(self._kept), self._sideways):
                self._start()
        return len(given)

    def _start(self) -> None:
        surroundings = {"LESS": "FRSX" if self._sideways else "FRX", "LV": "-c"} | dict(os.environ)
        self._out.flush()
        self._pager = subprocess.Popen(self._command, shell=True, stdin=subprocess.PIPE, env=surroundings)
        kept = bytes(self._kept)
        self._kept.clear()
        self._send(kept)

    def _send(self, data: bytes) -> None:
        assert self._pager is not None and self._pager.stdin is not None
        if self._sent <= _PIPE_BYTES:
            self._kept += data
        try:
            self._pager.stdin.write(data)
            self._pager.stdin.flush()
        except BrokenPipeError:
            if self._has_started():
                raise _Left from None
            self._show_kept()
            return
        self._sent += len(data)
        if self._sent > _PIPE_BYTES:
            self._kept.clear()

    def _has_started(self) -> bool:
        """Closes the pager's input and waits until the user quits. Returns whether the pager has started."""
        assert self._pager is not None and self._pager.stdin is not None
        with suppress(BrokenPipeError):
            self._pager.stdin.close()
        return self._pager.wait() not in _NOT_STARTED or self._sent > _PIPE_BYTES

    def _show_kept(self) -> None:
        self._has_failed = True
        say(f"warning: the pager {self._command} can't be started")
        self._out.write(self._kept)
        self._kept.clear()

    def finish(self) -> None:
        """Waits until the user quits the pager. If no pager was needed, or if it could not be started, it
        prints the text that was kept."""
        if self._pager is None:
            self._out.write(self._kept)
        elif not self._has_failed and not self._has_started():
            self._show_kept()
        self._out.flush()


@contextmanager
def paged(sideways: bool = False) -> Iterator[BinaryIO]:
    """Yields a stream for output to stdout. If stdout is a terminal and the text does not fit on the screen,
    a pager shows it. SIDEWAYS states that lines may be wider than the screen."""
    sys.stdout.flush()
    command = pager() if sys.stdout.isatty() else None
    if command is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    screen = _Screen(command, sideways)
    try:
        with suppress(_Left):
            yield cast("BinaryIO", screen)
    finally:
        # Ctrl-C reaches both processes. While the pager runs, only the pager must react to it.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        screen.finish()
        signal.signal(signal.SIGINT, before)


@contextmanager
def paged_prints() -> Iterator[None]:
    """Shows everything that is printed inside the context in the same way as `paged`."""
    with paged() as out:
        if out is sys.stdout.buffer:
            yield
            return
        written = io.TextIOWrapper(out, sys.stdout.encoding, sys.stdout.errors, write_through=True)
        with redirect_stdout(written):
            yield
        written.flush()
        written.detach()


def pager() -> str | None:
    """Returns the shell command of the pager, or None if no pager is to be used. The command is taken from
    IODOCK_PAGER, else from PAGER, else it is less."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return None
    for name in ("IODOCK_PAGER", "PAGER"):
        if (command := os.environ.get(name)) is not None:
            return command if command.strip() not in ("", "cat") else None
    return "less" if shutil.which("less") else None


def _is_longer_than_screen(text: bytes, sideways: bool) -> bool:
    columns, lines = os.get_terminal_size(sys.stdout.fileno())
    if columns < 1 or lines < 1:
        # The size of the terminal is not known.
        return False
    # No screen shows more text than this number of bytes, even with characters of several bytes, so only this
    # part is examined.
    shown = _COLOURS.sub(b"", text[: 16 * columns * lines]).decode(errors="replace").splitlines()
    if sideways:
        return len(shown) >= lines or max(map(len, shown), default=0) > columns
    # After the output, the shell's prompt needs a line as well.
    return sum(max(1, -(-len(line) // columns)) for line in shown) >= lines
