"""Messages of protocol buffers, written (https://protobuf.dev/programming-guides/encoding/)."""

from __future__ import annotations

from collections.abc import Iterable

_TEXT = 2
"""The wire type of texts, messages and packed numbers."""


def varint(value: int) -> bytes:
    """A number from 0 to 2**64 - 1; a negative one as its two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encodes a field of a whole number; a missing field means 0."""
    return varint(field << 3) + varint(value) if value else b""


def text(field: int, value: bytes) -> bytes:
    """A field of a text or of another message."""
    return varint(field << 3 | _TEXT) + varint(len(value)) + value


def packed(field: int, values: Iterable[int]) -> bytes:
    """A field of several numbers."""
    return text(field, b"".join(map(varint, values)))
