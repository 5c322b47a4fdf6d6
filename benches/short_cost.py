"""Measures the cost of `rewrite` to a program of some milliseconds, with a precision of a tenth of a per
cent.

    .venv/bin/python benches/short_cost.py [--runs 1000] [--rounds 9] [-- COMMAND...]

backends.py alternates runs of a second, within which a shared machine changes its speed by more than this
cost. Here short single runs alternate: alone, under a preloaded library that does nothing ("empty"), and with
the library of a simultaneous recording. Results are CPU seconds (user + system) of each run and of all its
children: for each kind the mean of the middle half of its runs, and the ratios of the medians and of the
quickest.

The recorder's own cost is measured separately in `--rounds` recordings of 100 runs each: its CPU seconds,
with start and end, minus those of the program, divided by the program's. This excludes the tables, which are
made afterwards.

COMMAND is `git status` of this checkout by default. It must not write anything that its next run would find.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from backends import built_tools, empty_library, recorder
from measure import table
from record_cost import ROOT

# Variables by which a recorded program joins its recording.
OURS = ("LD_PRELOAD", "IODOCK_SESSION")
# Prints the environment, and waits until its standard input is closed.
TELLS = "env; echo; exec cat"
SERIES = 100


def cpu_of(command: list[str], environment: Mapping[str, str]) -> float:
    """Returns the CPU seconds of one run, and of the children that it waited for."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        files = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
        child = os.posix_spawn(command[0], command, environment, file_actions=files)
    finally:
        os.close(null)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{command[0]} ended with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


@contextmanager
def recording(recorder: Sequence[str]) -> Iterator[dict[str, str]]:
    """Starts a recording and yields the environment variables that a program needs to join it. RECORDER: the
    command that records a program."""
    command = [*recorder, "sh", "-c", TELLS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        told = dict(line.rstrip("\n").partition("=")[::2] for line in iter(child.stdout.readline, "\n"))
        try:
            yield {name: told[name] for name in OURS}
        finally:
            child.stdin.close()


def in_turn(command: list[str], runs: int, ways: Mapping[str, Mapping[str, str]]) -> dict[str, list[float]]:
    """Returns the CPU seconds of each run of each way."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(runs):
        for way in random.Random(number).sample(list(ways), len(ways)):
            seconds[way].append(cpu_of(command, {**os.environ, **ways[way]}))
    return seconds


def middle(seconds: Sequence[float]) -> float:
    """Returns the mean of the middle half. A median is coarse if the kernel counts in ticks."""
    quarter = len(seconds) // 4
    return statistics.mean(sorted(seconds)[quarter : len(seconds) - quarter])


def series(command: list[str]) -> NoReturn:
    """Runs the command SERIES times, prints its CPU seconds and this process's, and exits without Python's
    clean-up, which would cost time."""
    for _ in range(SERIES):
        cpu_of(command, os.environ)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(sum(one.ru_utime + one.ru_stime for one in used), flush=True)
    os._exit(0)


def recorders_part(command: list[str], store: Path) -> float:
    """Returns the recorder's CPU seconds in a recording of a series, divided by those of the program."""
    again = [sys.executable, __file__, "--series", "--", *command]
    with subprocess.Popen([*recorder("rewrite", store), *again], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        program = float(child.stdout.read())
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    return (usage.ru_utime + usage.ru_stime - program) / program


def rows_of(seconds: Mapping[str, Sequence[float]]) -> list[list[str]]:
    alone = seconds["alone"]
    return [
        [way, f"{1000 * middle(own):.3f}", f"{middle(own) / middle(alone):.4f}",
         f"{statistics.median(own) / statistics.median(alone):.4f}", f"{min(own) / min(alone):.4f}"]
        for way, own in seconds.items()
    ]  # fmt: skip


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000, help="of each kind")
    parser.add_argument("--rounds", type=int, default=9, help="recordings, for the recorder's own part")
    parser.add_argument("--series", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", default=["git", "-C", str(ROOT), "status", "-s"])
    found = parser.parse_args()
    program = shutil.which(found.command[0])
    if not program or found.runs < 4 or found.rounds < 1:
        parser.error("needs a program that is there, 4 runs or more, and a round or more")
    found.command[0] = program
    return found


def main() -> int:
    wanted = options()
    if wanted.series:
        series(wanted.command)
    built_tools()
    with tempfile.TemporaryDirectory(prefix="iodock-bench-") as folder:
        store = Path(folder) / "store.iodock"
        with recording(recorder("rewrite", store)) as ours:
            ways = {"alone": {}, "empty": {"LD_PRELOAD": str(empty_library())}, "recorded": ours}
            seconds = in_turn(wanted.command, wanted.runs, ways)
        own = sorted(recorders_part(wanted.command, store) for _ in range(wanted.rounds))
    header = ["CPU", "ms a run", "ratio", "of medians", "of the quickest"]
    table(f"{' '.join(wanted.command)}: {wanted.runs} of each in turn", header, rows_of(seconds))
    both = middle(seconds["recorded"]) / middle(seconds["alone"])
    part = statistics.median(own)
    spread = f"{own[0]:.4f}-{own[-1]:.4f}, {SERIES} runs in a recording"
    print(f"the recorder: {part:.4f} of the recorded program ({spread})")
    print(f"together: {both * (1 + part):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
