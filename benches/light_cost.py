"""Measures the cost of counting to a program (`iodock record --light`), and of Darshan's counters if its
library is given: CPU seconds as a multiple of the program's own, alternately, pair by pair.

    .venv/bin/python benches/light_cost.py [--rounds 9] [--darshan DIR/lib/libdarshan.so] [--only NAME,...]

The result excludes the recorder process, which only wakes up once a second, and the cost of creating the
session. backends.py describes how to build Darshan; here it runs without DXT.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Run, alternate, quickest, ratio, run, table
from record_cost import ROOT, compiled, programs

COUNT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "count"


def workloads(scratch: Path) -> dict[str, list[str]]:
    every = programs(scratch)
    wanted = {name: every[name] for name in ("4 KiB preads", "small files", "sqlite", "python starts")}
    wanted["4 KiB preads"][-1] = "400000"
    wanted["small files"][-1] = "10000"
    wanted["sqlite"][-1] = wanted["sqlite"][-1].replace("range(600)", "range(4000)")
    writes = [compiled("shared_writes"), str(scratch / "writes"), "20000"]
    return {"IOR-like writes": writes, **wanted}


def darshan(library: Path, scratch: Path, command: list[str]) -> list[str]:
    configuration = scratch / "darshan.conf"
    configuration.write_text("NAME_INCLUDE\t^/\t*\n")
    settings = (
        "DARSHAN_ENABLE_NONMPI=1",
        f"DARSHAN_CONFIG_PATH={configuration}",
        "DARSHAN_EXCLUDE_DIRS=none",
        f"DARSHAN_LOGPATH={scratch}",
    )
    return ["env", *settings, f"LD_PRELOAD={library}", *command]


def without_session(runs: list[Run]) -> list[float]:
    """Returns the cost of creating the session, to be subtracted from each run."""
    nothing = [run(["env", "QUIET=1", str(COUNT), "/bin/true"]).cpu for _ in range(5)]
    return [-min(nothing)] * len(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--darshan", type=Path)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    build = ["cargo", "build", "-q", "--release", "-p", "iodock-preload", "--example", "count"]
    subprocess.run(build, cwd=ROOT, check=True)
    rows = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        scratch = Path(folder)
        for name, command in workloads(scratch).items():
            if asked.only and name not in asked.only.split(","):
                continue
            everybody = {"alone": command, "light": ["env", "QUIET=1", str(COUNT), *command]}
            if asked.darshan:
                everybody["darshan"] = darshan(asked.darshan, scratch, command)
            runs = alternate(everybody, asked.rounds, cwd=scratch)
            less = without_session(runs["light"])
            told = [ratio(runs, "light", "cpu", less)]
            told.append(f"{(quickest(runs['light']) + less[0]) / quickest(runs['alone']):.2f}")
            if asked.darshan:
                told.append(ratio(runs, "darshan", "cpu"))
                told.append(f"{quickest(runs['darshan']) / quickest(runs['alone']):.2f}")
            rows.append([name, *told])
            print(*rows[-1], file=sys.stderr, flush=True)
    heads = ["program", "light", "quickest", *(["Darshan", "quickest"] if asked.darshan else [])]
    table("CPU as a multiple of the program's own", heads, rows)


if __name__ == "__main__":
    main()
