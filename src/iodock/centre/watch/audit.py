"""Writes the audit log, which has JSON lines about actions, and about actions that were not taken with the
reasons. There is one file for each month. Lines are only appended to it, and the whole file is removed when
it is too old."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_json
from iodock.shared.errors import StoreError

_NAME = re.compile(r"audit-(20[0-9]{2})-(0[1-9]|1[0-2])\.jsonl")
_SECOND = 1_000_000_000
_DAY_S = 86_400


class Audit:
    """The audit log in one folder. The caller must ensure that only one thread writes at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, now: int, what: str, **facts: object) -> None:
        """Writes one line and waits until it is on the disk. NOW is in ns since the epoch. Raises
        StoreError."""
        at = time.gmtime(now / _SECOND)
        line = json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", at), "what": what, **facts})
        path = self._folder / time.strftime("audit-%Y-%m.jsonl", at)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                # A crash or a full disk may have left an incomplete last line. The new entry then begins with
                # a line break.
                os.write(descriptor, (b"" if _is_whole(descriptor) else b"\n") + line.encode() + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(
                f"{path}: {error.strerror}", "no action is taken that can't be logged"
            ) from error

    def lines(self) -> Iterator[dict[str, object]]:
        """Yields all readable entries, the oldest first. Raises StoreError."""
        for path in self._files():
            try:
                with files.opened(path) as file:
                    yield from _read(file, path)
            except OSError as error:
                raise StoreError(f"{path}: {error.strerror}") from error

    def forget(self, before: int) -> None:
        """Removes the files of months that ended before BEFORE (ns since the epoch). Raises StoreError."""
        for path in self._files():
            if _end_of(path.name) * _SECOND < before:
                try:
                    path.unlink()
                except OSError as error:
                    raise StoreError(f"{path}: {error.strerror}", "remove it by hand") from error

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))


def _is_whole(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"


def _read(file: object, path: Path) -> Iterator[dict[str, object]]:
    for line in files.lines(file, path, StoreError):  # type: ignore[arg-type]
        try:
            found = from_json(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _end_of(name: str) -> int:
    """Returns the time at which the month of a file has ended in every time zone, in s since the epoch."""
    found = _NAME.fullmatch(name)
    assert found
    year, month = int(found[1]), int(found[2])
    first = time.strptime(f"{year + month // 12}-{month % 12 + 1:02}", "%Y-%m")
    return int(time.mktime(first)) + _DAY_S
