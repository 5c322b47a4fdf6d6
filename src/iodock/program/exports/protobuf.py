"""Encodes messages of protocol buffers (https://protobuf.dev/programming-guides/encoding/)."""

from __future__ import annotations

from collections.abc import Iterable

_TEXT = 2
"""The wire type of texts, messages and packed numbers."""


def varint(value: int) -> bytes:
    """Encodes a number from 0 to 2**64 - 1. A negative number is encoded as its two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encodes a field with an integer. Writes nothing for 0, because protocol buffers read a missing field as
    0."""
    return varint(field << 3) + varint(value) if value else b""


def text(field: int, value: bytes) -> bytes:
    """Encodes a field that contains a text or another message."""
    return varint(field << 3 | _TEXT) + varint(len(value)) + value


def packed(field: int, values: Iterable[int]) -> bytes:
    """Encodes a field that contains several integers."""
    return text(field, b"".join(map(varint, values)))
