"""Measures how long a user waits from the program's end to the answer, compared with other tools.

    .venv/bin/python benches/waiting.py [--events 1000,20000,1000000] [--rounds 5] [--import-lines 2000000]

For each number of events, `preads` (cached reads of 4 KiB) runs alone, recorded, and under `strace -f -c`,
`perf trace -s` and Darshan if these are installed. Then every command that answers from the recording runs,
compared with DuckDB itself (its command line, or else its Python package) counting the events. At last an
import runs, compared with `wc -l`. All programs alternate. Results are elapsed seconds and processor seconds
with all children; on a busy machine the processor seconds compare better.

perf trace needs root, and Darshan its `darshan-dxt-parser` in PATH (backends.py describes how to build it).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from backends import Darshan
from import_speed import BUILD, IODOCK, ROOT, big_log
from measure import Run, alternate, run, spread, table

ANSWERS = {
    "show summary": ("show", "summary", "STORE"),
    "show files": ("show", "files", "STORE"),
    "show processes": ("show", "processes", "STORE"),
    "diagnose": ("diagnose", "STORE"),
    "report": ("report", "STORE", "-o", "PAGE"),
    "query": ("query", "STORE", "SELECT count(*) FROM events"),
}
"""The arguments that a user types after `iodock`."""


def built() -> Path:
    """Builds the program if its source is newer, and returns it."""
    source, binary = ROOT / "benches" / "programs" / "preads.c", BUILD / "preads"
    BUILD.mkdir(parents=True, exist_ok=True)
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["cc", "-O2", "-o", binary, source], check=True)
    return binary


def recorders(program: Sequence[str], scratch: Path) -> dict[str, list[str]]:
    """Returns the commands that run the program alone, and under every installed recorder."""
    store, summary = str(scratch / "again.iodock"), str(scratch / "summary")
    found = {
        "alone": list(program),
        "record --quiet": [*IODOCK, "record", "--force", "--quiet", "-o", store, "--", *program],
    }
    if shutil.which("strace"):
        found["strace -f -c"] = ["strace", "-f", "-c", "-o", summary, *program]
    if shutil.which("perf") and _can_trace():
        found["perf trace -s"] = ["perf", "trace", "-s", "-o", summary, *program]
    darshan = Darshan(scratch)
    if darshan.library:
        found["Darshan"] = darshan.command(list(program))
    return found


def _can_trace() -> bool:
    asked = subprocess.run(["perf", "trace", "-s", "true"], capture_output=True, check=False)
    return asked.returncode == 0


def answers(store: Path, scratch: Path) -> dict[str, list[str]]:
    """Returns the commands that answer from a store, and DuckDB's own count of its events."""
    places = {"STORE": str(store), "PAGE": str(scratch / "page.html")}
    found = {name: [*IODOCK, *(places.get(word, word) for word in words)] for name, words in ANSWERS.items()}
    counting = f"SELECT count(*) FROM read_parquet('{store}/events/*.parquet')"
    if shutil.which("duckdb"):
        found["duckdb -c"] = ["duckdb", "-c", counting]
    else:
        asks = f"import duckdb; print(duckdb.sql({counting!r}).fetchall())"
        found["duckdb of Python"] = [sys.executable, "-c", asks]
    return found


def shown(title: str, runs: Mapping[str, Sequence[Run]]) -> None:
    """Prints a table of the measurements."""
    rows = [
        [name, spread(of, "wall"), spread(of, "cpu"), f"{max(one.peak_bytes for one in of) / 2**20:.0f}"]
        for name, of in runs.items()
    ]
    table(title, ["", "clock s, median (min to max)", "processor s", "peak MiB"], rows)
    sys.stdout.flush()


def waits_of(events: int, rounds: int, scratch: Path) -> None:
    """Measures the times for one number of events."""
    program = [str(built()), str(scratch / "data"), str(events)]
    shown(f"{events:,} reads: recording", alternate(recorders(program, scratch), rounds, cwd=scratch))
    store = scratch / f"{events}.iodock"
    made = run([*IODOCK, "record", "--quiet", "-o", str(store), "--", *program], cwd=scratch)
    if made.status:
        raise SystemExit("nothing was recorded")
    shown(f"{events:,} reads: answers", alternate(answers(store, scratch), rounds, cwd=scratch))


def import_of(lines: int, rounds: int, scratch: Path) -> None:
    """Measures the time of an import."""
    log, truth = big_log(lines, 1)
    store = str(scratch / "imported.iodock")
    contestants = {
        "import": [*IODOCK, "import", str(log), "--force", "--quiet", "-o", store],
        "wc -l": ["wc", "-l", str(log)],
    }
    shown(f"a log of {truth['calls_total']:,} calls", alternate(contestants, rounds))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", default="1000,20000,1000000", help="numbers of events, with commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--import-lines", type=int, default=2_000_000, help="0: nothing is imported")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iodock-waiting-") as folder:
        scratch = Path(folder)
        command = [*IODOCK, "record", "--force", "-o", str(scratch / "true.iodock"), "--", "/bin/true"]
        shown("/bin/true, with its check-up", alternate({"record": command}, options.rounds, cwd=scratch))
        for events in options.events.split(","):
            waits_of(int(events), options.rounds, scratch)
        if options.import_lines:
            import_of(options.import_lines, options.rounds, scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
