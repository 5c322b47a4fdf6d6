"""Standard streams as they should be: open, and a stderr that can't make anything fail."""

from __future__ import annotations

import io
import os
import sys

from iodock.cli.spoken import told

# As typing's, whose import takes as long as Python's own start.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Unfailing(io.FileIO):
    """Stderr: what can't be written there is dropped, as there is nowhere left to say so. A full disk or a
    reader that has gone is no reason to lose a recorded program's exit status."""

    def write(self, data: Buffer) -> int:
        try:
            written: int | None = super().write(data)
        except OSError:
            written = None
        return len(memoryview(data)) if written is None else written


def prepare() -> None:
    """Opens what was closed, and lets nothing fail for want of a stderr."""
    if sys.stdout is None or sys.stderr is None:
        _open_what_was_closed()
    sys.stderr = on_terminal(2)


def on_terminal(fd: int) -> io.TextIOWrapper:
    """What stderr is, on another descriptor."""
    return io.TextIOWrapper(
        io.BufferedWriter(_Unfailing(fd, "w", closefd=False)),
        sys.stderr.encoding, "backslashreplace", line_buffering=True,
    )  # fmt: skip


def say(text: str) -> None:
    """A line on stderr. What names hold can't colour a terminal, move its cursor, or look like more lines."""
    text = told(text)
    if not (text.isascii() and text.isprintable()):
        from iodock.shared.text import visible

        text = visible(text)
    print(text, file=sys.stderr)


def _open_what_was_closed() -> None:
    """A program started with `>&-` lacks standard streams; the next files opened would take their place.
    Stdout can't be written to then: data that goes nowhere is an error, as on a full disk."""
    for descriptor, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_RDWR)):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is this one.
            os.open(os.devnull, flags)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
