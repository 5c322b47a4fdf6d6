"""Prepares the standard streams. Closed streams are opened, and writing to stderr is made to succeed in all
cases."""

from __future__ import annotations

import io
import os
import sys

from iodock.cli.spoken import told

# This constant equals typing.TYPE_CHECKING. Importing `typing` takes as long as starting Python.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Unfailing(io.FileIO):
    """A stream for stderr that ignores errors of writing, because such an error could not be printed anyway.
    If the disk is full or a pipe is closed, iodock still returns the exit status of the recorded program."""

    def write(self, data: Buffer) -> int:
        try:
            written: int | None = super().write(data)
        except OSError:
            written = None
        return len(memoryview(data)) if written is None else written


def prepare() -> None:
    """Opens standard streams that are closed, and replaces stderr by a stream that ignores errors of
    writing."""
    if sys.stdout is None or sys.stderr is None:
        _open_what_was_closed()
    sys.stderr = on_terminal(2)


def on_terminal(fd: int) -> io.TextIOWrapper:
    """Returns a stream that writes to the descriptor FD in the same way as stderr."""
    return io.TextIOWrapper(
        io.BufferedWriter(_Unfailing(fd, "w", closefd=False)),
        sys.stderr.encoding, "backslashreplace", line_buffering=True,
    )  # fmt: skip


def say(text: str) -> None:
    """Prints a line on stderr. Control characters in names become visible, because they could otherwise
    change colours, move the cursor, or add lines."""
    text = told(text)
    if not (text.isascii() and text.isprintable()):
        from iodock.shared.text import visible

        text = visible(text)
    print(text, file=sys.stderr)


def _open_what_was_closed() -> None:
    """Opens /dev/null in place of standard streams that were closed, for example with `>&-`. Otherwise, the
    next file that is opened would get the number of a standard stream. stdout is opened only for reading, so
    that printing to it is still an error."""
    for descriptor, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_RDWR)):
        try:
            os.fstat(descriptor)
        except OSError:
            # open() returns the lowest free descriptor, which is the number of the closed stream.
            os.open(os.devnull, flags)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
