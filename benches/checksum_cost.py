"""Measures the cost of checksums to a reader: queries scan all events of a store with checksums and of one
without, alternately. Each query runs in its own process, which reads every file that it needs once for the
checksum.

    .venv/bin/python benches/checksum_cost.py [--events 10000000] [--rounds 15]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time

from import_speed import BUILD, IODOCK, big_log
from measure import alternate, median, spread, table

from iodock import _native

QUESTIONS = {
    "summary --by call,file": ["summary", "--by", "call,file"],
    "sizes": ["sizes"],
    "files": ["files"],
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    log, truth = big_log(options.events, 1)
    with_them, without = (BUILD / f"checksums-{name}.iodock" for name in ("with", "without"))
    subprocess.run([*IODOCK, "import", str(log), "-o", str(with_them), "--quiet", "--force"], check=True)
    shutil.rmtree(without, ignore_errors=True)
    shutil.copytree(with_them, without)
    manifest = json.loads((without / "manifest.json").read_text())
    del manifest["checksums"], manifest["checksum"]
    (without / "manifest.json").write_text(json.dumps(manifest))
    rows = []
    for name, (first, *rest) in QUESTIONS.items():
        asked = {
            store.name: [*IODOCK, "show", first, str(store), *rest, "--format", "csv", "--quiet"]
            for store in (with_them, without)
        }
        runs = alternate(asked, options.rounds)
        ones = runs[with_them.name], runs[without.name]
        more = (median(ones[0], "wall") / median(ones[1], "wall") - 1) * 100
        pairs = [(one.wall / other.wall - 1) * 100 for one, other in zip(*ones, strict=True)]
        rows.append(
            [
                name,
                *(spread(one, "wall") for one in ones),
                f"{more:+.1f} %",
                f"{statistics.median(pairs):+.1f} %",
            ]
        )
    header = ["", "with, s", "without, s", "of medians", "median of pairs"]
    table(f"{truth['calls_total']:,} calls, {options.rounds} rounds in turn", header, rows)
    events = with_them / "events/part-00000.parquet"
    times = []
    for _ in range(options.rounds):
        start = time.perf_counter()
        _native.file_checksum(events)
        times.append(time.perf_counter() - start)
    size = events.stat().st_size
    middle = statistics.median(times)
    print(
        f"checksum of {size / 1e6:.0f} MB: median {middle * 1e3:.1f} ms "
        f"({min(times) * 1e3:.1f} to {max(times) * 1e3:.1f}), {size / middle / 1e9:.1f} GB/s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
