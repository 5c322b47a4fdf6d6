"""Computes and verifies checksums of a store's files. The checksums are in the manifest, and a file is
verified before it is read."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iodock import _native

DIFFERS = "is damaged: its bytes are not those that were written (checksum)"
AGAIN = "copy it again from a complete store, or import or record again"
CHANGED = 'if you changed it yourself, remove the line "checksum" from it'
NONE = "this store has no checksums, so damage to its files may go unnoticed"

_Stamp = tuple[int, int, int, int, int]
_MOST_KNOWN = 4096


class _Computed:
    """Stores the checksums that this process computed. If a store is opened several times, its files are then
    read only once for this."""

    def __init__(self) -> None:
        self._sums: dict[_Stamp, str] = {}
        self._lock = threading.Lock()

    def of(self, path: Path) -> str:
        """Returns the checksum of a file. Raises OSError."""
        stamp = _stamp(path)
        with self._lock:
            found = self._sums.get(stamp)
        if found is None:
            found = _native.file_checksum(path)
            with self._lock:
                if len(self._sums) >= _MOST_KNOWN:
                    self._sums.clear()
                # The key contains the file's size and times. If the file changes, the key changes as well,
                # and the checksum is computed again.
                self._sums[stamp] = found
        return found


_computed = _Computed()


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_as_written(path: Path, checksum: str) -> bool:
    """Returns whether the file has the checksum that was computed when it was written. Returns False if the
    file can't be read."""
    try:
        return _computed.of(path) == checksum
    except OSError:
        return False


def is_damaged(path: Path, checksum: str | None) -> bool:
    """Returns whether the file's checksum differs from CHECKSUM. Returns False if CHECKSUM is None, or if the
    file can't be read."""
    try:
        return checksum is not None and _computed.of(path) != checksum
    except OSError:
        return False


def with_checksums(manifest: Mapping[str, Any], store: Path) -> str:
    """Returns the text of a store's manifest, with the checksums of all tables and of the manifest itself.
    Raises OSError."""
    tables = sorted(store.glob("**/*.parquet"))
    checksums = {os.fspath(path.relative_to(store)): _native.file_checksum(path) for path in tables}
    return _native.sealed_document(json.dumps({**manifest, "checksums": checksums}, indent=1))
