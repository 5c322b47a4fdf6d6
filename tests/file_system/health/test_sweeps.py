"""Tests sweeps of IOR and mdtest: matrix, commands, resuming, failures, and cleaning up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from health_places import loop_ext4
from iodock.file_system.health.measurements import Cache, Cell, Unit
from iodock.file_system.health.sweeps import commands, plan, runs
from iodock.file_system.health.sweeps.plan import IorSweep, MdtestSweep, SweepError, matrix
from places import ROOT

pytestmark = pytest.mark.whole

FAKE = ROOT / "tests" / "kit" / "fake_benchmark.py"


class Place:
    """A folder with a sweep, and simulated programs that log their arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "log"
        self.data.mkdir()
        for name in ("ior", "mdtest"):
            (folder / name).write_text("#!/bin/sh\nexit 3\n")
            (folder / name).chmod(0o755)

    def write(self, program: str = "ior", **members: Any) -> Path:
        said = {
            "folder": str(self.data),
            "program": str(self.folder / program),
            "launcher": f"{sys.executable} {FAKE} -n {{processes}}",
            **members,
        }
        path = self.folder / "sweep.toml"
        path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items()))
        return path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "iodock", "bench", *arguments]

    def environment(self, **more: str) -> dict[str, str]:
        return os.environ | {"FAKE_LOG": str(self.log), "COLUMNS": "120", "LC_ALL": "C.UTF-8", **more}

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_impossible_combinations_are_left_out_of_a_sweep() -> None:
    sweep = IorSweep(
        nodes=(1, 2),
        transfer=("4k", "1m", "3m"),
        block=("4m",),
        api=("POSIX", "MPIIO"),
        collective=(False, True),
        collective_buffering=("default", "enable"),
    )
    cells, left_out = matrix(sweep)
    # 3 MiB does not divide 4 MiB. The POSIX interface has neither collective calls nor collective buffering.
    assert (len(cells), left_out) == (2 * 2 * (1 + 4), 2 * 3 * 2 * 4 - 20)
    assert len({cell.name() for cell in cells}) == len(cells)


def test_a_fixed_number_of_processes_is_spread_over_nodes() -> None:
    cells, left_out = matrix(MdtestSweep(nodes=(1, 2, 4, 8), processes_per_node=(1, 2, 4, 8), processes=(8,)))
    assert [(cell.nodes, cell.per_node) for cell in cells] == [(1, 8), (2, 4), (4, 2), (8, 1)]
    assert left_out == 0
    with pytest.raises(SweepError):
        matrix(MdtestSweep(processes=(7,)))


def test_runs_are_shuffled_and_repeats_are_separated() -> None:
    order, _ = runs.planned(IorSweep(processes_per_node=tuple(range(1, 21)), repeats=3))
    first = [run.cell.per_node for run in order[:20]]
    assert sorted(first) == list(range(1, 21)) != first
    assert [run.repeat for run in order] == [1] * 20 + [2] * 20 + [3] * 20


def test_sweep_commands_use_the_programs_options() -> None:
    sweep = IorSweep(
        launcher="srun -N {nodes} -n {processes} --ntasks-per-node={per_node}",
        nodes=(2,),
        processes_per_node=(8,),
        api=("MPIIO",),
        access=("shared-file",),
        collective=(True,),
        collective_buffering=("disable",),
        stripe_count=(4,),
        stripe_bytes=("1m",),
        options=("-e",),
    )
    cell = matrix(sweep)[0][0]
    said = commands.command(sweep, cell, "/usr/bin/ior", Path("/x"))
    assert " ".join(said) == (
        "srun -N 2 -n 16 --ntasks-per-node=8 /usr/bin/ior -a MPIIO -t 1m -b 64m -s 1 -i 1 -o /x/data -c -e"
    )
    hints = {"IOR_HINT__MPI__romio_cb_write": "disable", "IOR_HINT__MPI__romio_cb_read": "disable"}
    assert commands.environment(sweep, cell) == hints
    assert commands.stripes(cell, Path("/x")) == ["lfs", "setstripe", "-c", "4", "-S", "1048576", "/x"]
    assert commands.needed(sweep, cell) == (16 * 64 << 20, 2)
    tests = MdtestSweep(items=10, file_bytes=(3901,), processes_per_node=(4,))
    said = commands.command(tests, matrix(tests)[0][0], "mdtest", Path("/x"))
    assert said[-10:] == ["mdtest", "-n", "10", "-i", "1", "-d", "/x", "-u", "-w", "3901", "-e", "3901"][-10:]
    assert commands.needed(tests, matrix(tests)[0][0]) == (4 * 10 * 3901, 96)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("folder = 1", "folder should be str"),
        ('folder = "/x"\nprocess_per_node = 2', "no such key: process_per_node"),
        ('folder = "/x"\napi = "MPI"', "api can't be 'MPI'"),
        ('folder = "/x"\ntransfer = "1 lot"', "transfer should be a size"),
        ('folder = "/x"\nnodes = [1, 2]', "the launcher has no {nodes}"),
        ('folder = "/x"\nrepeats = 0', "repeats should be at least 1"),
        ('folder = "/x"\ncollective = 1', "collective should be bool"),
        ('folder = "/x"\ntransfer = []', "transfer is empty"),
        ("repeats = 3", "folder is missing"),
        ("folder =", "is not TOML"),
    ],
)
def test_invalid_sweeps_are_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(content)
    with pytest.raises(SweepError) as raised:
        plan.load(path, "ior")
    assert str(raised.value).startswith(f"{path}: ") and said in str(raised.value)
    assert raised.value.hint


