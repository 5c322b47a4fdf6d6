"""Ctrl-C and SIGTERM as the usual end of a run that would go on for ever."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def told_to_end() -> Iterator[int]:
    """A descriptor that becomes readable at Ctrl-C, SIGTERM or SIGHUP, which end a run as they should."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def told(number: int, frame: object) -> None:
        os.write(writing, b"x")

    before = {
        number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield reading
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
