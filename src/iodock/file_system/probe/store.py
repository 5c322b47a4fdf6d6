"""Reads and writes the probe store: a folder with one log file for each host and month. Records are only
appended.

A record is one line between a record separator (0x1E) and a line feed, as in RFC 7464. The CRC-32 of its JSON
precedes the JSON. If a record is damaged, the reader counts it and continues at the next separator, so that
other records remain readable. Each host has files of its own, and writers on the same host lock the file.
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
    """Returns the name of this machine. Characters that are unsuitable for file names are replaced."""
    return re.sub(r"[^\w.-]", "_", socket.gethostname())[:100] or "unknown"


@dataclass(slots=True)
class Losses:
    """Counts records that could not be read, by reason."""

    damaged: int = 0
    """Number of pieces that are not complete records: cut by a crash or a full disk, or overwritten."""
    unknown: int = 0
    """Number of records of a kind that this version does not know."""


class ProbeStore:
    """A probe store, which is a folder. Its methods append and read records."""

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
            # The marker is written under another name and then renamed. Other processes therefore never see
            # an incomplete marker, even if two of them create the store at the same time.
            part = store.folder / f"{MARKER}.{host_name()}.{os.getpid()}"
            part.write_bytes(VERSION)
            part.replace(store.folder / MARKER)
        except OSError as error:
            raise StoreError(
                f"{folder}: can't be created: {error.strerror}", "name another folder"
            ) from error
        return store

    def append(self, record: Record) -> None:
        """Appends a record to the log of this host and month. Several processes may append at the same time.
        Raises StoreError."""
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
        """Yields the records of all hosts, in the order in which they were written to each file. With
        SINCE_NS, files of earlier months and earlier rounds are left out. Unreadable records are counted in
        LOSSES. Raises StoreError."""
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
    """Returns a record in the form in which it is written to the file."""
    said = json.dumps(to_json(record), separators=(",", ":")).encode()
    return b"%b%08x %b\n" % (SEPARATOR, zlib.crc32(said), said)


def parsed(content: bytes, losses: Losses, since_ns: int = 0) -> Iterator[Record]:
    """Yields the complete records in CONTENT. Damaged parts are counted in LOSSES. Rounds before SINCE_NS are
    skipped."""
    head, *pieces = content.split(SEPARATOR)
    losses.damaged += bool(head)
    for piece in pieces:
        if since_ns and (round_ts := _ROUND.match(piece)) and int(round_ts[1]) < since_ns:
            continue
        line = _LINE.match(piece)
        if line is None or zlib.crc32(line[2]) != int(line[1], 16):
            losses.damaged += 1
            continue
        # Bytes after the line feed of a record belong to another record whose separator is damaged. They
        # count as one damaged record.
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
    """Locks the file. After two seconds the function returns without the lock, because appending without it
    is safe on local file systems, and a record that is damaged elsewhere affects no other record."""
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
