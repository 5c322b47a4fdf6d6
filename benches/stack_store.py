"""Measures what `--stacks sites` adds to a store and to a recording's CPU time, finishing included.

    .venv/bin/python benches/stack_store.py [--runs 5] [--calls 1000000]

A program in C reads and seeks from 20 lines alternately. It is recorded with `--stacks off` and `sites`
alternately, in random order. Prints the store's bytes per call, and the CPU time per call of the whole
command: of the program, of recording its calls, and of finishing.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Run, run, table

LINES = 20
STEP = "        if (pread(file, byte, 1, i % 1000) != 1) return 1;\n        lseek(file, i, SEEK_SET);\n"
PROGRAM = f"""#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments) {{
    char byte[1];
    int file = open("/proc/self/exe", O_RDONLY);
    for (long i = 0, most = atol(arguments[count - 1]); i < most; i++) {{
{STEP * (LINES // 2)}    }}
    return 0;
}}
"""


def size_of(store: Path) -> int:
    return sum(file.stat().st_size for file in store.rglob("*") if file.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1_000_000)
    wanted = parser.parse_args()
    ways = ("off", "sites")
    found: dict[str, list[tuple[Run, int]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="iodock-bench-") as folder:
        source, program, store = Path(folder, "a.c"), Path(folder, "a"), Path(folder, "run.iodock")
        source.write_text(PROGRAM)
        subprocess.run(["gcc", "-O2", "-g", "-o", program, source], check=True)
        for number in range(wanted.runs):
            for way in random.Random(number).sample(ways, len(ways)):
                options = ["--quiet", "--force", "--backend", "rewrite", "--stacks", way, "-o", str(store)]
                command = [str(program), str(wanted.calls // LINES)]
                done = run([sys.executable, "-m", "iodock", "record", *options, "--", *command])
                assert done.status == 0
                found[way].append((done, size_of(store)))
    rows = []
    for way in ways:
        cpu = [one.cpu * 1e9 / wanted.calls for one, _ in found[way]]
        size = statistics.median(size for _, size in found[way])
        row = [way, f"{size / wanted.calls:.3f}", f"{min(cpu):.0f} ({statistics.median(cpu):.0f})"]
        rows.append(row)
    header = ["--stacks", "bytes a call", "CPU ns a call: least (median)"]
    table(f"{wanted.calls} calls from {LINES} lines, {wanted.runs} runs of each in turn", header, rows)


if __name__ == "__main__":
    main()
