"""Interprets a volume. It states each source with its limits, the actual volume divided by the expected
one, and the next step of the method with its reason (SS-ken report, 2.3.2)."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from iodock.program.findings import REDUNDANT_FACTOR
from iodock.program.volume.measure import Volume
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar
from iodock.shared.settings import Settings

CACHED_SHARE = 0.5
"""If a smaller share of the bytes read came from the device, a cache provided most of them."""
KNOWN_SHARE = 0.9
"""If at least this share of the bytes is known to belong to files, it is compared with the files' sizes."""
SEARCHERS = frozenset(
    ("sqlite3", "postgres", "mysqld", "mariadbd", "mongod", "redis-server", "rocksdb", "grep", "rg", "find",
     "locate", "blastn", "blastp", "mmseqs", "git")
)  # fmt: skip
"""Programs that search or maintain a database. Small I/O is normal for them."""


class Step(enum.Enum):
    """The next step that iodock recommends to the user."""

    NOTHING = N_("No further step: this program does not wait for I/O.")
    TRACE_REDUNDANT = N_(
        "Step 3, iodock record: far more bytes are transferred than the files hold, so find what is read "
        "or written again."
    )
    TRACE_METADATA = N_(
        "Step 3, iodock record: the CPU is idle although the volume is as expected, so look for metadata "
        "calls, small requests and waiting."
    )
    ADMINISTRATOR = N_(
        "Step 4, iodock bundle: the volume is as expected and the rate is below this file system's typical "
        "value, so ask whether it was overloaded at that time."
    )
    TRACE = N_("Step 3, iodock record: to see which files and calls the time goes to.")


@dataclass(frozen=True, slots=True)
class Line:
    """Holds one source of counters and its bytes for each direction."""

    source: str
    """Name of the source: `processes`, `device`, `blocks`, or the mount point."""
    read_bytes: int | None
    written_bytes: int | None
    meaning: Message


@dataclass(frozen=True, slots=True)
class Reading:
    """Holds all conclusions about one volume."""

    lines: tuple[Line, ...]
    expected_bytes: int
    actual_bytes: int
    factor: float | None
    """Actual volume divided by expected volume; None if no file was found, or if pipes, sockets or devices
    may account for the difference."""
    utilisation: float | None
    """User CPU time divided by wall time (of one core)."""
    remarks: tuple[Message, ...]
    step: Step


def read_volume(volume: Volume, settings: Settings, expected_bytes: int | None = None) -> Reading:
    """Interprets a volume. EXPECTED_BYTES is the volume that a user expects; without it, the sizes of the
    open files are used."""
    expected = volume.file_bytes if expected_bytes is None else expected_bytes
    actual = volume.io.rchar + volume.io.wchar
    of_files = sum(_of_files(volume))
    factor = actual / expected if expected and of_files >= KNOWN_SHARE * actual else None
    used = (
        volume.user_seconds / volume.wall_seconds
        if volume.user_seconds is not None and volume.wall_seconds
        else None
    )
    return Reading(
        lines=tuple(_lines(volume)),
        expected_bytes=expected,
        actual_bytes=actual,
        factor=factor,
        utilisation=used,
        remarks=tuple(_remarks(volume, expected, factor, expected_bytes is not None)),
        step=_step(volume, expected, factor, used, settings),
    )


def _of_files(volume: Volume) -> tuple[int, int]:
    """Returns the bytes read from and written to files. If open files were not checked, it returns all
    bytes."""
    read, written = volume.file_read, volume.file_written
    return (
        volume.io.rchar if read is None else read,
        volume.io.wchar if written is None else written,
    )


def _lines(volume: Volume) -> Iterator[Line]:
    io = volume.io
    yield Line("processes", io.rchar, io.wchar, Message(_PROCESSES))
    yield Line("device", io.read_bytes, io.write_bytes - io.cancelled_write_bytes, Message(_DEVICE))
    if volume.block_read_bytes is not None:
        yield Line("blocks", volume.block_read_bytes, volume.block_written_bytes, Message(_BLOCKS))
    for one in volume.mounts:
        yield Line(
            one.mount, one.read_bytes, one.written_bytes, Message(_NFS if one.kind == "nfs" else _LUSTRE)
        )
        if one.server_read_bytes is not None:
            server = f"{one.mount} (server)"
            yield Line(server, one.server_read_bytes, one.server_written_bytes, Message(_SERVER))


