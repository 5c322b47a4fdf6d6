"""Decodes messages of protocol buffers according to https://protobuf.dev/programming-guides/encoding/."""

from __future__ import annotations

from typing import Any


def fields(message: bytes) -> list[tuple[int, Any]]:
    """Returns the fields of a protocol buffers message as (field number, value)."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        else:
            assert key & 7 == 2, key
            length = varint()
            found.append((key >> 3, message[at : at + length]))
            assert len(found[-1][1]) == length
            at += length
    return found


def numbers(packed: bytes) -> list[int]:
    found, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def grouped(message: bytes) -> dict[int, list[Any]]:
    """Returns the values of a message by field number."""
    found: dict[int, list[Any]] = {}
    for field, value in fields(message):
        found.setdefault(field, []).append(value)
    return found
