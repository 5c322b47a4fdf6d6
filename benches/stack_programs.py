"""Measures what `--stacks sites` adds to the CPU time of whole programs, without the recorder's own.

    .venv/bin/python benches/stack_programs.py [--runs 9] [--only NAME,...]

Each program runs alone and recorded with `--stacks off` and `sites`, in random order. Bash measures
the CPU time of the program and its processes. Printed are the smallest of all runs, and what `sites` adds to
the ratio to the program alone. sqlite3 is skipped if it is not installed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import table

WAYS = ("alone", "off", "sites")
FUNCTION = (
    "int f{0}(int x) {{ int s = 0; for (int j = 0; j < x; j++) s += j * {0} ^ x; "
    'printf("%d", s); return s; }}'
)
JSON_FILES = """import json, os
for i in range(300):
    with open(f"{i % 50}.json", "w") as out:
        json.dump({"a": list(range(20)), "i": i}, out); out.flush(); os.fsync(out.fileno())
for i in range(3000):
    with open(f"{i % 50}.json") as file: json.load(file)
with open("log", "wb", buffering=0) as out:
    for i in range(20000): out.write(b"%d\\n" % i)
"""
COMPUTES = """import math
with open("out", "wb", buffering=0) as out:
    for i in range(20000): out.write(b"%f" % sum(math.sqrt(j) for j in range(150)))
"""
PYTHON = sys.executable
PROGRAMS = {
    "preads": "./preads data 1500000",
    "sqlite3": "rm -f a.db; sqlite3 a.db < a.sql",
    "gcc": "gcc -O2 -c big.c -o big.o",
    "tar": "tar cf x.tar /usr/include",
    "cat": "for i in $(seq 200); do cat /etc/hostname; done",
    "json": f"{PYTHON} json_files.py",
    "compute": f"{PYTHON} computes.py",
    "imports": f"{PYTHON} -c 'import json, argparse, asyncio'",
}


def prepare(folder: Path) -> None:
    """Writes the programs and their input."""
    preads = Path(__file__).parent / "programs" / "preads.c"
    subprocess.run(["gcc", "-O2", "-o", folder / "preads", preads], check=True)
    (folder / "big.c").write_text("#include <stdio.h>\n" + "\n".join(map(FUNCTION.format, range(1500))))
    (folder / "json_files.py").write_text(JSON_FILES)
    (folder / "computes.py").write_text(COMPUTES)
    rows = ["create table t(a, b);"]
    for first in range(0, 5000, 10):
        values = ", ".join(f"({row}, 'x{row}')" for row in range(first, first + 10))
        rows.append(f"begin; insert into t values {values}; commit;")
    (folder / "a.sql").write_text("\n".join(rows))


def cpu(words: str, way: str, folder: Path) -> float:
    """Returns the CPU time of a program, in s."""
    command = ["bash", "-c", f"TIMEFORMAT='CPU %3U %3S'; time {{ {words}; }} >/dev/null"]
    if way != "alone":
        options = ["--quiet", "--force", "--backend", "rewrite", "--stacks", way, "-o", "run.iodock"]
        command = [sys.executable, "-m", "iodock", "record", *options, "--", *command]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    line = next(line for line in reversed(done.stderr.splitlines()) if line.startswith("CPU "))
    return sum(map(float, line.split()[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    wanted = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="iodock-bench-") as name:
        folder = Path(name)
        prepare(folder)
        for program in wanted.only.split(","):
            if program == "sqlite3" and not shutil.which("sqlite3"):
                print("sqlite3 is not installed", file=sys.stderr)
                continue
            found: dict[str, list[float]] = {way: [] for way in WAYS}
            for number in range(wanted.runs):
                for way in random.Random(number).sample(WAYS, len(WAYS)):
                    found[way].append(cpu(PROGRAMS[program], way, folder))
            alone, off, sites = (min(found[way]) for way in WAYS)
            added = f"{(sites - off) / alone:+.3f}"
            rows.append([program, f"{alone:.3f}", f"{off:.3f}", f"{sites:.3f}", added])
    table(f"CPU s, smallest of {wanted.runs} runs in turn", ["program", *WAYS, "sites adds"], rows)


if __name__ == "__main__":
    main()