def test_a_sweep_becomes_one_result_with_remarks(place: Place) -> None:
    sweep = place.write(processes_per_node=[1, 2, 4, 8, 16], transfer=["64k", "256k"], block="4m", repeats=4)
    done = place.run("ior", str(sweep))
    assert done.returncode == 0, done.stderr
    result = json.loads((place.folder / "sweep.json").read_text())
    assert [(cell["size_bytes"], cell["processes"]) for cell in result["cells"]] == [
        (size, processes) for size in (65536, 262144) for processes in (1, 2, 4, 8, 16)
    ]
    assert all(cell["repeats"] == 4 and len(cell["values"]) == 4 for cell in result["cells"])
    assert "levels off at 4 processes" in done.stdout
    assert len(place.asked()) == 40
    assert list(place.data.iterdir()) == []


def test_direct_on_a_buffered_loop_device_may_be_cached(tmp_path: Path) -> None:
    measured = [
        Cell("ior", name, 1 << 20, 1, 1, 1e9, Unit.BYTES_PER_S, 1, None, cache, cache_reason=why)
        for name, cache, why in (
            ("read", Cache.UNCACHED, "O_DIRECT"),
            ("write", None, "O_DIRECT"),
            ("write", Cache.PAGE_CACHE, "no fsync"),
            ("write", None, "fsync within the measured time"),
        )
    ]
    with loop_ext4(tmp_path / "disk") as folder:
        found = list(runs._over_what(measured, str(folder)))
    assert [cell.cache for cell in found] == [Cache.MAYBE_CACHED, Cache.MAYBE_CACHED, Cache.PAGE_CACHE, None]
    assert "disk.image" in (found[0].cache_reason or "")


def test_a_sweep_over_mdtest_runs(place: Place) -> None:
    sweep = place.write("mdtest", processes_per_node=[1, 2, 4, 8], directories=["one-per-process", "shared"])
    done = place.run("mdtest", str(sweep), "-o", "m.json")
    assert done.returncode == 0, done.stderr
    cells = json.loads((place.folder / "m.json").read_text())["cells"]
    assert {cell["variant"]["directories"] for cell in cells} == {"one-per-process", "shared"}
    assert "grows in proportion to processes" in done.stdout


def test_settings_missing_from_an_output_come_from_the_sweep(place: Place) -> None:
    sweep = place.write(
        api="MPIIO", collective_buffering=["default", "enable"], repeats=2, transfer="64k", block="4m"
    )
    assert place.run("ior", str(sweep)).returncode == 0
    cells = json.loads((place.folder / "sweep.json").read_text())["cells"]
    assert [cell["variant"].get("collective_buffering") for cell in cells] == ["default", "enable"]
    assert sum(line.endswith(" enable") for line in place.asked()) == 2


def test_a_failed_run_is_reported_and_repeated(place: Place) -> None:
    sweep = place.write(processes_per_node=[1, 2], transfer="64k", block="4m", repeats=2)
    done = place.run("ior", str(sweep), FAKE_FAIL_ONCE=str(place.folder / "once"))
    assert done.returncode == 1
    assert "errno 28" in done.stderr or "exit status 1" in done.stderr
    assert "runs that failed: 1" in done.stderr
    assert len(place.asked()) == 4
    again = place.run("ior", str(sweep))
    assert again.returncode == 0, again.stderr
    assert len(place.asked()) == 5
    assert list(place.data.iterdir()) == []


def test_an_interrupted_sweep_leaves_nothing_and_resumes(place: Place) -> None:
    sweep = place.write(processes_per_node=[1, 2, 4], transfer="64k", block="4m", repeats=1)
    (place.data / "thesis.tex").write_text("not ours")
    process = subprocess.Popen(
        place.command("ior", str(sweep)),
        cwd=place.folder,
        env=place.environment(FAKE_SLEEP="30"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(600):
        if place.asked():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert [path.name for path in place.data.iterdir()] == ["thesis.tex"]
    assert place.run("ior", str(sweep)).returncode == 0
    assert len(place.asked()) == 4


def test_a_hanging_run_is_ended(place: Place) -> None:
    sweep = place.write(transfer="64k", block="4m", repeats=1, limit_seconds=0.5)
    done = place.run("ior", str(sweep), FAKE_SLEEP="60")
    assert done.returncode == 1
    assert "no run succeeded" in done.stderr and "ended after 0.5 s" in done.stderr
    assert list(place.data.iterdir()) == []


def test_impossible_sweeps_are_refused_before_the_first_run(place: Place) -> None:
    huge = place.run("ior", str(place.write(block="64m", processes_per_node=10_000_000)))
    assert huge.returncode == 1 and "the largest run needs" in huge.stderr
    absent = place.run("ior", str(place.write(program="no-such-ior")))
    assert absent.returncode == 1 and "no-such-ior: not found" in absent.stderr
    nowhere = place.run("ior", str(place.write(folder="/no/such")))
    assert nowhere.returncode == 1 and "/no/such: No such file or directory" in nowhere.stderr
    assert place.asked() == []


def test_outputs_of_another_sweep_are_not_used(place: Place) -> None:
    assert place.run("ior", str(place.write(transfer="64k", block="4m", repeats=1))).returncode == 0
    done = place.run("ior", str(place.write(transfer="128k", block="4m", repeats=1)))
    assert done.returncode == 1 and "holds the outputs of another sweep" in done.stderr


def test_a_dry_run_only_prints_commands(place: Place) -> None:
    done = place.run("ior", str(place.write(processes_per_node=[1, 2], repeats=2)), "--dry-run")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4
    assert place.asked() == [] and not (place.folder / "sweep.runs").exists()
