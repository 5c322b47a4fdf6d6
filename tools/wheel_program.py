"""Takes a program out of a wheel that has it as a script: tools/wheel_program.py WHEEL NAME FOLDER."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path


def main(wheel: Path, name: str, folder: Path) -> None:
    """Raises OSError, and SystemExit if it is not there."""
    with zipfile.ZipFile(wheel) as archive:
        found = [entry for entry in archive.namelist() if entry.endswith(f".data/scripts/{name}")]
        if len(found) != 1:
            raise SystemExit(f"{wheel}: no program {name} in it")
        content = archive.read(found[0])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    (folder / name).chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
