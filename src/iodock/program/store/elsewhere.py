"""Stores the tables of a recording in a temporary folder if the recording's own folder is not writable or
its disk has no space for them. Otherwise a full disk would prevent reading the recording."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

# The tables take up less than this multiple of the size of their journal.
_TABLES_TO_JOURNAL = 4
_SPARE_BYTES = 1 << 20


def lacks_room(store: Path) -> bool:
    """Returns whether the store is not writable, or its disk has too little space for the tables in
    addition to the journal."""
    if not os.access(store, os.W_OK):
        return True
    wanted = sum(path.stat().st_size for path in _journals(store)) * _TABLES_TO_JOURNAL + _SPARE_BYTES
    return shutil.disk_usage(store).free < wanted


def shadow_of(store: Path) -> tempfile.TemporaryDirectory[str]:
    """Makes a temporary store with links to the same journal. The caller deletes it with `cleanup`. Raises
    OSError."""
    shadow = tempfile.TemporaryDirectory(prefix="iodock-", suffix=".iodock")
    folder = Path(shadow.name)
    shutil.copy(store / "manifest.json", folder / "manifest.json")
    (folder / "journal").mkdir()
    for path in _journals(store):
        (folder / "journal" / path.name).symlink_to(path.resolve())
    return shadow


def _journals(store: Path) -> list[Path]:
    """Returns the journals of a store, and the files in which a back end stores raw calls."""
    folder = store / "journal"
    return sorted([*folder.glob("*.journal"), *folder.glob("*.calls")])
