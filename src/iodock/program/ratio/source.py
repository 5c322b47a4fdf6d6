"""An input file for times: as lines or bytes, compressed or not, with a sample for detecting its format."""

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
"""Called with the bytes read, the total bytes (None: not known) and the number of records."""


class RatioError(IodockError):
    """A file that can't be read, or not in the given format."""


@dataclass(slots=True)
class Source:
    """One file, or the content of a pipe."""

    path: str
    """As the user wrote it; `-` for standard input."""
    content: bytes | None = None
    """Content to use instead of a file."""
    tick: Progress | None = None
    seen: int = field(default=0, init=False)
    """Bytes read so far, decompressed."""

    @property
    def name(self) -> str:
        """The file's own name."""
        return "stdin" if self.path == "-" else Path(self.path).name

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, as stores are."""
        return self.content is None and Path(self.path).is_dir()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Line number and text without its end; bytes that are no UTF-8 are replaced. Raises RatioError."""
        with self._open() as stream:
            try:
                for number, line in enumerate(files.lines(stream, self.path, RatioError), 1):
                    self.seen += len(line)
                    yield number, line.decode("utf-8", "replace").rstrip("\r\n")
            except UNPACK_ERRORS as error:
                raise _unreadable(self.path, error) from error

    def data(self) -> bytes:
        """All bytes, unpacked. Raises RatioError."""
        with self._open() as stream:
            try:
                return files.whole(stream, self.path, TIMES_AT_ONCE, RatioError)
            except UNPACK_ERRORS as error:
                raise _unreadable(self.path, error) from error

    def sample(self) -> bytes:
        """The first and the last part: the output of `time` is at the end of a long log. Raises
        RatioError."""
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
        """Total bytes; None if that is not known beforehand."""
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
    """The file of that name, or STANDARD_INPUT for `-`. Input that can be read only once, such as a pipe, is
    kept in memory. Raises RatioError."""
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
    """The last part of the rest, up to a limit: a compressed file may expand without an end."""
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
