"""Reads an input file with times as lines or as bytes. Decompresses it if necessary. Returns a sample of it
from which readers detect its format."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from iodock.shared.bounded import files
from iodock.shared.bounded.limits import TIMES_AT_ONCE
from iodock.shared.bounded.packed import UNPACK_ERRORS, unpacked
from iodock.shared.errors import IodockError

SAMPLE_BYTES = 1 << 20
_MOST_LOOKED_AT = 1 << 30
Progress = Callable[[int, int | None, int], None]
"""Reports progress: called with the bytes read, the total bytes (None: not known) and the number of
records."""


class RatioError(IodockError):
    """Is raised if a file can't be read, or does not have the expected format."""


@dataclass(slots=True)
class Source:
    """Describes one input file, or holds the content of a pipe."""

    path: str
    """Path as the user wrote it; `-` for standard input."""
    content: bytes | None = None
    """Content that is used instead of a file."""
    tick: Progress | None = None
    seen: int = field(default=0, init=False)
    """Number of bytes read so far, decompressed."""

    @property
    def name(self) -> str:
        """Returns the name of the file without its folder, or `stdin` for standard input."""
        return "stdin" if self.path == "-" else Path(self.path).name

    @property
    def is_folder(self) -> bool:
        """Returns whether the path is a folder, as it is for a store."""
        return self.content is None and Path(self.path).is_dir()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yields the number and text of each line, without the line break. Bytes that are not UTF-8 are
        replaced. Raises RatioError if the file can't be read."""
        with self._open() as stream:
            try:
                for number, line in enumerate(files.lines(stream, self.path, RatioError), 1):
                    self.seen += len(line)
                    yield number, line.decode("utf-8", "replace").rstrip("\r\n")
            except UNPACK_ERRORS as error:
                raise _unreadable(self.path, error) from error

    def data(self) -> bytes:
        """Returns the whole content, decompressed. Raises RatioError if the file can't be read."""
        with self._open() as stream:
            try:
                return files.whole(stream, self.path, TIMES_AT_ONCE, RatioError)
            except UNPACK_ERRORS as error:
                raise _unreadable(self.path, error) from error

    def sample(self) -> bytes:
        """Returns the first and the last part of the file. The last part is needed because a long log has the
        output of `time` at its end. Raises RatioError if the file can't be read."""
        with self._open() as stream:
            try:
                head = stream.read(SAMPLE_BYTES)
                return head + (self._end(stream) if len(head) == SAMPLE_BYTES else b"")
            except UNPACK_ERRORS as error:
                raise _unreadable(self.path, error) from error

    def _end(self, stream: BinaryIO) -> bytes:
        size = self.total() or 0
        if isinstance(getattr(stream, "raw", None), io.FileIO):
            stream.seek(max(SAMPLE_BYTES, size - SAMPLE_BYTES))
        return _tail(stream)

    def total(self) -> int | None:
        """Returns the number of bytes of the file before decompression, or None if it is not known."""
        if self.content is not None:
            return len(self.content)
        try:
            return Path(self.path).stat().st_size
        except OSError:
            return None

    def _open(self) -> BinaryIO:
        try:
            raw: BinaryIO = io.BytesIO(self.content) if self.content is not None else _plain(self.path)
            return unpacked(raw)
        except OSError as error:
            raise _unreadable(self.path, error) from error


def source_of(path: str, standard_input: BinaryIO | None = None) -> Source:
    """Returns the file at PATH, or STANDARD_INPUT for `-`. The content of a pipe, which can be read only
    once, is kept in memory. Raises RatioError if it can't be read."""
    if path == "-" and standard_input is not None:
        return Source(path, files.whole(standard_input, "standard input", TIMES_AT_ONCE, RatioError))
    try:
        if Path(path).is_file() or Path(path).is_dir():
            return Source(path)
        return Source(path, files.content(Path(path), TIMES_AT_ONCE, RatioError))
    except OSError as error:
        raise _unreadable(path, error) from error


def _plain(path: str) -> BinaryIO:
    return files.opened(Path(path))


def _tail(stream: BinaryIO) -> bytes:
    """Returns the last SAMPLE_BYTES of the stream. Stops after _MOST_LOOKED_AT bytes, because a small
    compressed file may expand to a huge one."""
    last, previous = b"", b""
    for _ in range(_MOST_LOOKED_AT // SAMPLE_BYTES):
        if not (block := stream.read(SAMPLE_BYTES)):
            break
        previous, last = last, block
    return (previous + last)[-SAMPLE_BYTES:]


def _unreadable(path: str, error: Exception) -> RatioError:
    reason = getattr(error, "strerror", None) or str(error)
    hint = "name files with times of programs or jobs" if isinstance(error, FileNotFoundError) else None
    return RatioError(f"{path}: {reason}", hint)
