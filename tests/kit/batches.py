"""Encodes an agent's batches by hand: an independent implementation of the format of
crates/iodock-samples."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

BYTES, COUNT, LEVEL = 1, 0, 9
"""Numbers of quantities."""
SERVER, SESSION = 1, 4
"""Numbers of evidences."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def signed(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(len(raw)) + raw


def several(items: list[bytes]) -> bytes:
    return varint(len(items)) + b"".join(items)


def optional(value: int | None) -> bytes:
    return b"\0" if value is None else b"\1" + signed(value)


def owner(job: str | bytes, user: str = "", evidence: int = SERVER, session: str = "") -> bytes:
    return varint(evidence) + text(job) + text(user) + text(session) + text("")


@dataclass
class Entry:
    job: str | bytes
    values: dict[tuple[str, int], int]
    start: int | None = None
    updated: int | None = None
    user: str = ""
    evidence: int = SERVER
    session: str = ""

    def encoded(self, names: list[str]) -> bytes:
        values = [
            varint(names.index(name)) + varint(quantity) + varint(0) + varint(value)
            for (name, quantity), value in self.values.items()
        ]
        who = owner(self.job, self.user, self.evidence, self.session)
        return who + several(values) + optional(self.start) + optional(self.updated)


@dataclass
class Part:
    time: int
    entries: list[Entry] = field(default_factory=list)
    source: str = "obdfilter_job_stats"
    file_system: str = "lfs"
    target: str = "lfs-OST0000"
    full: bool = False
    gone: list[str] = field(default_factory=list)
    falls: bool = False
    """Sums over existing objects."""

    def encoded(self) -> bytes:
        names = sorted({name for entry in self.entries for name, _ in entry.values})
        place = text(self.source) + text(self.file_system) + text(self.target)
        reading = bytes([self.falls]) + signed(self.time) + bytes([self.full]) + varint(0) + b"\1"
        entries = several([entry.encoded(names) for entry in self.entries])
        return place + reading + several([text(name) for name in names]) + entries + several(
            [owner(job) for job in self.gone]
        )  # fmt: skip


@dataclass
class Event:
    time: int
    kind: str
    severity: int = 1
    """0 note, 1 warning, 2 error."""
    source: str = "md"
    file_system: str = ""
    target: str = "md0"
    count: int = 1
    message: str = "1 of 2 members in use [U_]"
    last: int | None = None

    def encoded(self) -> bytes:
        last = self.time if self.last is None else self.last
        place = text(self.source) + text(self.file_system) + text(self.target)
        what = text(self.kind) + varint(self.severity) + place
        return signed(self.time) + signed(last) + what + varint(self.count) + text(self.message)


def frame(
    sequence: int,
    parts: list[Part],
    *,
    spool: bytes = b"S" * 16,
    host: str = "oss01",
    dropped: int = 0,
    events: list[Event] | None = None,
    names: list[tuple[str | bytes, str, str | bytes]] | None = None,
    named_at: int = 0,
) -> bytes:
    """Encodes one batch. Its time is that of its last part or event. Without EVENTS or NAMES it has the form
    of older agents, which did not send them. NAMES: (job, user, name), sent at NAMED_AT."""
    times = [part.time for part in parts] + [event.time for event in events or []] + [named_at]
    moment = max(times, default=0)
    plain = b"".join(
        [spool, varint(sequence), text(host), signed(moment), varint(dropped),
         several([part.encoded() for part in parts]), varint(0)]
    )  # fmt: skip
    if events is None and names is None:
        return framed(sequence, plain)
    plain += several([event.encoded() for event in events or []])
    if names is None:
        return framed(sequence, plain, version=2)
    plain += several([text(job) + text(user) + text(name) for job, user, name in names])
    return framed(sequence, plain, version=3)


def framed(sequence: int, plain: bytes, version: int = 1) -> bytes:
    payload = literal_block(plain)
    header = b"IODOCS" + struct.pack("<HQII", version, sequence, len(payload), len(plain))
    return header + struct.pack("<I4x", zlib.crc32(header + payload)) + payload


def literal_block(plain: bytes) -> bytes:
    """Returns PLAIN as an LZ4 block that consists of literals only: valid, but not compressed."""
    length = len(plain)
    if length < 15:
        return bytes([length << 4]) + plain
    rest, more = length - 15, bytearray()
    while rest >= 255:
        more.append(255)
        rest -= 255
    return bytes([0xF0, *more, rest]) + plain
