"""Compares the check-up's engine with IOR, mdtest, fio and elbencho, alternately: the cost of one operation,
and throughput.

    .venv/bin/python benches/health_engine.py [--dir /dev/shm] [--rounds 15] [--only cost,throughput]

Other benchmarks are used if they are in PATH; missing ones are reported. In each round every program runs
once, in a rotating order, so that a machine whose speed drifts does not favour one; differences are taken
within a round. Intervals are of the mean, 95 %, by Student's t. On a memory file system the comparison is of
the tools and not of a disk.

Cost: CPU seconds (user and system, all processes) per create + stat + open/close + unlink of an empty file,
from the difference of two runs with many and few files, which excludes the start. iodock's cost includes its
histograms. Throughput: each tool's own figure for one file per process, written with fsync and read back;
ratios are taken within a round. The time is from the first start to the last end. For the comparison with
fio, whose processes do not begin together, it is the longest time of one process.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import table

from iodock.file_system.health import engine, readers
from iodock.file_system.health.measurements import Unit

KIB, MIB = 1 << 10, 1 << 20
SIZES = (4 * KIB, 64 * KIB, MIB)
PROCESSES = (1, 2, 4)
MANY, FEW = 40_000, 2_000
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n")
STUDENT = (
    12.71,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.16,
    2.145,
    2.131,
)
"""97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom."""


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Returns the mean, and the bounds of its 95 % interval."""
    mean, many = statistics.fmean(values), len(values)
    if many < 2:
        return mean, -math.inf, math.inf
    quantile = STUDENT[many - 2] if many - 2 < len(STUDENT) else 1.96 + 2.6 / many
    half = quantile * statistics.stdev(values) / math.sqrt(many)
    return mean, mean - half, mean + half


def turned(names: Sequence[str], by: int) -> list[str]:
    by %= len(names)
    return [*names[by:], *names[:by]]


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def quietly(command: Sequence[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)}: exit {done.returncode}: {done.stderr[-500:]}{done.stdout[-500:]}"
        )
    return done.stdout


def ours(place: Path, processes: int, pattern: dict[str, Any]) -> dict[str, Any]:
    step = {"id": 0, "processes": processes, "limit_seconds": 600.0, "pattern": pattern}
    with closing(engine.run({"directory": str(place), "steps": [step]})) as events:
        results = [event for event in events if event["event"] == "step"]
    return {one["operation"]: one for one in results[0]["done"]}


# The following functions measure the cost of one operation.


def ours_files(place: Path, count: int) -> None:
    ours(place, 1, {"kind": "metadata", "items": count, "directories": False})


def mdtest_files(place: Path, count: int) -> None:
    quietly(["mdtest", "-F", "-n", str(count), "-d", str(place / "mdtest")], place)


def elbencho_files(place: Path, count: int) -> None:
    # elbencho measures each phase, in one directory with one thread; -r opens and closes the empty files.
    phases = ["-d", "-w", "--stat", "-r", "-F", "-D"]
    sizes = ["-t", "1", "-n", "1", "-N", str(count), "-s", "0"]
    quietly(["elbencho", *phases, *sizes, "--nolive", str(place)], place)


def cost(place: Path, rounds: int) -> None:
    contestants: dict[str, Callable[[Path, int], None]] = {"iodock": ours_files}
    if there("mdtest", place):
        contestants["mdtest"] = mdtest_files
    if there("elbencho", place):
        contestants["elbencho"] = elbencho_files
    costs: dict[str, list[float]] = {name: [] for name in contestants}
    for round_number in range(rounds):
        for name in turned(list(contestants), round_number):
            used = {}
            for count in (FEW, MANY):
                before = children_cpu()
                contestants[name](place, count)
                used[count] = children_cpu() - before
            costs[name].append((used[MANY] - used[FEW]) / (MANY - FEW) * 1e6)
    rows = []
    for name, values in costs.items():
        row = [name, f"{statistics.median(values):.2f}", f"{min(values):.2f}"]
        if name == "iodock":
            row += ["", ""]
        else:
            pairs = list(zip(costs["iodock"], values, strict=True))
            mean, low, high = interval([mine - theirs for mine, theirs in pairs])
            row += [
                f"{mean:+.2f} ({low:+.2f} to {high:+.2f})",
                "yes" if high <= 0 else "NO" if low > 0 else "not told apart",
            ]
        rows.append(row)
    header = ["create+stat+open/close+unlink", "median", "least", "iodock less it (95 %)", "at most its cost"]
    table(f"CPU microseconds, {rounds} rounds, 1 process", header, rows)


# The following functions measure throughput.


@dataclass(frozen=True)
class Load:
    """The request size and the number of processes of one measurement."""

    size: int
    processes: int

    @property
    def file_bytes(self) -> int:
        return (64 if self.size < 64 * KIB else 128) * MIB


Rates = dict[str, float]
"""Bytes per second of `write` and `read`; of ours also `... own`, by the longest time of any one process."""


def ours_rates(place: Path, load: Load) -> Rates:
    pattern = {"kind": "data", "files": 1, "file_bytes": load.file_bytes, "request_bytes": load.size}
    done = ours(place, load.processes, pattern)
    rates = {}
    for name in ("write", "read"):
        rates[name] = done[name]["bytes"] / done[name]["seconds"]
        rates[f"{name} own"] = done[name]["bytes"] / done[name]["longest_process_seconds"]
    return rates


