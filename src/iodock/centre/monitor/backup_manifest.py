"""Reads and writes `BACKUP/backup.json`, the manifest of a backup of a monitor store. It contains the size
and SHA-256 of every file."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iodock import _native
from iodock.centre.monitor.own_files import check_name
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_json
from iodock.shared.bounded.limits import CATALOGUE
from iodock.shared.engine.checksums import DIFFERS
from iodock.shared.errors import StoreError

FORMAT, VERSION = "iodock monitor backup", 2
MANIFEST = "backup.json"
_WITHOUT_CHECKSUM = 1
"""Version of manifests that contain no checksum of the manifest itself."""
_DAMAGED = "the backup is damaged: restore an older one"


@dataclass(frozen=True)
class Kept:
    """One file of a backup."""

    path: str
    """Path below the store's folder."""
    stored: str
    """Path below the backup's folder."""
    size: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True)
class Manifest:
    """Description of a backup: the store, its catalogue and the copied files."""

    store: str
    """The store that was copied, as HOST:FOLDER."""
    catalogue: bytes
    """The text of the store's catalogue."""
    files: tuple[Kept, ...]
    has_checksum: bool = True
    """Whether the manifest was verified with its own checksum."""

    @property
    def size_bytes(self) -> int:
        return sum(one.size for one in self.files)


def read(folder: Path) -> Manifest:
    """Reads the manifest of a backup and checks it. Raises StoreError."""
    path = folder / MANIFEST
    try:
        document = files.content(path, CATALOGUE, StoreError)
        is_whole = _native.is_whole_document(document)
        if is_whole is False:
            raise StoreError(f"{path}: {DIFFERS}", _DAMAGED)
        found = from_json(document)
        _check_version(found, path, is_whole is not None)
        kept = tuple(Kept(**one) for one in found["files"])
        manifest = Manifest(str(found["store"]), str(found["catalogue"]).encode(), kept, bool(is_whole))
    except FileNotFoundError:
        raise StoreError(f"{folder}: not a backup", "create one with iodock monitor backup") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: not a valid backup: {error}", _DAMAGED) from error
    for one in kept:
        check_name(one.path, path)
        if not re.fullmatch(rf"(data|live-[0-9]+)/{re.escape(one.path)}", one.stored):
            raise StoreError(f"{path}: {one.stored!r} is not a file of a backup", _DAMAGED)
    return manifest


def _check_version(found: dict[str, Any], path: Path, has_checksum: bool) -> None:
    """Checks the format and version of a manifest. Raises StoreError if this iodock can't read them, or if a
    checksum is missing that the version requires. Raises KeyError and TypeError if the manifest has other
    keys."""
    if found["format"] != FORMAT:
        raise StoreError(f"{path}: not the manifest of a backup but of {found['format']!r}")
    if found["version"] not in (_WITHOUT_CHECKSUM, VERSION):
        raise StoreError(f"{path}: version {found['version']}; this iodock reads up to {VERSION}")
    if has_checksum != (found["version"] != _WITHOUT_CHECKSUM):
        raise StoreError(f"{path}: {DIFFERS}", _DAMAGED)


def write(folder: Path, manifest: Manifest) -> None:
    """Replaces the manifest atomically. Raises OSError."""
    document = {
        "format": FORMAT, "version": VERSION, "made_ns": time.time_ns(), "store": manifest.store,
        "catalogue": manifest.catalogue.decode(), "files": [asdict(one) for one in manifest.files],
    }  # fmt: skip
    replace_file(folder / MANIFEST, _native.sealed_document(json.dumps(document)).encode())


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file's content atomically. After the function returns, the new content is on the disk and
    survives a power cut. Raises OSError."""
    begun = path.with_name(f".{path.name}.part")
    descriptor = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    begun.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
