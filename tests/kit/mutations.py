"""Provides ways to damage an input: bits, lines, numbers, encodings, and pieces of other inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Mutated:
    """A damaged input, and what its reader may do with it."""

    content: bytes
    may_shrink: bool
    """Whether removed parts leave no trace, such as a missing line."""
    unreadable_lines: int = 0
    """Unreadable lines that were inserted."""


Mutation = Callable[[Random, bytes, bytes], Mutated]
"""Random generator, the input, another input."""
_HUGE = (
    b"18446744073709551615",
    b"18446744073709551616",
    b"9" * 30,
    b"9" * 400,
    b"9" * 5000,
    b"3.7e18",
    b"-1",
    b"-9223372036854775808",
    b"nan",
    b"inf",
    b"1e308",
    b"1e-320",
    b"0x" + b"f" * 40,
    b"0",
    b"1751892628",
    b"1.2.3",
    b"0000000000000000000000001",
    b"\xd9\xa3\xd9\xa4",
    b"1_000",
    b"1e999999999",
)


def _lines(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True)


def bit_flips(chance: Random, content: bytes, other: bytes) -> Mutated:
    changed = bytearray(content or b"x")
    for _ in range(chance.choice((1, 2, 8, 40))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return Mutated(bytes(changed), False)


def cut(chance: Random, content: bytes, other: bytes) -> Mutated:
    return Mutated(content[: chance.randrange(len(content) + 1)], True)


def cut_at_the_start(chance: Random, content: bytes, other: bytes) -> Mutated:
    return Mutated(content[chance.randrange(len(content) + 1) :], True)


def doubled_lines(chance: Random, content: bytes, other: bytes) -> Mutated:
    lines = _lines(content) or [b""]
    at = chance.randrange(len(lines))
    several = lines[at : at + chance.choice((1, 1, 3, 50))]
    return Mutated(b"".join([*lines[:at], *several, *lines[at:]]), True)


def deleted_lines(chance: Random, content: bytes, other: bytes) -> Mutated:
    lines = _lines(content) or [b""]
    at = chance.randrange(len(lines))
    return Mutated(b"".join(lines[:at] + lines[at + chance.choice((1, 1, 3, 50)) :]), True)


def lines_in_another_order(chance: Random, content: bytes, other: bytes) -> Mutated:
    lines = _lines(content) or [b""]
    at = chance.randrange(len(lines))
    some = lines[at : at + 20]
    chance.shuffle(some)
    return Mutated(b"".join([*lines[:at], *some, *lines[at + 20 :]]), True)


def spliced(chance: Random, content: bytes, other: bytes) -> Mutated:
    begin = chance.randrange(len(other) + 1)
    piece = other[begin : begin + chance.choice((10, 300, 5000, 1 << 20))]
    at = chance.randrange(len(content) + 1)
    return Mutated(content[:at] + piece + content[at:], True)


def huge_numbers(chance: Random, content: bytes, other: bytes) -> Mutated:
    found = list(re.finditer(rb"\d+(?:\.\d+)?", content))
    for one in sorted(
        chance.sample(found, min(len(found), chance.choice((1, 1, 5)))), key=lambda it: -it.start()
    ):
        content = content[: one.start()] + chance.choice(_HUGE) + content[one.end() :]
    return Mutated(content, False)


def nested(chance: Random, content: bytes, other: bytes) -> Mutated:
    at = chance.randrange(len(content) + 1)
    sign = chance.choice((b"[", b"{", b"(", b'{"a":', b"<", b"[{"))
    return Mutated(content[:at] + sign * chance.choice((20, 2000, 200_000)) + content[at:], True)


def nul_bytes(chance: Random, content: bytes, other: bytes) -> Mutated:
    at = chance.randrange(len(content) + 1)
    return Mutated(content[:at] + b"\0" * chance.choice((1, 7, 4096)) + content[at:], False)


def other_encodings(chance: Random, content: bytes, other: bytes) -> Mutated:
    at = chance.randrange(len(content) + 1)
    garbage = chance.choice((b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80" * 100))
    if chance.random() < 0.2:
        return Mutated(content.decode("latin-1").encode("utf-16"), True)
    return Mutated(content[:at] + garbage + content[at:], False)


def long_lines(chance: Random, content: bytes, other: bytes) -> Mutated:
    at = chance.randrange(len(content) + 1)
    filler = chance.choice((b"A", b"9", b" ", b"0x", b"\\377", b"<", b",")) * chance.choice(
        (5000, 1 << 20, 17 << 20)
    )
    return Mutated(content[:at] + filler[: 18 << 20] + content[at:], True)


def lines_joined(chance: Random, content: bytes, other: bytes) -> Mutated:
    lines = _lines(content) or [b""]
    at = chance.randrange(len(lines))
    joined = b"".join(lines[at : at + 2]).replace(b"\n", b" ")
    return Mutated(b"".join([*lines[:at], joined + b"\n", *lines[at + 2 :]]), True)


def unreadable_lines(chance: Random, content: bytes, other: bytes) -> Mutated:
    lines, count = _lines(content) or [b""], chance.choice((1, 3, 40))
    places = _outside_of_environments(lines)
    for at in sorted((chance.choice(places) for _ in range(count)), reverse=True):
        garbage = bytes(chance.choice(b"%&~#*!?;^") for _ in range(chance.choice((9, 60))))
        lines.insert(at, garbage + b"\n")
    return Mutated(b"".join(lines), False, count)


_CALL = re.compile(rb"(\d[\d/]*:)?\s*([\d.]+\s+)*\w+\(")


def _outside_of_environments(lines: list[bytes]) -> list[int]:
    """Returns the line numbers outside of the environments that truss prints, because an environment variable
    may contain any line."""
    places, inside = [], False
    for at, line in enumerate(lines, 1):
        inside = b"envp:" in line or (inside and not _CALL.match(line))
        if not inside:
            places.append(at)
    return places or [len(lines)]


def line_ends_of_windows(chance: Random, content: bytes, other: bytes) -> Mutated:
    return Mutated(content.replace(b"\n", b"\r\n"), False)


def nothing(chance: Random, content: bytes, other: bytes) -> Mutated:
    return Mutated(chance.choice((b"", b"\n", b"\0", b" " * 5000, b"\n" * 5000)), True)


MUTATIONS: tuple[Mutation, ...] = (
    bit_flips,
    bit_flips,
    cut,
    cut_at_the_start,
    doubled_lines,
    deleted_lines,
    lines_in_another_order,
    spliced,
    huge_numbers,
    huge_numbers,
    huge_numbers,
    nested,
    nul_bytes,
    other_encodings,
    long_lines,
    lines_joined,
    unreadable_lines,
    line_ends_of_windows,
    nothing,
)
