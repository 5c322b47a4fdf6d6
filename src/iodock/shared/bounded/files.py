"""Reads files up to a size limit, either as a whole or line by line."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from iodock.shared.bounded.limits import MIB, MOST_LINE_BYTES, WRITER_PATIENCE_S, Limit
from iodock.shared.errors import IodockError, RequestError

_PIECE = MIB


def opened(path: Path) -> BinaryIO:
    """Opens a file for reading. For a named pipe, it waits up to ten seconds for a program that opens the
    pipe for writing, and then for its first byte. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        head = _first_byte(descriptor, path) if stat.S_ISFIFO(mode) else b""
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    file = os.fdopen(descriptor, "rb")
    return io.BufferedReader(_After(head, file)) if head else file


def _first_byte(descriptor: int, path: Path) -> bytes:
    until = time.monotonic() + WRITER_PATIENCE_S
    while time.monotonic() < until:
        try:
            # If read() returns no bytes, no program has opened the pipe for writing yet.
            if head := os.read(descriptor, 1):
                return head
        except BlockingIOError:
            select.select([descriptor], [], [])
            return os.read(descriptor, 1)
        time.sleep(0.05)
    raise OSError(errno.ENODATA, "a pipe that no program writes to", str(path))


class _After(io.RawIOBase):
    """A stream that returns the byte that was already read from a pipe, and then the rest of the pipe."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._head or os.read(self._rest.fileno(), len(buffer))
        self._head = b""
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._rest.close()
        super().close()


def content(path: Path, limit: Limit, error: type[IodockError] = RequestError) -> bytes:
    """Reads a whole file. Raises OSError, and an exception of the type ERROR if the file is larger than
    LIMIT."""
    with opened(path) as file:
        return whole(file, path, limit, error)


def whole(file: BinaryIO, where: object, limit: Limit, error: type[IodockError] = RequestError) -> bytes:
    """Reads the rest of FILE. WHERE names the file in messages. Raises the exceptions of reading, and one of
    the type ERROR if the rest is larger than LIMIT."""
    found = bytearray()
    while piece := file.read(min(_PIECE, limit.size_bytes + 1 - len(found))):
        found += piece
        if len(found) > limit.size_bytes:
            raise limit.exceeded(where, error)
    return bytes(found)


def text(path: Path, limit: Limit, error: type[IodockError] = RequestError, errors: str = "strict") -> str:
    """Reads a whole file as text. Raises OSError, UnicodeDecodeError, and an exception of the type ERROR if
    the file is larger than LIMIT."""
    return content(path, limit, error).decode("utf-8", errors).replace("\r\n", "\n")


def lines(file: BinaryIO, where: object, error: type[IodockError] = RequestError) -> Iterator[bytes]:
    """Yields the lines of FILE with their line ends. Raises the exceptions of reading, and one of the type
    ERROR if a line is longer than 16 MiB."""
    for number, line in enumerate(iter(partial(file.readline, MOST_LINE_BYTES + 1), b""), 1):
        if len(line) > MOST_LINE_BYTES:
            what = f"a line of more than {MOST_LINE_BYTES // MIB} MiB"
            raise error(f"{where}:{number}: {what}", "is this the right file?")
        yield line
