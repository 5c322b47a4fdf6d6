"""The probe store: a folder with a log for each host and month, to which records are only appended.

A record is one line between a record separator (0x1E) and a line feed, as in RFC 7464, with a CRC-32 of its
JSON in front. Damage affects only the records concerned: the reader continues at the next separator, and
counts what it could not read. Hosts never share a file, and writers on one host append under a lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from iodock.file_system.probe.records import Record, from_json, to_json
from iodock.shared.bounded import documents, files
from iodock.shared.bounded.limits import NOTE, PROBES
from iodock.shared.errors import StoreError

Progress = Callable[[int, int | None, int], None]
"""Reports progress: called with the amount done, the total, and the number of pieces."""
MARKER = "iodock-probe-store"
VERSION = b"iodock probe store 1\n"
SEPARATOR = b"\x1e"
_LOCK_SECONDS = 2.0
_FULL = "check whether the disk of the store is full"
_LINE = re.compile(rb"([0-9a-f]{8}) (\{.*\})\n", re.DOTALL)
_ROUND = re.compile(rb'[0-9a-f]{8} \{"k":"round","ts":([0-9]{1,19}),')


def host_name() -> str:
    """Name of this machine, in a form for file names."""
    return re.sub(r"[^\w.-]", "_", socket.gethostname())[:100] or "unknown"


@dataclass(slots=True)
class Losses:
    """Number of records that could not be read."""

    damaged: int = 0
    """Number of pieces that are not complete records: cut by a crash or a full disk, or overwritten."""
    unknown: int = 0
    """Number of records of a kind that this version does not know."""


class ProbeStore:
    """A probe store in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> ProbeStore:
        """Opens an existing store. Raises StoreError."""
        store = cls(folder)
        try:
            version = files.content(store.folder / MARKER, NOTE, StoreError)
        except FileNotFoundError:
            there = store.folder.exists()
            message = f"{folder}: is not a probe store" if there else f"{folder}: does not exist"
            raise StoreError(message, "create one with iodock probe run DIR -o STORE") from None
        except OSError as error:
            raise StoreError(
                f"{folder}: is not a probe store: {error.strerror}", "give its folder"
            ) from error
        if version != VERSION:
            said = version[:40].decode("utf-8", "replace").strip()
            raise StoreError(f"{folder}: is of another version: {said}", "a newer iodock can read it")
        return store

    @classmethod
    def prepared(cls, folder: str | os.PathLike[str]) -> ProbeStore:
        """Opens a store for writing, and creates it if it does not exist yet. Raises StoreError."""
        store = cls(folder)
        if (store.folder / MARKER).exists():
            return cls.open(folder)
        try:
            store.folder.mkdir(parents=True, exist_ok=True)
            strange = [one for one in store.folder.iterdir() if not one.name.startswith(MARKER)]
            if strange and not (store.folder / MARKER).exists():
                raise StoreError(f"{folder}: exists and is not a probe store", "name a new folder with -o")
            # The marker is created as a whole or not at all, even if two processes create it at the same
            # time.
            part = store.folder / f"{MARKER}.{host_name()}.{os.getpid()}"
            part.write_bytes(VERSION)
            part.replace(store.folder / MARKER)
        except OSError as error:
            raise StoreError(
                f"{folder}: can't be created: {error.strerror}", "name another folder"
            ) from error
        return store

    def append(self, record: Record) -> None:
        """Appends a record. Several writers may do this at the same time. Raises StoreError."""
        month = datetime.fromtimestamp(record.ts / 1e9, UTC).strftime("%Y-%m")
        path = self.folder / f"{host_name()}-{month}.log"
        content = framed(record)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                _lock(descriptor)
                written = os.write(descriptor, content)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(f"{path}: can't be written: {error.strerror}", _FULL) from error
        if written != len(content):
            raise StoreError(f"{path}: only a part of a record was written", _FULL)

    def records(
        self, losses: Losses, since_ns: int | None = None, progress: Progress | None = None
    ) -> Iterator[Record]:
        """Yields all records by host, in the order of writing. SINCE: only from that month on. Counts LOSSES,
        and calls PROGRESS. Raises StoreError."""
        first = datetime.fromtimestamp(since_ns / 1e9, UTC).strftime("%Y-%m") if since_ns else ""
        paths = [path for path in sorted(self.folder.glob("*.log")) if path.stem[-7:] >= first]
        done = count = 0
        try:
            total = sum(path.stat().st_size for path in paths)
            for path in paths:
                content = files.content(path, PROBES, StoreError)
                for record in parsed(content, losses, since_ns or 0):
                    count += 1
                    yield record
                done += len(content)
                if progress is not None:
                    progress(done, total, count)
        except OSError as error:
            raise StoreError(
                f"{self.folder}: can't be read: {error}",
                "check the permissions of the store's folder and files",
            ) from error


def framed(record: Record) -> bytes:
    """Returns the bytes of a record as they are in the file."""
    said = json.dumps(to_json(record), separators=(",", ":")).encode()
    return b"%b%08x %b\n" % (SEPARATOR, zlib.crc32(said), said)


def parsed(content: bytes, losses: Losses, since_ns: int = 0) -> Iterator[Record]:
    """Yields the complete records in CONTENT, whatever is between them. Rounds before SINCE are skipped."""
    head, *pieces = content.split(SEPARATOR)
    losses.damaged += bool(head)
    for piece in pieces:
        if since_ns and (round_ts := _ROUND.match(piece)) and int(round_ts[1]) < since_ns:
            continue
        line = _LINE.match(piece)
        if line is None or zlib.crc32(line[2]) != int(line[1], 16):
            losses.damaged += 1
            continue
        # If an incomplete record follows a complete one, it has no separator of its own.
        losses.damaged += line.end() != len(piece)
        try:
            record = from_json(documents.from_json(line[2]))
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
            losses.damaged += 1
            continue
        if record is None:
            losses.unknown += 1
        else:
            yield record


def _lock(descriptor: int) -> None:
    """Locks the file. It waits for other writers of this host, but not forever: appending without a lock is
    safe on every local file system, and an incomplete record affects only itself."""
    until = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < until:
        with suppress(BlockingIOError):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:
                return  # Some file systems do not support locks.
            return
        time.sleep(0.01)