def read_back(path: Path) -> Rates:
    """Returns the rates in another tool's output, as the readers of `iodock bench` read it."""
    cells = readers.read(path).cells
    rates = {cell.operation: cell.best for cell in cells if cell.unit is Unit.BYTES_PER_S}
    return {name: rates[name] for name in ("write", "read")}


def ior_rates(place: Path, load: Load) -> Rates:
    options = ["-a", "POSIX", "-w", "-r", "-F", "-e", "-t", str(load.size), "-b", str(load.file_bytes)]
    text = quietly([*MPIRUN, str(load.processes), "ior", *options, "-o", str(place / "ior")], place)
    (place / "ior.txt").write_text(text)
    return read_back(place / "ior.txt")


def fio_rates(place: Path, load: Load) -> Rates:
    rates = {}
    common = [f"--directory={place}", "--name=fio", f"--bs={load.size}", f"--size={load.file_bytes}"]
    common += [f"--numjobs={load.processes}", "--ioengine=psync", "--group_reporting", "--output-format=json"]
    # Without these options, fio drops the cache and allocates the file in advance, which the other tools do
    # not do here.
    common += ["--fallocate=none", "--invalidate=0"]
    for way, more in (("write", ["--end_fsync=1", "--create_on_open=1"]), ("read", [])):
        text = quietly(["fio", *common, f"--rw={way}", *more], place)
        rates[way] = float(json.loads(text)["jobs"][0][way]["bw_bytes"])
    for path in place.glob("fio.*"):
        path.unlink()
    return rates


def elbencho_rates(place: Path, load: Load) -> Rates:
    result = place / "elbencho.json"
    result.unlink(missing_ok=True)
    phases = ["-d", "-w", "-r", "-F", "-D"]
    sizes = [
        "-t",
        str(load.processes),
        "-n",
        "1",
        "-N",
        "1",
        "-s",
        str(load.file_bytes),
        "-b",
        str(load.size),
    ]
    # Without --nolive, elbencho's result does not wait for the last process.
    quietly(["elbencho", *phases, *sizes, "--nolive", "--jsonfile", str(result), str(place)], place)
    return read_back(result)


def throughput(place: Path, rounds: int) -> None:
    contestants: dict[str, Callable[[Path, Load], Rates]] = {"iodock": ours_rates}
    peers = {"ior": ior_rates, "fio": fio_rates, "elbencho": elbencho_rates}
    contestants.update({name: peer for name, peer in peers.items() if there(name, place)})
    rows = []
    for size in SIZES:
        for processes in PROCESSES:
            load = Load(size, processes)
            rates: dict[str, list[Rates]] = {name: [] for name in contestants}
            for round_number in range(rounds):
                for name in turned(list(contestants), round_number):
                    rates[name].append(contestants[name](place, load))
            rows += [row for way in ("write", "read") for row in compared(load, way, rates)]
    header = ["cell", "MiB/s", "peer", "MiB/s", "ratio (95 %)", "not below"]
    table(f"throughput, {rounds} rounds", header, rows)


def compared(load: Load, way: str, rates: dict[str, list[Rates]]) -> list[list[str]]:
    rows = []
    for name in (name for name in rates if name != "iodock"):
        # fio's processes do not start together, and each measures its own time. In this comparison iodock
        # does the same.
        mine = [one[f"{way} own" if name == "fio" else way] for one in rates["iodock"]]
        theirs = [one[way] for one in rates[name]]
        logs = [math.log(left / right) for left, right in zip(mine, theirs, strict=True)]
        ratio, low, high = (math.exp(value) for value in interval(logs))
        verdict = "yes" if ratio >= 1 else "NO" if high < 1 else "not told apart"
        cell = f"{way} {load.size // KIB} KiB x {load.processes}"
        here, there_ = (statistics.median(values) / MIB for values in (mine, theirs))
        rows.append(
            [cell, f"{here:,.0f}", name, f"{there_:,.0f}", f"{ratio:.2f} ({low:.2f} to {high:.2f})", verdict]
        )
    return rows


@contextmanager
def one_group() -> Iterator[None]:
    """Puts all programs into one group of the scheduler. With autogroup (sched(7)) each session gets the same
    share of the processors, and fio creates a session for each process, so on a busy machine it would get
    more than the others."""
    setting, root = Path("/proc/sys/kernel/sched_autogroup_enabled"), Path("/sys/fs/cgroup/cpu")
    if not setting.exists() or setting.read_text().strip() == "0":
        yield
        return
    group = root / f"iodock-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        print(f"note: no group of their own ({error}): fio gets more of a busy machine", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        (root / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


LEFT_OUT: set[str] = set()


def there(program: str, place: Path) -> bool:
    """Returns whether a program can run here. If not, prints the reason once."""
    why = None
    if not shutil.which(program) or (program == "ior" and not shutil.which("mpirun")):
        why = "is not installed"
    elif program == "elbencho" and place.is_relative_to("/dev"):
        why = "works nowhere below /dev; give --dir a tmpfs elsewhere"
    if why and program not in LEFT_OUT:
        LEFT_OUT.add(program)
        print(f"left out: {program} {why}", file=sys.stderr)
    return why is None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", default="/dev/shm", help="where to measure; default: memory")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="cost,throughput")
    options = parser.parse_args()
    os.environ.setdefault("OMPI_MCA_btl_base_warn_component_unused", "0")
    with one_group(), tempfile.TemporaryDirectory(prefix="iodock-bench-", dir=options.dir) as folder:
        for name, part in (("cost", cost), ("throughput", throughput)):
            if name in options.only.split(","):
                part(Path(folder), options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
