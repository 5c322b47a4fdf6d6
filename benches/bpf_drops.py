"""Measures whether `iodock record --backend bpf` loses calls of a fast program while other programs keep the
CPUs busy.

    .venv/bin/python benches/bpf_drops.py [--seconds 5] [--busy 4] [--rates 150000,500000,0]

A program makes a given number of reads and writes per second (0: as many as possible) while other processes
compute. The tool prints the calls that the program made, those in the store, those counted as dropped, and
the rate that the program reached. The recorder is `crates/iodock-record/examples/record.rs`, and
`crates/iodock-import/examples/finish.rs` makes the tables. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import table
from record_cost import ROOT, compiled

EXAMPLES = ROOT / "target" / "release" / "examples"
COUNT = "SELECT count(*) AS n FROM calls_seen WHERE call IN ('read', 'write') AND bytes >= 0"


def built() -> None:
    for package, example in (("iodock-record", "record"), ("iodock-import", "finish")):
        command = ["cargo", "build", "-q", "--release", "-p", package, "--example", example]
        subprocess.run(command, cwd=ROOT, check=True)


def in_store(store: Path) -> int:
    command = [sys.executable, "-m", "iodock", "query", str(store), COUNT, "--format", "json"]
    return int(json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["rows"][0]["n"])


def dropped(store: Path) -> int:
    losses = json.loads((store / "manifest.json").read_text())["losses"]
    return sum(loss["count"] for loss in losses if loss["name"] == "dropped-records")


def measured(rate: int, seconds: float, store: Path) -> list[str]:
    command = [str(EXAMPLES / "record"), str(store), compiled("paced"), str(rate), str(seconds)]
    surroundings = {**os.environ, "BACKEND": "bpf", "QUIET": "1"}
    made = int(subprocess.run(command, env=surroundings, stdout=subprocess.PIPE, check=True).stdout)
    subprocess.run([str(EXAMPLES / "finish"), str(store)], stderr=subprocess.DEVNULL, check=True)
    wanted = f"{rate:,}" if rate else "most"
    return [wanted, f"{made / seconds:,.0f}", f"{made:,}", f"{in_store(store):,}", f"{dropped(store):,}"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--busy", type=int, default=4, help="processes that only compute")
    parser.add_argument("--rates", default="150000,500000,0", help="calls a second, separated by commas")
    options = parser.parse_args()
    built()
    endless = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(endless) for _ in range(options.busy)]
    try:
        with tempfile.TemporaryDirectory(prefix="iodock-bench-") as folder:
            rates = [int(rate) for rate in options.rates.split(",")]
            rows = [measured(rate, options.seconds, Path(folder) / "run.iodock") for rate in rates]
    finally:
        for process in busy:
            process.kill()
    header = ["calls a second", "reached", "calls", "in the store", "dropped"]
    title = f"beside {options.busy} busy processes on {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    table(title, header, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
