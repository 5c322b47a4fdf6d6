"""Checksums of a store's files. The manifest contains them, and a file is compared with its checksum before
it is read."""

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
    """Checksums that this process computed. A file is read only once for its checksum, even if its store is
    opened several times."""

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
                # The key contains the file's time and size, so a file that changed is read again.
                self._sums[stamp] = found
        return found


_computed = _Computed()


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_as_written(path: Path, checksum: str) -> bool:
    """Whether the file still has the bytes that were written; False if it can't be read."""
    try:
        return _computed.of(path) == checksum
    except OSError:
        return False


def is_damaged(path: Path, checksum: str | None) -> bool:
    """Whether the file's bytes differ from those that were written; False if it can't be read, or was written
    without a checksum."""
    try:
        return checksum is not None and _computed.of(path) != checksum
    except OSError:
        return False


def with_checksums(manifest: Mapping[str, Any], store: Path) -> str:
    """Formats a manifest for the tables of a store, with their checksums and its own. Raises OSError."""
    tables = sorted(store.glob("**/*.parquet"))
    checksums = {os.fspath(path.relative_to(store)): _native.file_checksum(path) for path in tables}
    return _native.sealed_document(json.dumps({**manifest, "checksums": checksums}, indent=1))
