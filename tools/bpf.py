"""Compiles the programs of the bpf back end (`make bpf`), or with `--check` compares the result with the
committed object.

    .venv/bin/python tools/bpf.py [--check]

The compiler is clang from the PyPI package ziglang, in the version that requirements-wheel.txt names. With
the same compiler everywhere, the object is the same byte for byte. The tool removes sections that only
debuggers read.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parent.parent
CRATE = ROOT / "crates" / "iodock-bpf"
SOURCE = "native/recorder.bpf.c"
OBJECT = CRATE / "recorder.bpf.o"
# -mcpu=v3 allows atomics and 32-bit jumps, which need Linux 5.12.
OPTIONS = [
    *("-target", "bpfel-freestanding", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"),
    *(
        "-fno-unwind-tables",
        "-fno-asynchronous-unwind-tables",
        "-fno-stack-protector",
        "-fno-sanitize=undefined",
    ),
]
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQ")
SYMBOLS, RELOCATIONS, NO_BITS = 2, 9, 8


@dataclass
class Section:
    """One section of an ELF file: its header's fields and its bytes."""

    name: str
    header: list[int]
    data: bytes

    @property
    def kind(self) -> int:
        return self.header[1]


def sections(elf: bytes) -> list[Section]:
    (offset,) = struct.unpack_from("<Q", elf, 0x28)
    count, names_index = struct.unpack_from("<HH", elf, 0x3C)
    headers = [list(SECTION.unpack_from(elf, offset + SECTION.size * at)) for at in range(count)]
    names = headers[names_index][4]
    found = []
    for header in headers:
        start = names + header[0]
        name = elf[start : elf.index(b"\0", start)].decode()
        size = 0 if header[1] == NO_BITS else header[5]
        found.append(Section(name, header, elf[header[4] : header[4] + size]))
    return found


def stripped(elf: bytes) -> bytes:
    """Returns the ELF file without its debug sections and without the symbols of these sections."""
    every = sections(elf)
    kept = [
        at
        for at, section in enumerate(every)
        if not re.match(r"\.(rel)?\.?(debug_|llvm_addrsig)", section.name)
    ]
    places = {old: new for new, old in enumerate(kept)}
    table = next(section for section in every if section.kind == SYMBOLS)
    symbols = [SYMBOL.unpack_from(table.data, at) for at in range(0, len(table.data), SYMBOL.size)]
    left = [at for at, symbol in enumerate(symbols) if symbol[3] in places or symbol[3] >= 0xFF00]
    numbers = {old: new for new, old in enumerate(left)}
    table.data = b"".join(
        SYMBOL.pack(*symbol[:3], places.get(symbol[3], symbol[3]), *symbol[4:])
        for symbol in (symbols[at] for at in left)
    )
    table.header[7] = sum(1 for at in left if at < table.header[7])
    for section in every:
        if section.kind == RELOCATIONS and "debug_" not in section.name:
            section.data = b"".join(
                RELOCATION.pack(at, info & 0xFFFFFFFF | numbers[info >> 32] << 32)
                for at, info in RELOCATION.iter_unpack(section.data)
            )
            section.header[7] = places[section.header[7]]
        section.header[6] = places.get(section.header[6], 0)
    return written(elf[:64], [every[at] for at in kept], places)


def written(head: bytes, kept: list[Section], places: dict[int, int]) -> bytes:
    out = bytearray(head)
    for section in kept[1:]:
        out += b"\0" * (-len(out) % max(section.header[8], 1))
        section.header[4] = len(out)
        if section.kind != NO_BITS:
            section.header[5] = len(section.data)
        out += section.data
    out += b"\0" * (-len(out) % 8)
    (names,) = struct.unpack_from("<H", head, 0x3E)
    struct.pack_into("<Q", out, 0x28, len(out))
    struct.pack_into("<HH", out, 0x3C, len(kept), places[names])
    for section in kept:
        out += SECTION.pack(*section.header)
    return bytes(out)


def compiled() -> bytes:
    with tempfile.TemporaryDirectory(prefix="iodock-bpf-") as folder:
        target = Path(folder) / "recorder.o"
        # The compiler writes names of files into the object. These options make the names independent of this
        # folder.
        names = ["-fdebug-compilation-dir=.", f"-ffile-prefix-map={CRATE}=."]
        command = [sys.executable, "-m", "ziglang", "cc", *OPTIONS, *names, "-c", SOURCE, "-o", str(target)]
        subprocess.run(command, cwd=CRATE, check=True)
        return stripped(target.read_bytes())


def why_not() -> str | None:
    """Returns why this machine cannot reproduce the object, or None if it can."""
    wanted = re.search(r"^ziglang==(\S+)", (ROOT / "requirements-wheel.txt").read_text(), re.MULTILINE)
    if importlib.util.find_spec("ziglang") is None:
        return "ziglang is not installed: pip install -r requirements-wheel.txt"
    try:
        there = version("ziglang")
    except PackageNotFoundError:
        return "ziglang's version is not known"
    if wanted and there != wanted.group(1):
        return f"ziglang is {there}, and requirements-wheel.txt names {wanted.group(1)}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed object, write nothing"
    )
    options = parser.parse_args()
    reason = why_not()
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return 0 if options.check else 1
    made = compiled()
    if not options.check:
        OBJECT.write_bytes(made)
        print(f"{OBJECT.relative_to(ROOT)}: {len(made)} bytes")
    elif made != OBJECT.read_bytes():
        print("the sources give another object than the committed one: make bpf", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
