"""Compares the cost of `iodock record --live` with `iodock record` on a program that only reads, alternately.

    .venv/bin/python benches/live_cost.py [--runs 10] [--calls 3000000] [--backend rewrite]

Each run has a pseudo terminal, and its output goes to files. The elapsed seconds are the program's own, as it
prints them. The CPU seconds are those of recorder and program together, with tables and check-up.
"""

from __future__ import annotations

import argparse
import os
import pty
import resource
import statistics
import sys
import tempfile
from pathlib import Path

from measure import table

PROGRAM = """
import os, sys, time
open('data', 'wb').write(bytes(1 << 20))
f, began = os.open('data', os.O_RDONLY), time.monotonic()
for n in range(int(sys.argv[1])):
    os.pread(f, 4096, (n & 255) << 12)
print(time.monotonic() - began)
"""


def once(folder: Path, live: bool, backend: str, calls: int) -> tuple[float, float]:
    """Returns the elapsed seconds of the program's loop, and the CPU seconds of program and recorder."""
    words = [
        sys.executable,
        "-m",
        "iodock",
        "record",
        "--force",
        "-q",
        "--backend",
        backend,
        "-o",
        "run.iodock",
    ]
    words += ["--live"] if live else []
    words += ["--", sys.executable, "-S", "-c", PROGRAM, str(calls)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(folder)
        for name, descriptor in (("out.txt", 1), ("err.txt", 2)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        os.execv(words[0], words)
    try:
        while os.read(master, 1 << 16):
            pass
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(master)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float((folder / "out.txt").read_text()), cpu


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--runs", type=int, default=10)
    asked.add_argument("--calls", type=int, default=3_000_000)
    asked.add_argument("--backend", default="rewrite")
    given = asked.parse_args()
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as name:
        for run in range(2 * given.runs):
            live = run % 2 == 1
            found[live].append(once(Path(name), live, given.backend, given.calls))
    rows = []
    for live, runs in found.items():
        wall, cpu = ([one[at] for one in runs] for at in (0, 1))
        rows.append(
            ["--live" if live else "without", f"{statistics.median(wall):.3f}", f"{min(wall):.3f}",
             f"{statistics.median(cpu):.3f}", f"{min(cpu):.3f}"]
        )  # fmt: skip
    header = ["record", "wall s, median", "best", "CPU s, median", "best"]
    table(f"{given.runs} runs each, {given.calls:,} calls, {given.backend}", header, rows)


if __name__ == "__main__":
    main()
