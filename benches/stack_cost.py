"""Measures the cost that `--stacks` adds to a call, in a loop in C and in one in Python.

    .venv/bin/python benches/stack_cost.py [--runs 5] [--python INTERPRETER]

Each program makes 300 batches of 1,000 lseeks from one place and prints the time of its quickest batch in ns
per call. In Python the place is in a function of a package, two frames below the program's own code. Programs
run alone and in simultaneous recordings (`--stacks off`, `sites` and `all`), single runs alternately, in
random order. Prints the smallest and the median of each way's runs.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from measure import table
from short_cost import recording

IN_C = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static __attribute__((noinline)) void batch(int file) {
    for (int i = 0; i < 1000; i++)
        lseek(file, 0, SEEK_SET);
}
int main(void) {
    double best = 1e9;
    for (int i = 0; i < 300; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        batch(0);
        clock_gettime(CLOCK_MONOTONIC, &to);
        double took = (to.tv_sec - from.tv_sec) * 1e6 + (to.tv_nsec - from.tv_nsec) / 1e3;
        best = took < best ? took : best;
    }
    printf("%f\n", best);
}
"""
IN_PYTHON = r"""
import os
from time import perf_counter_ns

package = compile('''
def batch():
    lseek = os.lseek
    for _ in range(1000):
        lseek(0, 0, 0)

def timed():
    begin = perf_counter_ns()
    batch()
    return perf_counter_ns() - begin
''', "/usr/lib/package.py", "exec")
exec(package)
print(min(timed() for _ in range(300)) / 1000)
"""


def recorder(store: Path, stacks: str) -> list[str]:
    """Returns the command that records a program with this value of `--stacks`."""
    options = ["--quiet", "--backend", "rewrite", "--stacks", stacks, "-o", str(store)]
    return [sys.executable, "-m", "iodock", "record", *options, "--"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="of each program and way")
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iodock-bench-") as folder, ExitStack() as stack:
        scratch = Path(folder)
        (scratch / "loop.c").write_text(IN_C)
        (scratch / "loop.py").write_text(IN_PYTHON)
        subprocess.run(["gcc", "-O2", "-o", scratch / "loop", scratch / "loop.c"], check=True)
        programs = {"C": [str(scratch / "loop")], "Python": [wanted.python, str(scratch / "loop.py")]}
        ways: dict[str, dict[str, str]] = {"alone": {}}
        for stacks in ("off", "sites", "all"):
            ways[stacks] = stack.enter_context(recording(recorder(scratch / f"{stacks}.iodock", stacks)))
        found: dict[tuple[str, str], list[float]] = {}
        for number in range(wanted.runs):
            turns = [(program, way) for program in programs for way in ways]
            for program, way in random.Random(number).sample(turns, len(turns)):
                with Path("/etc/hostname").open("rb") as file:
                    done = subprocess.run(
                        programs[program],
                        stdin=file,
                        stdout=subprocess.PIPE,
                        check=True,
                        env={**os.environ, **ways[way]},
                    )
                found.setdefault((program, way), []).append(float(done.stdout))
        rows = [
            [
                program,
                *(
                    f"{min(found[program, way]):.0f} ({statistics.median(found[program, way]):.0f})"
                    for way in ways
                ),
            ]
            for program in programs
        ]
        table(f"{wanted.runs} runs of each in turn: ns a call, smallest (median)", ["loop in", *ways], rows)


if __name__ == "__main__":
    main()
