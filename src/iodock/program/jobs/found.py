"""Finds Darshan logs, stores and other files below a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from iodock import _native
from iodock.shared.errors import RequestError


@dataclass(slots=True)
class Found:
    """Holds the paths that a search found. Each list is sorted by name."""

    logs: list[Path] = field(default_factory=list)
    stores: list[Path] = field(default_factory=list)
    unread: list[tuple[Path, str]] = field(default_factory=list)
    """Folders that could not be listed, with the reason."""
    others: int = 0
    """Number of files that are not Darshan logs."""


def find(folder: Path) -> Found:
    """Searches a folder and its subfolders without following links. Raises RequestError if it is not a
    folder."""
    if not folder.exists():
        raise RequestError(
            f"{folder}: no such folder", "iodock show jobs DIR, with logs of Darshan or stores"
        )
    if not folder.is_dir():
        raise RequestError(f"{folder}: is not a folder", f"to read one log: iodock import {folder}")
    found = Found()

    def note(error: OSError) -> None:
        found.unread.append((Path(error.filename or folder), error.strerror or str(error)))

    for at, folders, files in os.walk(folder, onerror=note):
        if "manifest.json" in files:
            found.stores.append(Path(at))
            folders.clear()
            continue
        folders.sort()
        for name in sorted(files):
            path = Path(at, name)
            if _native.is_darshan(path):
                found.logs.append(path)
            else:
                found.others += 1
    return found
