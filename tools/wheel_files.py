"""Adds files to a built wheel: programs, which maturin builds into separate wheels, manual pages,
completions, licences. pip installs programs into `bin`, and the content of a folder of --share below `share`.

    tools/wheel_files.py WHEEL [--program NAME=FROM_WHEEL] [--share FOLDER] [--licence FILE]

The format of wheels: https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

_PROGRAM, _FILE = (0o100755) << 16, (0o100644) << 16
"""A regular file, as zip keeps its kind and rights."""
_OLDEST = (1980, 1, 1, 0, 0, 0)
"""The same files give the same wheel, whenever it is made."""


def program(wheel: Path, name: str) -> bytes:
    """Returns the script of that name in a wheel. Raises OSError, and SystemExit if the wheel lacks it."""
    with zipfile.ZipFile(wheel) as archive:
        found = [entry for entry in archive.namelist() if entry.endswith(f".data/scripts/{name}")]
        if len(found) != 1:
            raise SystemExit(f"error: {wheel}: no program {name} in it")
        return archive.read(found[0])


def put(wheel: Path, files: Mapping[str, tuple[bytes, int]], licence: Path | None = None) -> None:
    """Adds files below the wheel's data folder, a licence next to its own, and their lines in RECORD. Raises
    OSError, and SystemExit if WHEEL is no wheel or has one of the files already."""
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        records = [entry for entry in old.namelist() if entry.endswith(".dist-info/RECORD")]
        if len(records) != 1:
            raise SystemExit(f"error: {wheel}: no RECORD in it")
        about = records[0].removesuffix("/RECORD")
        new_files = {f"{about.removesuffix('.dist-info')}.data/{place}": one for place, one in files.items()}
        lines = old.read(records[0]).decode().splitlines()
        changed = {}
        if licence:
            new_files[f"{about}/licenses/{licence.name}"] = (licence.read_bytes(), _FILE)
            changed[f"{about}/METADATA"] = with_licence(old.read(f"{about}/METADATA"), licence.name)
        if already := sorted(set(new_files) & set(old.namelist())):
            raise SystemExit(f"error: {wheel}: has {', '.join(already)} already")
        for entry in old.infolist():
            if entry.filename != records[0]:
                archive.writestr(entry, changed.get(entry.filename) or old.read(entry))
        for path, (content, kind) in sorted(new_files.items()):
            entry = zipfile.ZipInfo(path, _OLDEST)
            entry.external_attr, entry.compress_type = kind, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
        lines = [line for line in lines if line.partition(",")[0] not in changed]
        lines[:0] = [recorded(path, content) for path, content in changed.items()]
        lines[:0] = [recorded(path, content) for path, (content, _) in new_files.items()]
        archive.writestr(old.getinfo(records[0]), "\n".join([*lines, ""]))
    new.replace(wheel)


def recorded(path: str, content: bytes) -> str:
    """Returns the line of a file in RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


def with_licence(metadata: bytes, name: str) -> bytes:
    """Returns METADATA with this licence file added."""
    head, gap, rest = metadata.partition(b"\nLicense-File: ")
    if not gap:
        raise SystemExit("error: METADATA names no licence file")
    return head + gap + name.encode() + gap + rest


def below(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Returns every file of a folder by its path in the wheel, which pip installs below `share`."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"data/share/{path.relative_to(folder).as_posix()}": (path.read_bytes(), _FILE) for path in paths}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--program", action="append", default=[], metavar="NAME=FROM_WHEEL")
    parser.add_argument("--share", type=Path)
    parser.add_argument("--licence", type=Path)
    given = parser.parse_args(arguments)
    files = below(given.share) if given.share else {}
    for one in given.program:
        name, _, wheel = one.partition("=")
        files[f"scripts/{name}"] = (program(Path(wheel), name), _PROGRAM)
    put(given.wheel, files, given.licence)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
