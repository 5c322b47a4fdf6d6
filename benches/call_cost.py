"""Measures the cost of `rewrite` per call, for each kind of call, in the program that makes the calls.

    .venv/bin/python benches/call_cost.py [--runs 100] [--calls 20000] [--only KIND,...]

Loops of one kind of call (`benches/programs/one_kind.c`) run alone and in a simultaneous recording, single
runs alternately. Results are ns of CPU per call as the program's own thread measures them: for each way the
mean of the middle half of its runs, and the additional cost of a recorded call by these means, by the
medians, and as the median of the pairs. "same" uses four paths repeatedly; "new" uses 4,096, which is more
than the recorder remembers, so it records each path again. small-file opens one of these files, stats it,
reads it in two reads and closes it. backends.py measures the work of the recorder itself, on another core.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from backends import built_tools, recorder
from measure import table
from record_cost import compiled
from short_cost import middle, recording

KINDS = (
    "pread", "pwrite", "lseek", "fstat", "stat-same", "open-close-same", "small-file", "open-close-new",
    "stat-new",
)  # fmt: skip


def nanoseconds(command: list[str], environment: Mapping[str, str]) -> float:
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def row_of(kind: str, command: list[str], runs: int, ours: Mapping[str, str]) -> list[str]:
    ways: dict[str, Mapping[str, str]] = {"alone": {}, "recorded": ours}
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(runs):
        for way in random.Random(number).sample(list(ways), len(ways)):
            found[way].append(nanoseconds(command, ways[way]))
    alone, recorded = found["alone"], found["recorded"]
    more = [
        middle(recorded) - middle(alone),
        statistics.median(recorded) - statistics.median(alone),
        statistics.median(one - other for one, other in zip(recorded, alone, strict=True)),
    ]
    return [kind, *(f"{value:.1f}" for value in (middle(alone), middle(recorded), *more))]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100, help="of each way")
    parser.add_argument("--calls", type=int, default=20000, help="in a run")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, separated by commas")
    found = parser.parse_args()
    found.kinds = found.only.split(",")
    if unknown := set(found.kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    if found.runs < 4 or found.calls < 1:
        parser.error("needs 4 runs or more, and a call or more")
    return found


def main() -> None:
    wanted = options()
    built_tools()
    program = compiled("one_kind")
    with tempfile.TemporaryDirectory(prefix="iodock-bench-", dir="/dev/shm") as folder:
        files = Path(folder) / "files"
        files.mkdir()
        with recording(recorder("rewrite", Path(folder) / "store.iodock")) as ours:
            rows = [
                row_of(kind, [program, str(files), kind, str(wanted.calls)], wanted.runs, ours)
                for kind in wanted.kinds
            ]
    header = ["ns of CPU a call", "alone", "recorded", "more", "by medians", "by pairs"]
    table(f"{wanted.runs} runs of {wanted.calls:,} calls each in turn", header, rows)


if __name__ == "__main__":
    main()
