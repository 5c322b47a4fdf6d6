"""Measures every analysis and a diagnosis on a store of 10 M events, as shell commands: seconds, memory, and
rows/s of `accesses`.

    .venv/bin/python benches/analysis_speed.py [--events 10000000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from import_speed import BUILD, IODOCK, big_log
from measure import alternate, median, run, spread, table

ANALYSES = {
    "summary": ["summary"],
    "summary --by file": ["summary", "--by", "file"],
    "summary --by file,call": ["summary", "--by", "file,call"],
    "summary --by pattern": ["summary", "--by", "pattern"],
    "summary --by process": ["summary", "--by", "pid"],
    "sizes": ["sizes"],
    "sizes --exact": ["sizes", "--exact"],
    "timeline": ["timeline"],
    "timeline --every 0.1": ["timeline", "--every", "0.1"],
    "files": ["files"],
    "processes": ["processes"],
    "errors": ["errors"],
    "overview": ["overview"],
    "offsets": ["offsets"],
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    log, truth = big_log(options.events, 1)
    store = BUILD / f"analyses-{options.events}.iodock"
    if not store.exists():
        subprocess.run([*IODOCK, "import", str(log), "-o", str(store), "--quiet"], check=True)
    contestants = {
        name: [*IODOCK, "show", first, str(store), *rest, "--format", "csv"]
        for name, (first, *rest) in ANALYSES.items()
    }
    contestants["diagnose"] = [*IODOCK, "diagnose", str(store), "--format", "json"]
    contestants["iodock --help"] = [*IODOCK, "--help"]
    runs = alternate(contestants, options.rounds)
    rows = [
        [name, spread(one, "wall"), f"{median(one, 'peak_bytes') / 2**20:.0f}"] for name, one in runs.items()
    ]
    header = ["", "wall s, median (min to max)", "peak MiB"]
    table(f"{truth['calls_total']:,} calls, {options.rounds} rounds in turn", header, rows)
    for form in ("csv", "json", "parquet"):
        out = BUILD / f"accesses.{form}"
        command = [
            *IODOCK,
            "show",
            "accesses",
            str(store),
            "--kind",
            "all",
            "--format",
            form,
            "-o",
            str(out),
            "--quiet",
        ]
        one = run(command)
        rate = truth["calls_total"] / one.wall / 1e6
        print(
            f"accesses --format {form}: {one.wall:.2f} s, {rate:.2f} M rows/s, "
            f"{one.peak_bytes / 2**20:.0f} MiB"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
