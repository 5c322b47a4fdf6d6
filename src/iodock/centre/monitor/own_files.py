"""Recognizes the names of files that a collector writes to its store. Only such files are ever removed or
replaced."""

from __future__ import annotations

import re
from pathlib import Path

from iodock.centre.store import RESOLUTIONS, TABLES
from iodock.shared.errors import StoreError

_LEVEL, _DAY, _NUMBER = f"({'|'.join(RESOLUTIONS)})", "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{8,}"
_TABLE = f"({'|'.join(TABLES)})"
# The engine first writes a file under a name with this prefix and then renames it.
_FIRST = "(tmp_)?"
_KIND = "(systems-[a-z]|owners-[a-z]|jobs-[a-z][0-9a-f]{12})"

_ROWS = re.compile(rf"{_TABLE}/{_LEVEL}/{_DAY}/{_NUMBER}\.parquet")
_KEPT = re.compile(r"state-[0-9]{12,}\.bin|journal/[0-9]{12,}\.frames")
"""Other files that a catalogue relies on."""
_SUMMARY = re.compile(
    rf"summaries/{_KIND}/{_FIRST}job_io-{_LEVEL}-{_DAY}-{_NUMBER}(-[0-9a-f]{{16}})?\.(parquet|part)"
)
_OTHERS = re.compile(
    rf"lock|catalogue\.(json|draft)|state-[0-9]{{12,}}\.draft|{_TABLE}/{_LEVEL}/{_DAY}/tmp_{_NUMBER}\.parquet"
)
_FOLDERS = re.compile(rf"journal|summaries(/{_KIND})?|{_TABLE}(/{_LEVEL}(/{_DAY})?)?")


def is_rows(name: str) -> bool:
    """Returns whether NAME, a path below the store's folder, is a file with rows of a table. Such a file
    never changes."""
    return bool(_ROWS.fullmatch(name))


def is_summary(name: str) -> bool:
    """Returns whether NAME, a path below the store's folder, is a complete or incomplete summary."""
    return bool(_SUMMARY.fullmatch(name))


def check_name(name: object, path: Path) -> None:
    """Checks a file name that the file PATH contains. It rejects names outside of the store's folder, because
    files with these names are read and written later. Raises StoreError."""
    if not isinstance(name, str) or not any(form.fullmatch(name) for form in (_ROWS, _KEPT)):
        raise StoreError(f"{path}: {name!r} is not a file of a monitor store")


def foreign(folder: Path) -> list[Path]:
    """Lists the files in FOLDER that no collector wrote. If the folder has no such files but also no
    catalogue, the list contains the path of the missing catalogue."""
    found = [path for path in sorted(folder.rglob("*")) if not _is_own(path, folder)]
    if not found and not (folder / "catalogue.json").is_file():
        found.append(folder / "catalogue.json")
    return found


def _is_own(path: Path, folder: Path) -> bool:
    name = path.relative_to(folder).as_posix()
    forms = (_FOLDERS,) if path.is_dir() else (_ROWS, _KEPT, _SUMMARY, _OTHERS)
    return not path.is_symlink() and any(form.fullmatch(name) for form in forms)
