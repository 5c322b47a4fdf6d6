"""Prepares the standard streams: all of them are open, and writing to stderr never fails."""

from __future__ import annotations

import io
import os
import sys

from iodock.cli.spoken import told

# The same value as typing's, whose import takes as long as Python's own start.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Unfailing(io.FileIO):
    """A stderr that drops text which can't be written, because the failure can't be reported either. A full
    disk or a closed pipe must not lose a recorded program's exit status."""

    def write(self, data: Buffer) -> int:
        try:
            written: int | None = super().write(data)
        except OSError:
            written = None
        return len(memoryview(data)) if written is None else written


def prepare() -> None:
    """Opens streams that are closed, and makes writing succeed if there is no stderr."""
    if sys.stdout is None or sys.stderr is None:
        _open_what_was_closed()
    sys.stderr = on_terminal(2)


def on_terminal(fd: int) -> io.TextIOWrapper:
    """Makes a stream like stderr that writes to the descriptor FD."""
    return io.TextIOWrapper(
        io.BufferedWriter(_Unfailing(fd, "w", closefd=False)),
        sys.stderr.encoding, "backslashreplace", line_buffering=True,
    )  # fmt: skip


def say(text: str) -> None:
    """Prints a line on stderr. Characters in names can't colour a terminal, move its cursor, or look like
    further lines."""
    text = told(text)
    if not (text.isascii() and text.isprintable()):
        from iodock.shared.text import visible

        text = visible(text)
    print(text, file=sys.stderr)


def _open_what_was_closed() -> None:
    """Opens streams that were closed: a program started with `>&-` lacks standard streams, and files that it
    opens would get their numbers. Stdout is then not writable: lost data is an error, as on a full disk."""
    for descriptor, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_RDWR)):
        try:
            os.fstat(descriptor)
        except OSError:
            # `open` uses the lowest free number, which is the missing stream's.
            os.open(os.devnull, flags)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
