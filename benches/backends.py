"""What each way of recording costs and sees: every program alone, under an empty preloaded library, under
`strace -f -ttT -o`, and under each back end of `iodock record`, in turn, in one run.

    .venv/bin/python benches/backends.py [--rounds 5] [--only NAME,...] [--backends ptrace,rewrite,bpf]

Ratios to the program alone are of CPU seconds (user + system of all processes, recorder included) and of wall
time, medians with the smallest and largest. The recorder is `crates/iodock-record/examples/record.rs`: the
recording itself, without Python's start and without the tables that are made afterwards. Calls captured are
those of the kinds that iodock records, beside what `strace -f -c` counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Run, alternate, median, table
from record_cost import BUILD, ROOT, compiled, programs

EXAMPLES = ROOT / "target" / "release" / "examples"
CONFIGURE = "i=0; while [ $i -lt 750 ]; do /bin/true; v=$(cat /etc/hostname); i=$((i+1)); done"
COUNTS = "SELECT call, count(*) AS n FROM calls_seen GROUP BY call"


def workloads(scratch: Path) -> dict[str, list[str]]:
    """Those of record_cost.py and two more; long enough to be measured at some ns a call."""
    wanted = programs(scratch)
    del wanted["shell loop"]
    wanted["4 KiB preads"][-1] = "400000"
    wanted["4 threads"][-1] = "60000"
    flush = [compiled("stdio_flush"), str(scratch / "lines"), "100000"]
    return {**wanted, "stdio fflush": flush, "1500 processes": ["sh", "-c", CONFIGURE]}


def built_tools() -> None:
    for package, example in (("iodock-record", "record"), ("iodock-preload", "dump")):
        command = ["cargo", "build", "-q", "--release", "-p", package, "--example", example]
        subprocess.run(command, cwd=ROOT, check=True)


def empty_library() -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    library = BUILD / "nothing.so"
    source = ROOT / "benches" / "programs" / "nothing.c"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-nostdlib", "-o", library, source], check=True)
    return library


def recorder(backend: str, store: Path) -> list[str]:
    return ["env", f"BACKEND={backend}", "QUIET=1", str(EXAMPLES / "record"), str(store)]


def contestants(command: list[str], scratch: Path, backends: Sequence[str]) -> dict[str, list[str]]:
    return {
        "alone": command,
        "empty": ["env", f"LD_PRELOAD={empty_library()}", *command],
        "strace": ["strace", "-f", "-ttT", "-o", str(scratch / "log"), *command],
        **{name: [*recorder(name, scratch / f"{name}.iodock"), *command] for name in backends},
    }


def counted(command: list[str], scratch: Path) -> dict[str, int]:
    """Calls by name, as `strace -f -c` counts them."""
    log = scratch / "counts"
    subprocess.run(
        ["strace", "-f", "-c", "-U", "name,calls", "-o", log, *command],
        cwd=scratch,
        stdout=subprocess.DEVNULL,
    )
    found = (line.split() for line in log.read_text().splitlines())
    return {words[0]: int(words[1]) for words in found if len(words) == 2 and words[1].isdigit()}


def recorded(store: Path) -> dict[str, int]:
    command = [sys.executable, "-m", "iodock", "query", str(store), COUNTS, "--format", "json"]
    rows = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["rows"]
    return {row["call"]: row["n"] for row in rows}


def buffer_bytes(command: list[str], scratch: Path) -> str:
    """Bytes a call in the rewrite back end's buffers."""
    done = subprocess.run(
        [str(EXAMPLES / "dump"), "-q", *command], cwd=scratch, capture_output=True, text=True
    )
    found = re.search(r"([\d.]+) bytes a call", done.stdout + done.stderr)
    return found.group(1) if found else "-"


def ratio(runs: dict[str, list[Run]], who: str, figure: str) -> str:
    """Pair by pair, since a machine's speed drifts: `median (minimum to maximum)`."""
    pairs = zip(runs[who], runs["alone"], strict=False)
    values = sorted(getattr(one, figure) / max(getattr(alone, figure), 1e-4) for one, alone in pairs)
    return f"{values[len(values) // 2]:.2f} ({values[0]:.2f}-{values[-1]:.2f})"


def compare(name: str, command: list[str], scratch: Path, rounds: int, backends: Sequence[str]) -> None:
    runs = alternate(
        contestants(command, scratch, backends), rounds, cwd=scratch, environment=dict(os.environ)
    )
    stores = {back: recorded(scratch / f"{back}.iodock") for back in backends}
    kinds = set().union(*stores.values())
    total = sum(n for call, n in counted(command, scratch).items() if call in kinds)
    rows = []
    for who in runs:
        added = (median(runs[who], "cpu") - median(runs["alone"], "cpu")) / max(total, 1)
        seen = f"{sum(stores[who].values()) / max(total, 1):.2%}" if who in stores else "-"
        size = buffer_bytes(command, scratch) if who == "rewrite" else "-"
        rows.append([
            who, f"{median(runs[who], 'cpu'):.3f}", ratio(runs, who, "cpu"), ratio(runs, who, "wall"),
            f"{added * 1e9:,.0f}", size, seen,
        ])  # fmt: skip
    header = ["", "CPU s", "CPU ratio", "wall ratio", "ns a call", "bytes a call", "of strace's calls"]
    table(f"{name}: {total:,} calls", header, rows)
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--backends", default="ptrace,rewrite", help="back ends, separated by commas")
    options = parser.parse_args()
    if not shutil.which("strace"):
        print("strace is not installed: nothing to compare with", file=sys.stderr)
        return 1
    if not shutil.which("darshan-parser"):
        print("Darshan is not installed: it is not compared")
    print(f"load: {' '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} CPUs")
    built_tools()
    with tempfile.TemporaryDirectory(prefix="iodock-bench-", dir="/dev/shm") as folder:
        for name, command in workloads(Path(folder)).items():
            if not options.only or name in options.only.split(","):
                compare(name, command, Path(folder), options.rounds, options.backends.split(","))
    return 0


if __name__ == "__main__":
    sys.exit(main())
