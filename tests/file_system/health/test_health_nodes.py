"""Tests a check-up on several nodes, which are namespaces. The test or Open MPI starts the ranks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from health_nodes import CLOCKS_S, needs_nodes, on_node, remote_shell
from health_places import ALONE, COMMAND, contents, kept_in_memory, loop_ext4, of, others_files

pytestmark = [pytest.mark.whole, needs_nodes]
NODES = sorted(CLOCKS_S)
ITEMS = 500
"""Number of files of each process in class S, and of directories."""
ARGUMENTS = ("--tests", "large-transfer,metadata", "--sizes", "1m", "--processes", "4", "--format", "json")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mounts a file system that all nodes see, and whose page cache the test can drop and examine."""
    with loop_ext4(tmp_path / "disk", 256) as place:
        others_files(place)
        yield place


def ranks(place: Path, nodes: list[str], per_node: int, *more: str) -> list[tuple[int, str, str]]:
    """Starts ranks as a Slurm step would: one on each of NODES, in this order."""
    step = {
        "SLURM_STEP_NUM_TASKS": str(len(nodes)),
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_TASKS_PER_NODE": f"{per_node}(x{len(set(nodes))})",
    }
    command = [*COMMAND, "run", str(place), *ARGUMENTS, *more]
    started = [
        subprocess.Popen(
            on_node(node, place.parent, *command),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place.parent,
            env={**ALONE, **step, "SLURM_PROCID": str(rank)},
        )
        for rank, node in enumerate(nodes)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=180) for process in started]
    return [(process.returncode, *output) for process, output in zip(started, outputs, strict=True)]


def check(found: dict[str, Any]) -> None:
    """Checks the results of any check-up with four processes on two nodes."""
    assert found["protocol"]["settings"]["hosts"] == NODES
    assert found["protocol"]["host"] in NODES
    for cell in found["cells"]:
        assert (cell["nodes"], cell["processes"]) == (2, 4)
        # Each time must be measured with one machine's clock, because the nodes' clocks differ by a million
        # seconds.
        assert 0 < cell["seconds"] < min(CLOCKS_S.values()) / 10
        assert 0 < cell["latency_ns"]["min"] <= cell["latency_ns"]["max"] < 1e9 * min(CLOCKS_S.values())
    for name in ("write", "read", "reread"):
        cell = of(found, name)
        # The result has one latency for each request of each rank.
        assert cell["latency_ns"]["count"] * (1 << 20) == pytest.approx(3 * cell["volume_bytes"], abs=3)
    limited = any("time limit" in note for note in found["protocol"]["notes"])
    # Each rank reads a file of another rank completely.
    volumes = [of(found, name)["volume_bytes"] for name in ("write", "read", "reread")]
    assert len(set(volumes)) == 1 or limited
    made = of(found, "file-create")["latency_ns"]["count"]
    assert made == 3 * 4 * ITEMS or (limited and made < 3 * 4 * ITEMS)


def test_each_node_reads_files_of_another_node(disk: Path) -> None:
    before = contents(disk)

    def check_up() -> dict[str, Any]:
        done = ranks(disk, ["node-a", "node-a", "node-b", "node-b"], 2, "--seed", "1")
        assert [code for code, _, _ in done] == [0, 0, 0, 0], done
        assert [bool(said) for _, said, _ in done] == [True, False, False, False]
        assert contents(disk) == before
        found = dict(json.loads(done[0][1]))
        check(found)
        return found

    found = kept_in_memory(check_up)
    read = of(found, "read")
    assert read["cache"] == "maybe-cached" and read["cache_reason"].startswith(
        "written on another node; dropped"
    )


def test_ranks_placed_round_robin_read_files_of_another_node(disk: Path) -> None:
    """The ranks assume that the launcher fills one node after the other. The result shows where they really
    ran."""
    done = ranks(disk, ["node-a", "node-b", "node-a", "node-b"], 2)
    assert [code for code, _, _ in done] == [0, 0, 0, 0], done
    found = json.loads(done[0][1])
    check(found)
    assert of(found, "read")["cache_reason"].startswith("written by another rank")


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed")
def test_a_check_up_runs_on_two_hosts_with_open_mpi(disk: Path, tmp_path: Path) -> None:
    before = contents(disk)
    launch = ["mpirun", "--allow-run-as-root", "-n", "4", "--host", ",".join(f"{node}:2" for node in NODES)]
    launch += ["--mca", "plm_rsh_agent", str(remote_shell(tmp_path)), "--mca", "oob_tcp_if_include", "lo"]
    launch += ["--mca", "plm_rsh_no_tree_spawn", "1"]
    for name in ("PYTHONPATH", "PATH"):
        launch += ["-x", name] if name in os.environ else []
    command = [
        *COMMAND,
        "run",
        str(disk),
        *ARGUMENTS,
        "--meet",
        "files",
        "-o",
        str(tmp_path / "r.json"),
        "-q",
    ]
    done = subprocess.run([*launch, *command], capture_output=True, text=True, timeout=180, env=ALONE)
    assert done.returncode == 0, done.stderr
    assert contents(disk) == before
    found = json.loads((tmp_path / "r.json").read_text())
    check(found)
    assert of(found, "read")["cache_reason"].startswith("written on another node; dropped")
    assert found["protocol"]["command"].startswith("iodock health run")


def test_the_report_names_the_nodes(disk: Path, tmp_path: Path) -> None:
    done = ranks(disk, ["node-a", "node-b"], 1, "--tests", "metadata", "--processes", "2")
    assert [code for code, _, _ in done] == [0, 0], done
    (tmp_path / "r.json").write_text(done[0][1])
    page = tmp_path / "r.html"
    command = [sys.executable, "-m", "iodock", "health", "report", str(tmp_path / "r.json"), "-o", str(page)]
    subprocess.run(command, check=True, timeout=60)
    assert "hosts node-a, node-b" in page.read_text()
