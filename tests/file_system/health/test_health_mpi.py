"""Tests ranks of a check-up that synchronise outside the engine: through MPI, or through a replacement for
it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from health_places import ALONE, COMMAND, contents, others_files
from iodock.file_system.health import engine
from iodock.file_system.health.measurements_json import read

pytestmark = pytest.mark.whole

STEP = {"id": 3, "processes": 2, "limit_seconds": 5.0, "pattern": {"kind": "metadata", "items": 20}}


class Gate:
    """Replaces MPI: the ranks are threads of this process and synchronise by a barrier."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2)
        self.met = 0

    def wait(self, on: Callable[[], bool]) -> bool:
        self.barrier.wait(60)
        self.met += 1
        return on()


class Nobody:
    """Replaces MPI when one rank has died: the other rank never arrives."""

    def wait(self, on: Callable[[], bool]) -> bool:
        while on():
            time.sleep(0.01)
        return False


class Gone:
    def wait(self, on: Callable[[], bool]) -> bool:
        raise InterruptedError


def plan(folder: Path, rank: int, step: dict[str, Any]) -> dict[str, Any]:
    job = {"rank": rank, "size": 2, "key": f"test-{folder}", "met_outside": True}
    return {"directory": str(folder), "job": job, "steps": [step] if rank == 0 else []}


def told(folder: Path, *gates: Any) -> list[list[engine.Event] | Exception]:
    """Runs both ranks and returns the events of each, or its error."""
    found: list[list[engine.Event] | Exception] = [[], []]

    def one(rank: int) -> None:
        try:
            found[rank] = list(engine.run(plan(folder, rank, STEP), gates[rank]))
        except (engine.EngineError, InterruptedError) as error:
            found[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
        assert not thread.is_alive()
    return found


def test_ranks_start_each_measurement_together(tmp_path: Path) -> None:
    gate = Gate()
    first, second = told(tmp_path, gate, gate)
    assert isinstance(first, list) and isinstance(second, list)
    (step,) = [event for event in first if event["event"] == "step"]
    assert all(done["operations"] == 2 * 2 * 20 for done in step["done"])
    assert not [event for event in second if event["event"] == "step"]
    # Both ranks synchronise once for each phase and once to collect results.
    assert gate.met == 2 * (len(step["done"]) + 1)
    assert list(tmp_path.iterdir()) == []


def test_an_ended_rank_is_not_waited_for(tmp_path: Path) -> None:
    first, second = told(tmp_path, Nobody(), Gone())
    assert isinstance(first, engine.EngineError) and "another rank stopped" in str(first)
    assert isinstance(second, InterruptedError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed")
@pytest.mark.skipif(not importlib.util.find_spec("mpi4py"), reason="mpi4py is not installed")
def test_ranks_work_together_through_mpi(tmp_path: Path) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    others_files(folder)
    before = contents(folder)
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *COMMAND, "run", str(folder)]
    command += [
        "--tests",
        "metadata",
        "--processes",
        "2",
        "--meet",
        "mpi",
        "-q",
        "-o",
        str(tmp_path / "r.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ALONE)
    assert done.returncode == 0, done.stderr
    assert read(tmp_path / "r.json").protocol.settings["ranks"] == 2
    assert contents(folder) == before


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed")
@pytest.mark.skipif(bool(importlib.util.find_spec("mpi4py")), reason="mpi4py is installed")
def test_mpi_without_mpi4py_is_refused(tmp_path: Path) -> None:
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *COMMAND, "run", str(tmp_path)]
    done = subprocess.run([*command, "--meet", "mpi"], capture_output=True, text=True, timeout=120, env=ALONE)
    assert done.returncode != 0 and "mpi4py is missing" in done.stderr and "--meet files" in done.stderr
