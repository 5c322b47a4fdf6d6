"""Creates backups of a monitor store while its collector runs, and restores stores from backups.

A store's files never change once its catalogue names them, and the catalogue is replaced by one rename. A
backup therefore consists of the catalogue at one moment, the files that it names, the snapshot of the
collector's state, and the journal written since the snapshot. If the collector's upkeep removes a file before
it is copied, the backup begins again with the new catalogue. The manifest of the backup is replaced last.
Until then the previous backup is intact.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from iodock.centre.monitor import backup_manifest
from iodock.centre.monitor.backup_damage import Damage, checksums_in
from iodock.centre.monitor.backup_manifest import MANIFEST, Kept, Manifest, replace_file
from iodock.centre.monitor.own_files import check_name, foreign, is_rows
from iodock.centre.store import catalogue_of
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_json
from iodock.shared.bounded.limits import CATALOGUE
from iodock.shared.engine.checksums import is_damaged
from iodock.shared.errors import RequestError, StoreError

_UNSEALED = "an older iodock created this backup without a checksum of its list: create a new one"
_ATTEMPTS = 20
_PIECE = 1 << 20
Tell = Callable[[int, int], None]
"""Reports progress: called with the number of bytes done and the total."""


@dataclass(frozen=True)
class Done:
    """Summary of a finished backup or restore."""

    files: int
    size_bytes: int
    rows: int
    copied: int
    """Files that were not in the previous backup."""
    notes: tuple[str, ...] = ()
    """Notes on the result."""


class _Replaced(Exception):
    """Says that the collector's upkeep removed a file while the backup was running. The backup must begin
    again with a newer catalogue."""


def backup(folder: Path, to: Path, force: bool = False, tell: Tell = lambda done, whole: None) -> Done:
    """Copies the store FOLDER to the folder TO, which may be new, empty, or an earlier backup of the store.
    Copies of unchanged files in TO are verified with their SHA-256 and kept. If FORCE is true, TO may also be
    the backup of another store, which is replaced. Raises RequestError, StoreError."""
    before = _taken(folder, to, force)
    stored = {one.stored for one in before.values()}
    with _locked(to):
        for _ in range(_ATTEMPTS):
            try:
                return _backup(folder, to, before, stored, tell)
            except _Replaced:
                continue
            except OSError as error:
                raise StoreError(
                    f"backup to {to}: {error}", "the previous backup is still complete"
                ) from error
    raise StoreError(f"{folder}: its files change faster than they can be copied", "try again")


def _backup(folder: Path, to: Path, before: dict[str, Kept], written: set[str], tell: Tell) -> Done:
    """Makes one attempt at a backup. BEFORE has the newest copy of each file, from the previous backup or an
    earlier attempt. WRITTEN has the paths of all copies in TO, including those that a newer copy replaced.
    Both are updated."""
    catalogue = _catalogue(folder)
    names = _named(folder, catalogue)
    sizes = {name: _size(folder / name) for name in names}
    checksums, said = checksums_in(catalogue), Damage()
    kept, copied, done = [], 0, 0
    run = f"{time.time_ns()}"
    for name in names:
        old = before.get(name)
        is_unchanged = old is not None and _is_unchanged(folder / name, old)
        is_wanted = old is None or not is_unchanged or not _is_whole(to / old.stored, old)
        checksum = checksums.get(name)
        if is_wanted and is_damaged(folder / name, checksum):
            is_wanted = not said.is_spared(name, None if old is None else to / old.stored, checksum)
        if old is None or is_wanted:
            # The journal and the snapshot may change while their names stay the same, so each backup copies
            # them to a folder of its own. Their copies in the previous backup stay intact.
            stored = f"data/{name}" if is_rows(name) else f"live-{run}/{name}"
            if is_unchanged:
                said.mended.append(name)
            before[name] = old = _copied(folder / name, to, name, stored, old, is_unchanged)
            written.add(stored)
            copied += 1
        kept.append(old)
        done += sizes[name]
        tell(done, sum(sizes.values()))
    if _begins(_catalogue(folder)) != _begins(catalogue):
        # The collector has replaced the snapshot since the catalogue was read. It may have removed the first
        # segments of the journal before `_named` listed them, so the copied journal may be incomplete.
        raise _Replaced
    backup_manifest.write(to, Manifest(_identity(folder), catalogue, tuple(kept)))
    _remove(to, written - {one.stored for one in kept})
    rows = _rows_of(catalogue, to)
    return Done(len(kept), sum(one.size for one in kept), rows, copied, said.notes())


def _begins(catalogue: bytes) -> tuple[object, object]:
    """Returns the name of the snapshot and the number of the first journal segment after it."""
    found = from_json(catalogue)
    return found.get("state"), found.get("journal")


def _catalogue(folder: Path) -> bytes:
    """Reads the current catalogue of the store, verifies it and returns its text. Raises StoreError."""
    path = folder / "catalogue.json"
    try:
        found = files.content(path, CATALOGUE, StoreError)
        catalogue_of(found, path)
    except FileNotFoundError:
        raise StoreError(f"{folder}: not a monitor store", "--store DIR is the collector's folder") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: not the catalogue of a monitor store: {error}") from error
    return found


def _named(folder: Path, catalogue: bytes) -> list[str]:
    """Lists all files that belong to this catalogue, including the snapshot and the journal segments after
    it. The collector still appends to the last segment; all others are complete. Raises StoreError."""
    found = from_json(catalogue)
    names = [entry["file"] for levels in found["tables"].values() for one in levels.values() for entry in one]
    names += [found["state"]] if found["state"] else []
    segments = sorted(path.name for path in (folder / "journal").glob("*.frames"))
    names += [f"journal/{name}" for name in segments if int(name.split(".")[0]) >= found["journal"]]
    for name in names:
        check_name(name, folder / "catalogue.json")
    return names


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        raise _Replaced from None


def _is_unchanged(source: Path, old: Kept) -> bool:
    try:
        status = source.stat()
    except FileNotFoundError:
        raise _Replaced from None
    return (status.st_size, status.st_mtime_ns) == (old.size, old.mtime_ns)


def _is_whole(stored: Path, old: Kept) -> bool:
    return stored.is_file() and stored.stat().st_size == old.size and _sha256(stored) == old.sha256


def _copied(source: Path, to: Path, name: str, stored: str, old: Kept | None, is_unchanged: bool) -> Kept:
    """Copies the file SOURCE to the path STORED in the backup TO. If IS_UNCHANGED is true, the size and time
    of SOURCE say that it is equal to OLD, its copy in the previous backup, so different bytes raise
    StoreError."""
    target = to / stored
    _make_folders(to, target.parent)
    begun = target.with_name(f".{target.name}.part")
    try:
        with source.open("rb") as file:
            status = os.fstat(file.fileno())
            # The collector may append to a journal during the copy. Only the bytes that existed when the file
            # was opened are copied.
            digest, size = _copy(file.fileno(), begun, status.st_size)
    except FileNotFoundError:
        begun.unlink(missing_ok=True)
        raise _Replaced from None
    if old is not None and is_unchanged and digest != old.sha256:
        begun.unlink()
        raise StoreError(
            f"{source}: damaged, and so is its copy in the backup",
            "copy it again from another backup, or stop the collector, remove the file and start it",
        )
    if (target.is_symlink() or target.exists()) and old is None and _sha256(target) != digest:
        begun.unlink()
        raise StoreError(f"{target} exists already and is not part of this backup", "give a new folder")
    begun.replace(target)
    return Kept(name, stored, size, digest, status.st_mtime_ns)


def _copy(source: int, target: Path, size: int) -> tuple[str, int]:
    digest, done = hashlib.sha256(), 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        while done < size and (piece := os.read(source, min(_PIECE, size - done))):
            out.write(piece)
            digest.update(piece)
            done += len(piece)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest(), done


def _make_folders(root: Path, folder: Path) -> None:
    """Creates the folders from ROOT down to FOLDER. Raises StoreError if one of them is a symbolic link or a
    file."""
    below = root
    for part in folder.relative_to(root).parts:
        below /= part
        if below.is_symlink() or (below.exists() and not below.is_dir()):
            raise StoreError(f"{below} exists already and is not part of this backup", "give a new folder")
        below.mkdir(exist_ok=True)


def _sha256(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _remove(to: Path, stored: set[str]) -> None:
    """Removes these files from the backup TO, and folders that become empty."""
    for name in stored:
        (to / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for parent in (to / name).parents:
                if parent == to:
                    break
                parent.rmdir()


def _rows_of(catalogue: bytes, path: Path) -> int:
    return sum(file.rows for every in catalogue_of(catalogue, path).files.values() for file in every)


def _identity(folder: Path) -> str:
    return f"{socket.gethostname()}:{folder.resolve()}"


def _taken(folder: Path, to: Path, force: bool) -> dict[str, Kept]:
    """Returns the files of the backup in TO by their paths in the store, or nothing if TO has no complete
    backup. Raises RequestError if TO contains other files."""
    _catalogue(folder)
    if to.resolve() == folder.resolve() or folder.resolve() in to.resolve().parents:
        raise RequestError(f"{to}: is inside the store itself", "give a folder on another disk")
    if to.is_symlink() or (to.exists() and not to.is_dir()):
        raise RequestError(f"{to}: exists, and is not a folder", "give a new folder")
    try:
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        # If the first backup was interrupted, TO may contain only its lock and an incomplete manifest.
        there = {path.name for path in to.iterdir()} - {"lock", f".{MANIFEST}.part"}
    except OSError as error:
        raise RequestError(f"{to}: {error.strerror}", "give a folder that you may write") from error
    if not there:
        return {}
    if MANIFEST not in there:
        if all(name == "data" or re.fullmatch(r"live-[0-9]+", name) for name in there):
            # The first backup was interrupted while it copied files. They are copied again, and `_copied`
            # raises an error if one differs from the store's.
            return {}
        raise RequestError(
            f"{to}: not empty, and not a backup of a monitor store", "give a new or empty folder"
        )
    found = backup_manifest.read(to)
    if found.store != _identity(folder) and not force:
        raise RequestError(
            f"{to}: the backup of another store, {found.store}",
            "give another folder, or --force to replace that backup",
        )
    return {one.path: one for one in found.files}


def restore(folder: Path, to: Path, force: bool = False, tell: Tell = lambda done, whole: None) -> Done:
    """Restores the backup FOLDER to the store TO. The files are copied to a temporary folder, which is
    renamed to TO after the SHA-256 of every file and the number of rows of every table were verified. If
    FORCE is true, an existing monitor store that no collector uses is replaced. Raises RequestError,
    StoreError."""
    manifest = backup_manifest.read(folder)
    _check_place(to, force)
    begun = to.with_name(f".{to.name}.restore-{os.getpid()}")
    try:
        begun.mkdir(parents=True, mode=0o700)
        done = 0
        for one in manifest.files:
            _restored(folder / one.stored, begun / one.path, one)
            done += one.size
            tell(done, manifest.size_bytes)
        rows = _checked(begun, manifest.catalogue, folder)
        checksums = checksums_in(manifest.catalogue)
        said = Damage(damaged=[name for name, sum in checksums.items() if is_damaged(begun / name, sum)])
        replace_file(begun / "catalogue.json", manifest.catalogue)
        _exchange(begun, to)
    except OSError as error:
        raise StoreError(f"restore to {to}: {error}") from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    notes = said.notes() + (() if manifest.has_checksum else (_UNSEALED,))
    return Done(len(manifest.files), manifest.size_bytes, rows, len(manifest.files), notes)


def _restored(stored: Path, target: Path, one: Kept) -> None:
    hint = "restore an older backup, or copy this file from the disk where it is whole"
    target.parent.mkdir(parents=True, exist_ok=True)
    if stored.is_symlink() or not stored.is_file():
        raise StoreError(f"{stored}: missing in the backup", hint)
    with stored.open("rb") as file:
        digest, size = _copy(file.fileno(), target, os.fstat(file.fileno()).st_size)
    if (digest, size) != (one.sha256, one.size):
        raise StoreError(f"{stored}: damaged, its SHA-256 differs from that in the backup's list", hint)


def _checked(folder: Path, catalogue: bytes, backup: Path) -> int:
    """Returns the number of rows in the restored files. Raises StoreError if a file is missing, or if its
    number of rows differs from the catalogue."""
    path = backup / MANIFEST
    try:
        every = catalogue_of(catalogue, path).files
        missing = [name for name in _named(folder, catalogue) if not (folder / name).is_file()]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: its catalogue is damaged: {error}") from error
    if missing:
        raise StoreError(f"{path}: {missing[0]} is in the backup's catalogue but not in the backup")
    total = 0
    for found in every.values():
        for file in found:
            try:
                rows = pq.read_metadata(folder / file.name).num_rows
            except (OSError, pa.ArrowException) as error:
                raise StoreError(f"{backup}: {file.name}: {error}") from error
            if rows != file.rows:
                raise StoreError(f"{backup}: {file.name} has {rows} rows, but {file.rows} in its catalogue")
            total += rows
    return total


def _check_place(to: Path, force: bool) -> None:
    if not (to.is_symlink() or to.exists()):
        return
    if to.is_symlink() or not to.is_dir():
        raise RequestError(f"{to}: exists, and is not a folder", "give a new folder")
    if not any(to.iterdir()):
        return
    strange = foreign(to)
    if strange:
        raise RequestError(
            f"{to}: not only a monitor store: {strange[0].relative_to(to)} is not part of one",
            "give a new folder",
        )
    if not force:
        raise RequestError(f"{to}: exists", "give a new folder, or --force to replace that store")


def _exchange(begun: Path, to: Path) -> None:
    """Renames the folder BEGUN to TO. The old content of TO is deleted afterwards."""
    if not to.exists():
        begun.rename(to)
        return
    if not any(to.iterdir()):
        to.rmdir()
        begun.rename(to)
        return
    with _locked(to):
        aside = to.with_name(f".{to.name}.replaced-{os.getpid()}")
        to.rename(aside)
        begun.rename(to)
    shutil.rmtree(aside)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the same lock on FOLDER as a collector while the context is open. Raises RequestError if another
    process holds the lock."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise RequestError(f"{folder / 'lock'}: {error.strerror}", "give another folder") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RequestError(f"{folder}: in use", "end the collector or backup that uses it") from None
    finally:
        os.close(descriptor)