_PROCESSES = N_(
    "Bytes that read and write calls transferred (/proc/PID/io: rchar, wchar). Cached data, pipes and "
    "sockets are included; mmap is not."
)
_DEVICE = N_(
    "Bytes read from and written to devices for the program's processes (read_bytes, write_bytes). Data "
    "from a cache is not included; read-ahead and mmap are. Network file systems may not be included."
)
_BLOCKS = N_(
    "The same bytes as those of devices, counted in blocks of 512 bytes (getrusage, GNU time's %I and %O)."
)
_NFS = N_(
    "Bytes that all programs of this node transferred through this NFS mount (mountstats), including its "
    "cache, but not mmap."
)
_SERVER = N_("Bytes transferred to and from the NFS server, excluding this node's cache.")
_LUSTRE = N_(
    "Bytes that all programs of this node transferred through this Lustre mount (llite), including its cache."
)


def _remarks(volume: Volume, expected: int, factor: float | None, told: bool) -> Iterator[Message]:
    io = volume.io
    if not told:
        values: dict[str, Scalar] = {"files": volume.files, "size_bytes": volume.file_bytes}
        yield Message(
            N_("Expected: regular files that were found open: {files}, with a total size of "
               "{size_bytes}. Files that were open only briefly may be missing; give the size with "
               "--expect SIZE if you know it."), values)  # fmt: skip
    if factor is None and expected:
        read, written = _of_files(volume)
        values = {"moved_bytes": io.rchar + io.wchar, "read_bytes": read, "written_bytes": written}
        yield Message(
            N_("Of the {moved_bytes} only this is known to be of files: {read_bytes} read, "
               "{written_bytes} written. For the rest pipes, sockets or devices (/dev/null, a terminal)"
               " were open, or it was transferred by programs that ended before they could be examined,"
               " so it is not compared with the files' sizes."), values)  # fmt: skip
    elif factor is None:
        yield Message(N_("No regular file was found open, so there is nothing to compare the volume with."))
    if io.rchar > 1 << 20 and io.read_bytes < CACHED_SHARE * io.rchar:
        values = {"read_bytes": io.rchar, "device_bytes": io.read_bytes}
        yield Message(
            N_("Of {read_bytes} read only {device_bytes} came from a device: the rest came from a "
               "cache, a pipe or the network."), values)  # fmt: skip
    if io.read_bytes > 2 * io.rchar and io.read_bytes > 1 << 20:
        yield Message(
            N_("The device transferred more than was read: read-ahead, or files mapped into memory (mmap).")
        )
    if is_searcher(volume.command):
        yield Message(
            N_("This program searches or keeps a database: small I/O is normal for it, so its rate is "
               "not compared with the performance of the file system."))  # fmt: skip


def is_searcher(command: str) -> bool:
    """Returns whether the command is a search tool, for which small I/O is normal."""
    return PurePath(command).name in SEARCHERS


def _step(
    volume: Volume, expected: int, factor: float | None, used: float | None, settings: Settings
) -> Step:
    if used is not None and used >= settings.ratio.compute_above:
        return Step.NOTHING
    # Only the larger of the two directions is compared with the expected volume. A program that reads data
    # once and writes it to a pipe, or back in place, moves it twice, which is not a problem.
    if expected and max(_of_files(volume)) >= REDUNDANT_FACTOR * expected:
        return Step.TRACE_REDUNDANT
    if _is_slower_than_typical(volume, settings) and not is_searcher(volume.command):
        return Step.ADMINISTRATOR
    if factor is not None and used is not None and used < settings.ratio.io_below:
        return Step.TRACE_METADATA
    return Step.TRACE


def _is_slower_than_typical(volume: Volume, settings: Settings) -> bool:
    """Returns whether the program moved much data through a mount, but at less than half of the mount's
    typical rate."""
    return any(_below(one.read_bytes, typical.read_bytes_per_s, volume)
               or _below(one.written_bytes, typical.write_bytes_per_s, volume)
               for one in volume.mounts if (typical := settings.file_system(one.mount)))  # fmt: skip


def _below(moved: int, typical: float | None, volume: Volume) -> bool:
    # At the typical rate the file system would have been busy for `needed` seconds. If that is below 10 % of
    # the run, the file system was mostly idle, so the rate says nothing. If it is 50 % or more, the rate is
    # at least half of the typical one.
    if typical is None or not volume.wall_seconds:
        return False
    needed = moved / typical
    return 0.1 * volume.wall_seconds < needed < 0.5 * volume.wall_seconds
