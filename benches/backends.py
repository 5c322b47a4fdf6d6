"""Compares the costs and recorded calls of all ways of recording. Each program runs alone, under an empty
preloaded library, under `strace -f -ttT -o`, under Darshan with DXT if `darshan-dxt-parser` is in PATH, and
under each back end of `iodock record`, alternately.

    .venv/bin/python benches/backends.py [--rounds 5] [--only NAME,...] [--backends ptrace,rewrite,bpf]

Ratios compare a run with the run of the program alone in the same round, for CPU seconds (user + system of
all processes) and elapsed time: medians with the smallest and largest. "quickest" divides the CPU seconds of
the quickest run by those of the program's quickest run alone; other work on the machine disturbs these least.
strace, which takes long, runs once. "CPU ratio" includes the program and the recorder while it records
(`crates/iodock-record/examples/record.rs`), without Python's start. "with finishing" adds the work after the
program's end (the tables of the store: `crates/iodock-import/examples/finish.rs`). "empty" is a preloaded
library that does nothing: the lower limit of `rewrite` for short programs. The captured calls are of the
kinds that iodock records, next to the counts of `strace -f -c`; for Darshan they are the reads and writes in
its traces, next to those of strace. Data calls are those of class data (read, write and similar; not mmap).
The back end `complete` is `rewrite` with `--complete`.

If no package has Darshan, it can be built from its sources with autoconf, automake, libtool and the headers
of zlib; then use `PATH=DIR/bin:$PATH`:

    ./prepare.sh
    ./configure CC=gcc --prefix=DIR --without-mpi --with-jobid-env=NONE --with-log-path=DIR \\
        --with-log-path-by-env=DARSHAN_LOGPATH
    make install
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

from measure import alternate, median, quickest, ratio, run, table
from record_cost import BUILD, ROOT, compiled, programs

BTF = Path("/sys/kernel/btf/vmlinux")
EXAMPLES = ROOT / "target" / "release" / "examples"
CONFIGURE = "i=0; while [ $i -lt 750 ]; do /bin/true; v=$(cat /etc/hostname); i=$((i+1)); done"
COUNTS = "SELECT call, count(*) AS n FROM calls_seen GROUP BY call"


def workloads(scratch: Path) -> dict[str, list[str]]:
    """Returns the programs of record_cost.py with more calls, and three more programs. They run long enough
    to measure some ns per call, and for start and end of a recording not to matter. The last one makes no
    calls that a recording contains."""
    wanted = programs(scratch)
    del wanted["shell loop"]
    wanted["4 KiB preads"][-1] = "1000000"
    wanted["4 threads"][-1] = "200000"
    flush = [compiled("stdio_flush"), str(scratch / "lines"), "400000"]
    wanted["small files"][-1] = "20000"
    wanted["sqlite"][-1] = wanted["sqlite"][-1].replace("range(600)", "range(20000)")
    wanted["git status"][-1] = wanted["git status"][-1].replace("-lt 40", "-lt 100")
    return {**wanted, "stdio fflush": flush, "1500 processes": ["sh", "-c", CONFIGURE], "true": ["/bin/true"]}


def built_tools() -> None:
    examples = (("iodock-record", "record"), ("iodock-preload", "dump"), ("iodock-import", "finish"))
    for package, example in examples:
        command = ["cargo", "build", "-q", "--release", "-p", package, "--example", example]
        subprocess.run(command, cwd=ROOT, check=True)


def empty_library() -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    library = BUILD / "nothing.so"
    source = ROOT / "benches" / "programs" / "nothing.c"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-nostdlib", "-o", library, source], check=True)
    return library


def recorder(backend: str, store: Path) -> list[str]:
    way = ["BACKEND=rewrite", "COMPLETE=1"] if backend == "complete" else [f"BACKEND={backend}"]
    return ["env", *way, "QUIET=1", str(EXAMPLES / "record"), str(store)]


class Finished:
    """Makes the tables of a recording after each of its rounds, and measures CPU seconds. Moves the store
    away, so that no recording has to remove the preceding one."""

    def __init__(self, scratch: Path, backends: Sequence[str]) -> None:
        self.scratch = scratch
        self.seconds: dict[str, list[float]] = {name: [] for name in backends}

    def __call__(self) -> None:
        """Finishes the preceding run before each run, if it was a recording."""
        stores = [(name, self.scratch / f"{name}.iodock") for name in self.seconds]
        for name, store in stores:
            if (store / "journal").exists():
                self.seconds[name].append(run([str(EXAMPLES / "finish"), str(store)]).cpu)
                shutil.rmtree(self.aside(name), ignore_errors=True)
                store.rename(self.aside(name))

    def aside(self, name: str) -> Path:
        return self.scratch / f"{name}-finished.iodock"


def contestants(
    command: list[str], scratch: Path, backends: Sequence[str], darshan: Darshan
) -> dict[str, list[str]]:
    peer = {"Darshan": darshan.command(command)} if darshan.library else {}
    return {
        "alone": command,
        "empty": ["env", f"LD_PRELOAD={empty_library()}", *command],
        **peer,
        "strace": ["strace", "-f", "-ttT", "-o", str(scratch / "log"), *command],
        **{name: [*recorder(name, scratch / f"{name}.iodock"), *command] for name in backends},
    }


class Darshan:
    """Darshan with its extended tracing (DXT). `library` is None if it is not installed."""

    DATA = frozenset(("read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev"))

    def __init__(self, scratch: Path) -> None:
        parser = shutil.which("darshan-dxt-parser")
        library = Path(parser).resolve().parent.parent / "lib" / "libdarshan.so" if parser else Path()
        self.library = library if library.is_file() else None
        self.logs = scratch / "darshan"

    def command(self, command: list[str]) -> list[str]:
        self.logs.mkdir(exist_ok=True)
        # By default Darshan leaves out /dev and everything below it. Versions before 3.4 read the environment
        # variable.
        configuration = self.logs.with_suffix(".conf")
        configuration.write_text("NAME_INCLUDE\t^/\t*\n")
        settings = (
            "DARSHAN_ENABLE_NONMPI=1",
            f"DARSHAN_CONFIG_PATH={configuration}",
            "DARSHAN_EXCLUDE_DIRS=none",
            "DXT_ENABLE_IO_TRACE=1",
            f"DARSHAN_LOGPATH={self.logs}",
        )
        return ["env", *settings, f"LD_PRELOAD={self.library}", *command]

    def traced(self) -> int:
        """Returns the number of reads and writes in the traces of the last run, and removes the traces."""
        found = 0
        for log in self.logs.glob("*"):
            # Darshan drops records that do not fit its memory, and the option prints such incomplete logs,
            # too.
            parser = ["darshan-dxt-parser", "--show-incomplete", log]
            text = subprocess.run(parser, capture_output=True, text=True).stdout
            found += sum(line.startswith(" X_") for line in text.splitlines())
        self.forget()
        return found

    def forget(self) -> None:
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir()


def counted(command: list[str], scratch: Path) -> dict[str, int]:
    """Returns calls by name, as `strace -f -c` counts them."""
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


def buffer_bytes(command: list[str], scratch: Path) -> tuple[str, str]:
    """Returns the bytes per call and per data call in the buffers of the rewrite back end."""
    done = subprocess.run(
        [str(EXAMPLES / "dump"), "-q", *command], cwd=scratch, capture_output=True, text=True
    )
    found = re.search(r"([\d.]+) bytes a call, ([\d.]+) bytes a data call", done.stdout + done.stderr)
    return (found.group(1), found.group(2)) if found else ("-", "-")


def compare(name: str, command: list[str], scratch: Path, rounds: int, backends: Sequence[str]) -> None:
    finished = Finished(scratch, backends)
    darshan = Darshan(scratch)
    everybody = contestants(command, scratch, backends, darshan)
    strace = everybody.pop("strace")
    surroundings = {"cwd": scratch, "environment": dict(os.environ)}
    runs = alternate(everybody, rounds, finished, **surroundings)
    finished()
    runs["strace"] = [run(strace, **surroundings)]
    stores = {back: recorded(finished.aside(back)) for back in backends}
    kinds = set().union(*stores.values())
    counts = counted(command, scratch)
    total = sum(n for call, n in counts.items() if call in kinds)
    data = sum(n for call, n in counts.items() if call in Darshan.DATA)
    rows = []
    for who in runs:
        added = (median(runs[who], "cpu") - median(runs["alone"], "cpu")) / max(total, 1)
        seen = f"{sum(stores[who].values()) / max(total, 1):.2%}" if who in stores else "-"
        if who == "Darshan":
            darshan.forget()
            run(everybody[who], **surroundings)
            seen = f"{darshan.traced() / max(data, 1):.2%} of data"
        sizes = buffer_bytes(command, scratch) if who == "rewrite" else ("-", "-")
        whole = ratio(runs, who, "cpu", finished.seconds[who]) if who in stores else "-"
        rows.append([
            who, f"{median(runs[who], 'cpu'):.3f}", ratio(runs, who, "cpu"),
            f"{quickest(runs[who]) / quickest(runs['alone']):.2f}", whole, ratio(runs, who, "wall"),
            f"{added * 1e9:,.0f}", *sizes, seen,
        ])  # fmt: skip
    header = [
        "", "CPU s", "CPU ratio", "quickest", "with finishing", "wall ratio", "ns a call", "bytes a call",
        "a data call", "of strace's calls",
    ]  # fmt: skip
    table(f"{name}: {total:,} calls", header, rows)
    sys.stdout.flush()


def backends_here() -> str:
    return "ptrace,rewrite,bpf" if os.geteuid() == 0 and BTF.exists() else "ptrace,rewrite"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--backends", default=backends_here(), help="back ends, separated by commas")
    options = parser.parse_args()
    backends = options.backends.split(",")
    if "bpf" not in backends:
        print(f"bpf is not compared: it was not asked for, or needs root and {BTF}")
    if not shutil.which("strace"):
        print("strace is not installed: nothing to compare with", file=sys.stderr)
        return 1
    if not Darshan(Path()).library:
        print("Darshan is not installed: it is not compared")
    print(f"load: {' '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} CPUs")
    built_tools()
    with tempfile.TemporaryDirectory(prefix="iodock-bench-", dir="/dev/shm") as folder:
        programs = workloads(Path(folder))
        names = options.only.split(",") if options.only else list(programs)
        if unknown := set(names) - programs.keys():
            parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(programs)}")
        for name in names:
            compare(name, programs[name], Path(folder), options.rounds, backends)
    return 0


if __name__ == "__main__":
    sys.exit(main())
