"""Decompresses gzip, xz and bzip2 files while they are read. The memory for decompression is limited."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import Any, BinaryIO

from iodock.shared.bounded.limits import MIB, MOST_UNPACKING_BYTES

UNPACK_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""Exceptions that reading from `unpacked` may raise."""
_PIECE = MIB


def unpacked(raw: BinaryIO) -> BinaryIO:
    """Returns a stream with the content of RAW, which must be seekable. If RAW begins with the signature of
    gzip, xz or bzip2, the stream decompresses it. Reading from the stream raises UNPACK_ERRORS."""
    magic = raw.read(6)
    raw.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw))
    if magic.startswith(b"BZh"):
        return io.BufferedReader(bz2.BZ2File(raw))
    if magic.startswith(b"\xfd7zXZ\x00"):
        return io.BufferedReader(_Xz(raw))
    return raw


class _Xz(io.RawIOBase):
    """Decompresses xz with at most 128 MiB of memory. Without a limit, the header of a file could demand up
    to 4 GiB."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._part: lzma.LZMADecompressor | None = None
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._part is None:
                if not self._has_next():
                    return 0
                self._part = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_UNPACKING_BYTES)
            if self._part.needs_input and not self._rest:
                self._rest = self._packed.read(_PIECE)
                if not self._rest:
                    raise EOFError("the xz data is truncated")
            found = self._part.decompress(self._rest, len(buffer))
            self._rest = b""
            if self._part.eof:
                self._rest, self._part = self._part.unused_data, None
            if found:
                buffer[: len(found)] = found
                return len(found)

    def _has_next(self) -> bool:
        """Returns whether another compressed part follows. A file may consist of several concatenated parts,
        with zero bytes between them."""
        while not (rest := self._rest.lstrip(b"\0")):
            self._rest = self._packed.read(_PIECE)
            if not self._rest:
                return False
        self._rest = rest
        return True

    def close(self) -> None:
        self._packed.close()
        super().close()
