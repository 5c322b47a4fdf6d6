"""Puts a program of one wheel into another one, as a script that pip installs: maturin makes wheels of a
module or of a program, and its folder of data must be there for every build.

    tools/wheel_program.py FROM_WHEEL NAME INTO_WHEEL

The form of wheels: https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

_PROGRAM = (0o100755) << 16
"""A regular file that may be executed, as zip keeps it."""


def program(wheel: Path, name: str) -> bytes:
    """The script of that name. Raises OSError, and SystemExit if it is not there."""
    with zipfile.ZipFile(wheel) as archive:
        found = [entry for entry in archive.namelist() if entry.endswith(f".data/scripts/{name}")]
        if len(found) != 1:
            raise SystemExit(f"error: {wheel}: no program {name} in it")
        return archive.read(found[0])


def put(wheel: Path, name: str, content: bytes) -> None:
    """Adds a script and its line in RECORD. Raises OSError, and SystemExit if it is no wheel, or has it
    already."""
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        records = [entry for entry in old.namelist() if entry.endswith(".dist-info/RECORD")]
        if len(records) != 1:
            raise SystemExit(f"error: {wheel}: no RECORD in it")
        path = f"{records[0].removesuffix('.dist-info/RECORD')}.data/scripts/{name}"
        if path in old.namelist():
            raise SystemExit(f"error: {wheel}: has {name} already")
        for entry in old.infolist():
            if entry.filename != records[0]:
                archive.writestr(entry, old.read(entry))
        script = zipfile.ZipInfo(path)
        script.external_attr, script.compress_type = _PROGRAM, zipfile.ZIP_DEFLATED
        archive.writestr(script, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines = old.read(records[0]).decode().splitlines()
        lines.insert(0, f"{path},sha256={digest},{len(content)}")
        archive.writestr(old.getinfo(records[0]), "\n".join([*lines, ""]))
    new.replace(wheel)


if __name__ == "__main__":
    put(Path(sys.argv[3]), sys.argv[2], program(Path(sys.argv[1]), sys.argv[2]))
