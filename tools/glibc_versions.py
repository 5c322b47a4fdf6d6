"""Prints which glibc each program and library in a wheel needs, and fails if one needs a newer version than
MOST.

    tools/glibc_versions.py MOST FILE...        MOST: 2.28; FILE: a wheel, a program, a library

It also examines programs that are embedded in another one, such as the recorder's preloaded library.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

_ELF = b"\x7fELF"
Version = tuple[int, ...]


def programs(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields (place, content) of every ELF file: CONTENT itself, those in a wheel, and those embedded in
    other files."""
    if zipfile.is_zipfile(BytesIO(content)):
        with zipfile.ZipFile(BytesIO(content)) as archive:
            for entry in archive.namelist():
                yield from programs(f"{name}/{entry}", archive.read(entry))
    elif content.startswith(_ELF):
        for found in re.finditer(re.escape(_ELF), content):
            if _is_elf(content[found.start() :]):
                yield f"{name}+{found.start()}" if found.start() else name, content[found.start() :]


def _is_elf(content: bytes) -> bool:
    """Returns whether CONTENT is a readable ELF file. A program may contain the four magic bytes as a
    constant."""
    try:
        return len(list(ELFFile(BytesIO(content)).iter_sections())) > 0
    except (ELFError, ValueError, KeyError, OverflowError):
        return False


def needed(content: bytes) -> Version | None:
    """Returns the newest glibc version whose symbols the file needs, or None if it needs none."""
    versions = []
    for section in ELFFile(BytesIO(content)).iter_sections():
        if isinstance(section, GNUVerNeedSection):
            names = [one.name for _, symbols in section.iter_versions() for one in symbols]
            versions += [number(name.removeprefix("GLIBC_")) for name in names if name.startswith("GLIBC_2")]
    return max(versions, default=None)


def number(version: str) -> Version:
    return tuple(int(part) for part in version.split("."))


def main(most: str, files: list[str]) -> int:
    found = [one for file in files for one in programs(Path(file).name, Path(file).read_bytes())]
    if not found:
        raise SystemExit(f"error: no program in {', '.join(files)}")
    wrong = 0
    for place, content in found:
        version = needed(content)
        is_new = version is not None and version > number(most)
        wrong += is_new
        shown = ".".join(map(str, version)) if version else "none"
        print(f"{'NEWER' if is_new else 'ok':<6} glibc {shown:<7} {len(content):>10,} B  {place}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
