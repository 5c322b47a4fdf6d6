"""Measures time and memory of `iodock symbolize`, for calls from many places of one large program file.

    .venv/bin/python benches/symbolize_cost.py BINARY [--sites 2000] [--events 1000000] [--runs 3]

BINARY has debug information, for example a debug build of a large library. The tool creates a log as of
`strace -k` with calls from one place in each of the chosen functions, and imports it. Then symbolize looks up
all places in a separate process. Needs nm and readelf.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import run, spread, table

from iodock.program.store import Store


def functions_of(binary: Path, wanted: int) -> list[tuple[str, int]]:
    """Returns WANTED functions from all parts of the file: (name, offset in the file)."""
    headers = subprocess.run(["readelf", "-lW", binary], capture_output=True, text=True, check=True).stdout
    loaded = [
        tuple(int(number, 16) for number in found)
        for found in re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E", headers)
    ]
    symbols = subprocess.run(
        ["nm", "--defined-only", binary], capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for line in symbols.splitlines():
        address, kind, name = line.split(maxsplit=2)
        at = int(address, 16)
        for offset, start, size in loaded:
            if kind in "tT" and start <= at < start + size - 64:
                found[at] = (name, at - start + offset)
    functions = [found[at] for at in sorted(found)]
    step = max(1, len(functions) // wanted)
    return functions[::step][:wanted]


def write_log(log: Path, binary: Path, functions: list[tuple[str, int]], events: int) -> None:
    with log.open("w") as out:
        out.write(
            '7 1700000000.000000 openat(AT_FDCWD, "/data/out", O_WRONLY|O_CREAT, 0644) = 4 <0.000010>\n'
        )
        for number in range(events):
            name, offset = functions[number % len(functions)]
            out.write(
                f'7 {1_700_000_001 + number * 1e-5:.6f} write(4, "x"..., 16) = 16 <0.000005>\n'
                f" > /usr/lib/libc.so.6(__write+0x14) [0xf78d4]\n > {binary}({name}+0x9) [{offset + 9:#x}]\n"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("binary", type=Path)
    parser.add_argument("--sites", type=int, default=2000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    wanted = parser.parse_args()
    binary = wanted.binary.resolve()
    functions = functions_of(binary, wanted.sites)
    with tempfile.TemporaryDirectory(prefix="iodock-bench-") as folder:
        log, store = Path(folder, "log"), Path(folder, "run.iodock")
        write_log(log, binary, functions, wanted.events)
        iodock = [sys.executable, "-m", "iodock"]
        subprocess.run([*iodock, "import", "--quiet", log, "-o", store], check=True)
        runs = [run([*iodock, "symbolize", "--quiet", str(store)]) for _ in range(wanted.runs)]
        with Store.open(store) as opened:
            (named,) = opened.rows("""SELECT count(DISTINCT s.site_id) AS sites,
    count(DISTINCT y.site_id) FILTER (WHERE y.line IS NOT NULL) AS with_line
  FROM sites s LEFT JOIN symbols y ON y.site_id = s.site_id""")
    title = (
        f"{binary.stat().st_size / 1e6:.0f} MB, {wanted.events} events: {wanted.runs} runs, median (range)"
    )
    row = [
        str(named["sites"]),
        str(named["with_line"]),
        spread(runs, "wall"),
        spread(runs, "cpu"),
        f"{max(one.peak_bytes for one in runs) / 1e6:.0f} MB",
    ]
    table(title, ["sites", "with a line", "wall s", "CPU s", "peak memory"], [row])


if __name__ == "__main__":
    main()
