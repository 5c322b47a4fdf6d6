"""Measures the cost of recording: each program runs alone, under `strace -f -ttT -o`, under a bare two-stop
tracer that stores nothing, and under `iodock record` with ptrace and with the automatic back end,
alternately.

    .venv/bin/python benches/record_cost.py [--rounds 5] [--only NAME,...]

Ratios are of CPU seconds (user + system of all processes, with the recorder). Programs run long enough that
the fixed cost of a Python command line does not hide the cost of recording; the fixed cost is also measured
and printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import alternate, median, table

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "target" / "bench"
SHELL_LOOP = "i=0; while [ $i -lt 300 ]; do /bin/true; cat /etc/hostname >/dev/null; i=$((i+1)); done"
PYTHON = "import json, email, http.client, unittest, xml.dom.minidom"
SQLITE = (
    "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('create table t(a,b)');"
    "[(c.execute('insert into t values(?,?)',(i,'x'*100)), c.commit()) for i in range(600)]"
)


def compiled(name: str) -> str:
    binary = BUILD / name
    source = ROOT / "benches" / "programs" / f"{name}.c"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-O2", "-pthread", "-o", binary, source], check=True)
    return str(binary)


def programs(scratch: Path) -> dict[str, list[str]]:
    """Returns programs that need no preparation and can run again in the same folder."""
    wanted = {
        "4 KiB preads": [compiled("preads"), str(scratch / "block.bin"), "60000"],
        "small files": [compiled("small_files"), str(scratch / "small"), "6000"],
        "4 threads": [compiled("threads"), str(scratch / "threads"), "8000"],
        "python starts": ["sh", "-c", f'for i in 1 2 3 4 5 6 7 8; do "{sys.executable}" -c "{PYTHON}"; done'],
        "sqlite": ["sh", "-c", f'rm -f db; exec "{sys.executable}" -c "{SQLITE}" db'],
        "shell loop": ["sh", "-c", SHELL_LOOP],
        "grep -r": ["grep", "-rc", "-e", "import", str(Path(os.__file__).parent)],
        "git status": [
            "sh",
            "-c",
            f'i=0; while [ $i -lt 40 ]; do git -C "{ROOT}" status -s; i=$((i+1)); done',
        ],
    }
    return {name: command for name, command in wanted.items() if shutil.which(command[0])}


def contestants(command: list[str], scratch: Path) -> dict[str, list[str]]:
    record = [sys.executable, "-m", "iodock", "record", "--quiet", "--force", "-o", str(scratch / "r.iodock")]
    tracers = {
        "strace": ["strace", "-f", "-ttT", "-o", str(scratch / "log")],
        "bare": [str(bare_tracer())],
        "ptrace": [*record, "--backend", "ptrace", "--"],
        "auto": [*record, "--"],
    }
    return {"alone": command, **{name: [*tracer, *command] for name, tracer in tracers.items()}}


def bare_tracer() -> Path:
    """Builds and returns `crates/iodock-record/examples/bare_tracer.rs`, as a release build."""
    subprocess.run(
        ["cargo", "build", "-q", "--release", "-p", "iodock-record", "--example", "bare_tracer"],
        cwd=ROOT,
        check=True,
    )
    return ROOT / "target" / "release" / "examples" / "bare_tracer"


def fixed_cost(scratch: Path, rounds: int) -> float:
    """Returns the CPU seconds of recording a program that does nothing by ptrace, minus the program's own."""
    wanted = contestants(["true"], scratch)
    runs = alternate({who: wanted[who] for who in ("alone", "ptrace")}, 2 * rounds, cwd=scratch)
    return median(runs["ptrace"], "cpu") - median(runs["alone"], "cpu")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    options = parser.parse_args()
    if not shutil.which("strace"):
        print("strace is not installed: nothing to compare with", file=sys.stderr)
        return 1
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="iodock-bench-") as folder:
        scratch = Path(folder)
        fixed = fixed_cost(scratch, options.rounds)
        print(
            f"start and end of iodock itself: {fixed:.3f} s (a recording of `true`); "
            "it is in every figure but (ptrace - fixed)"
        )
        for name, command in programs(scratch).items():
            if options.only and name not in options.only.split(","):
                continue
            runs = alternate(
                contestants(command, scratch), options.rounds, cwd=scratch, environment=dict(os.environ)
            )
            cpu = {who: median(run, "cpu") for who, run in runs.items()}
            wall = {who: median(run, "wall") for who, run in runs.items()}
            rows.append([
                name, *(f"{cpu[who]:.2f}" for who in runs), f"{cpu['ptrace'] / cpu['strace']:.2f}",
                f"{wall['ptrace'] / wall['strace']:.2f}", f"{cpu['ptrace'] / cpu['bare']:.2f}",
                f"{(cpu['ptrace'] - fixed) / cpu['bare']:.2f}", f"{cpu['auto'] / cpu['strace']:.3f}",
                f"{cpu['auto'] / max(cpu['alone'], 0.001):.1f}",
            ])  # fmt: skip
            # A round takes minutes, so the measurements so far are printed even if the rest is interrupted.
            measured = " ".join(f"{who} {seconds:.2f}" for who, seconds in cpu.items())
            print(f"{name}: {measured}", flush=True)
    header = ["CPU seconds, medians", "alone", "strace", "bare", "ptrace", "auto", "ptrace/strace",
              "wall ptrace/strace", "ptrace/bare", "(ptrace - fixed)/bare",
              "auto/strace", "auto/alone"]  # fmt: skip
    table(f"Recording, {options.rounds} rounds in turn", header, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
