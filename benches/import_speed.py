"""Measures the import of a large strace log (lines/s, MB/s, memory), compared with `wc -l` and a simple
Python reader in the same run.

    .venv/bin/python benches/import_speed.py [--events 12000000] [--rounds 3]

The log comes from `fixtures/genlog.rs`, and iodock's counts are compared with the generator's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from measure import Run, alternate, median, run, spread, table

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "target" / "bench"
IODOCK = [sys.executable, "-m", "iodock"]

# A typical script of a scientist: one regular expression for each line, and sums in a dictionary.
PLAIN_READER = r"""
import re, sys, collections
line = re.compile(r'^(\d+) (\S+) (\w+)\((.*)\)\s+= (-?\d+|\?)(?: (\w+) \([^)]*\))?(?: <([\d.]+)>)?$')
counts, seconds = collections.Counter(), collections.Counter()
for number, text in enumerate(open(sys.argv[1], errors='replace')):
    if number >= int(sys.argv[2]): break
    found = line.match(text)
    if found: counts[found[3]] += 1; seconds[found[3]] += float(found[7] or 0)
"""


def generator() -> Path:
    """Builds genlog if its source is newer than the program."""
    binary = BUILD / "genlog"
    source = ROOT / "fixtures" / "genlog.rs"
    BUILD.mkdir(parents=True, exist_ok=True)
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["rustc", "-O", "-o", binary, source], check=True)
    return binary


def big_log(events: int, seed: int) -> tuple[Path, dict]:
    """Returns a log of `events` calls and its true counts. Generates each only once."""
    log, truth = BUILD / f"big-{events}-{seed}.log", BUILD / f"big-{events}-{seed}.json"
    if not truth.exists():
        program = generator()
        with log.open("wb") as out:
            subprocess.run(
                [program, str(events), "8", "2000", str(seed), "--truth", truth], stdout=out, check=True
            )
    return log, json.loads(truth.read_text())


def show(store: Path, *arguments: str) -> list[dict]:
    done = subprocess.run(
        [*IODOCK, "show", *arguments[:1], str(store), *arguments[1:], "--format", "json"],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)["rows"]


def differences(store: Path, truth: dict) -> list[str]:
    """Compares the store with the generator's counts and returns the differences."""
    wrong = []
    names = {"count": "count", "errors": "failed", "total_ns": "total_time_ns", "bytes_read": "read_bytes",
             "bytes_written": "written_bytes", "io_calls": "io_count"}  # fmt: skip
    rows = {row["call"]: row for row in show(store, "summary", "--by", "call", "--kind", "all")}
    for call, wanted in truth["syscalls"].items():
        for theirs, ours in names.items():
            if (rows[call][ours] or 0) != wanted[theirs]:
                wrong.append(f"{call} {ours}: truth {wanted[theirs]}, found {rows[call][ours]}")
    found = {(row["file"], row["call"]): row for row in show(store, "summary", "--by", "file,call")}
    for file, calls in truth["files"].items():
        for call, wanted in calls.items():
            row = found[(file, call)]
            for theirs, ours in names.items():
                if (row[ours] or 0) != wanted[theirs]:
                    wrong.append(f"{file} {call} {ours}: truth {wanted[theirs]}, found {row[ours]}")
    bins: dict[str, dict[str, int]] = {"read": {}, "write": {}}
    for row in show(store, "sizes", "--kind", "all"):
        bins[row["direction"]][str(row["upper_bytes"])] = row["count"]
    if {way: {k: v for k, v in sizes.items() if v} for way, sizes in bins.items()} != truth["hist"]:
        wrong.append("the size histogram differs")
    seconds = {
        str(row["ts"] // 10**9): [row["read_bytes"], row["written_bytes"]] for row in show(store, "timeline")
    }
    if {k: v for k, v in seconds.items() if v != [0, 0]} != truth["per_second"]:
        wrong.append("bytes per second differ")
    return wrong


def row(name: str, runs: list[Run], lines: int, size: int, share: float = 1.0) -> list[str]:
    wall = median(runs, "wall") / share
    rates = f"{lines / wall / 1e6:.2f}", f"{size / wall / 1e6:.0f}"
    return [name, spread(runs, "wall"), spread(runs, "cpu"), *rates,
            f"{median(runs, 'peak_bytes') / 2**20:.0f}"]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--events", type=int, default=12_000_000, help="calls in the log (12 M are about 1 GB)"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    log, truth = big_log(options.events, options.seed)
    store = BUILD / "big.iodock"
    lines, size = truth["lines"], log.stat().st_size
    sample = min(
        lines, 2_000_000
    )  # The simple reader takes about 2 us per line, so it reads only a part of a 10 GB log.
    contestants = {
        "iodock import": [*IODOCK, "import", str(log), "-o", str(store), "--force", "--quiet"],
        "wc -l": ["wc", "-l", str(log)],
        "plain Python": [sys.executable, "-c", PLAIN_READER, str(log), str(sample)],
    }
    run(contestants["wc -l"])  # This run reads the log into the page cache, for all programs alike.
    runs = alternate(contestants, options.rounds)
    header = ["", "wall s", "CPU s", "M lines/s", "MB/s", "peak MiB"]
    rows = [
        row("iodock import", runs["iodock import"], lines, size),
        row("wc -l", runs["wc -l"], lines, size),
        row(f"plain Python (first {sample:,} lines)", runs["plain Python"], sample, size * sample // lines),
    ]
    table(
        f"{log.name}: {lines:,} lines, {size / 1e9:.2f} GB, median of {options.rounds} (min to max)",
        header,
        rows,
    )
    wrong = differences(store, truth)
    stored = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    print(f"store: {stored / 1e6:.0f} MB, {stored / truth['calls_total']:.1f} bytes a call")
    print("truth: " + ("agrees" if not wrong else f"{len(wrong)} differences, first: {wrong[0]}"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
