"""Lets commands that run until they are stopped end normally at Ctrl-C, SIGTERM or SIGHUP."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def told_to_end() -> Iterator[int]:
    """Yields a file descriptor that becomes readable when the process receives SIGINT (Ctrl-C), SIGTERM or
    SIGHUP."""
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
