"""An input file with times. It is read as lines or bytes, compressed or not, and gives a sample for detecting
its format."""

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
    """A file can't be read, or does not have the given format."""


@dataclass(slots=True)
class Source:
    """One file, or the content of a pipe."""

    path: str
    """Path as the user wrote it; `-` for standard input."""
    content: bytes | None = None
    """Content that is used instead of a file."""
    tick: Progress | None = None
    seen: int = field(default=0, init=False)
    """Number of bytes read so far, decompressed."""

    @property
    def name(self) -> str:
        """Name of the file without its folder."""
        return "stdin" if self.path == "-" else Path(self.path).name

    @property
    def is_folder(self) -> bool:
        """Whether the path is a folder, as for stores."""
        return self.content is None and Path(self.path).is_dir()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yields line number and text without the line's end. Bytes that are not UTF-8 are replaced. Raises
        RatioError."""
        with self._open() as stream:
            try:
                for number, line in enumerate(files.lines(stream, self.path, RatioError), 1):
                    self.seen += len(line)
                    yield number, line.decode("utf-8", "replace").rstrip("\r\n")
            except UNPACK_ERRORS as error:
                raise _unreadable(self.path, error) from error

    def data(self) -> bytes:
        """Returns all bytes, decompressed. Raises RatioError."""
        with self._open() as stream:
            try:
                return files.whole(stream, self.path, TIMES_AT_ONCE, RatioError)
            except UNPACK_ERRORS as error:
                raise _unreadable(self.path, error) from error

    def sample(self) -> bytes:
        """Returns the first and the last part of the file, because the output of `time` is at the end of a
        long log. Raises RatioError."""
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
        """Total number of bytes; None if it is not known beforehand."""
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
    """Returns the file of this name, or STANDARD_INPUT for `-`. Input that can be read only once, such as a
    pipe, is kept in memory. Raises RatioError."""
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
    """Returns the last part of the rest. It reads up to a limit, because a compressed file may expand without
    end."""
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
