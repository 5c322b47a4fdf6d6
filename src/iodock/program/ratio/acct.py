"""Reads process accounting as the kernel writes it (pacct): records of 64 bytes in version 3 or version 2.

Source: Linux include/uapi/linux/acct.h (struct acct_v3, struct acct) and kernel/acct.c; acct(5). Times are in
1/100 s (AHZ). A comp_t has an exponent to the base of 8 in 3 bits and a fraction in 13 bits. Both byte orders
are supported, and bit 7 of the version shows which one a record has. Versions 0 and 1, which kernels before
2.6.8 wrote, are not supported and raise an error.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache

from iodock.program.ratio.reader import Reader, Reading, Sample
from iodock.program.ratio.record import Losses, Record
from iodock.program.ratio.source import RatioError

SIZE = 64
TICKS_PER_S = 100
_BIG_ENDIAN = 0x80
# The fields are: flag, version, tty, exit code, uid, gid, pid, parent, start, elapsed (float), user, system,
# 6 others, command.
_V3 = "BBHIIIIIIfHH12s16s"
# The fields are: flag, version, uid16, gid16, tty, start, user, system, elapsed, 6 others, AHZ, exit code,
# command, elapsed in 24 bits, uid, gid.
_V2 = "BBHHHIHHH12sHI17s3sII"
_LAYOUTS = {
    version | order: (struct.Struct(sign + layout), version)
    for version, layout in ((3, _V3), (2, _V2))
    for order, sign in ((0, "<"), (_BIG_ENDIAN, ">"))
}
_VERSION = re.compile(rb"[\x02\x03\x82\x83]")
_REFUSED = {0: "0 or none", 1: "1", 1 | _BIG_ENDIAN: "1"}
_LOOKED_AT = 1 << 16
_ALL_FLAGS = 0x3F
_EARLIEST = 315_532_800  # the year 1980


def sniff(sample: Sample) -> float:
    """Returns 0.95 if at least half of the records have a plausible version, command and start. Returns less
    if there are fewer such records, or if the version is not supported."""
    data = sample.data
    if len(data) < SIZE:
        return 0.0
    places = range(0, min(len(data) - SIZE, SIZE * 200) + 1, SIZE)
    good = sum(1 for at in places if _looks_right(data, at)) / len(places)
    if good >= 0.5:
        return 0.95
    if good > 0 or (b"\0" in data and _resume(data[:_LOOKED_AT], 0) is not None):
        return 0.6
    return 0.3 if _old_version(data) else 0.0


def read(reading: Reading) -> Iterator[Record]:
    """Yields one record per process. Counts damaged records as losses. Raises RatioError for an unsupported
    version."""
    source, losses = reading.source, reading.losses
    data = source.data()
    _refuse_others(data, source.path)
    at, end = 0, len(data) - SIZE
    while at <= end:
        record = _record(data, at, source.path, losses)
        if record is not None:
            yield record
            at += SIZE
        else:
            losses.count("damaged-record", f"{source.path}: byte {at}")
            at = _resume(data, at + 1) or len(data)
        source.seen = at
    if at < len(data):
        losses.count("cut-record", f"{source.path}: byte {at}")


def _record(data: bytes, at: int, path: str, losses: Losses) -> Record | None:
    layout = _LAYOUTS.get(data[at + 1])
    if layout is None or data[at] > _ALL_FLAGS:
        return None
    fields = layout[0].unpack_from(data, at)
    if layout[1] == 3:
        owner, start, real, user, system, command = (
            fields[4], fields[8], fields[9], fields[10], fields[11], fields[13],
        )  # fmt: skip
        rate = TICKS_PER_S
    else:
        owner, start, user, system, command = fields[14], fields[5], fields[6], fields[7], fields[12]
        real, rate = _ticks(fields[8]), fields[10] or TICKS_PER_S
    name = _name(command)
    if name is None or not 0 <= real < 1e12 or start < _EARLIEST:
        return None
    times = real / rate, _ticks(user) / rate, _ticks(system) / rate
    return Record(name, *times, None, 1, str(owner), "", f"{path}: byte {at}")


@cache
def _ticks(compressed: int) -> int:
    """Decodes the kernel's type comp_t and returns ticks. The upper 3 bits are an exponent, and the lower 13
    bits are a value that is multiplied by 8 to the power of the exponent."""
    return (compressed & 0x1FFF) << (3 * (compressed >> 13))


@cache
def _name(command: bytes) -> str | None:
    """Returns the command up to its first NUL byte, or None if the bytes can't be a command."""
    name = command.rstrip(b"\0")
    # The kernel stores names of at most 15 bytes, and fills the rest of the field with zeros.
    if not name or len(name) == len(command) or any(byte < 32 or byte == 127 for byte in name):
        return None
    return name.decode("utf-8", "replace")


def _looks_right(data: bytes, at: int) -> bool:
    return at + SIZE <= len(data) and _record(data, at, "", Losses()) is not None


def _resume(data: bytes, start: int) -> int | None:
    """Returns the next offset at which two valid records follow each other, or at which one valid record ends
    the file. Returns None if there is no such offset."""
    for version in _VERSION.finditer(data, start + 1):
        at = version.start() - 1
        if _looks_right(data, at):
            following = at + SIZE
            if following == len(data) or _looks_right(data, following):
                return at
    return None


def _old_version(data: bytes) -> str | None:
    """Returns the name of an unsupported version. All records must have this version, and a command at the
    offset that versions 0 and 1 use. Otherwise returns None."""
    versions = {data[at + 1] for at in range(0, len(data) - SIZE + 1, SIZE)}
    if len(versions) != 1 or len(data) % SIZE or not data:
        return None
    named = all(_name(data[at + 36 : at + 53]) for at in range(0, len(data), SIZE))
    return _REFUSED.get(versions.pop()) if named else None


def _refuse_others(data: bytes, path: str) -> None:
    if len(data) < SIZE:
        raise RatioError(
            f"{path}: {len(data)} bytes are less than one accounting record of {SIZE}",
            "copy the file again; accounting is on if the file grows",
        )
    old = _old_version(data)
    if old is not None:
        raise RatioError(
            f"{path}: accounting records of version {old}; versions 2 and 3 are read",
            f"dump-acct {path} > pacct.txt; iodock ratio pacct.txt",
        )


READER = Reader("acct", "process accounting file (pacct) of version 2 or 3", sniff, read, by="command")
