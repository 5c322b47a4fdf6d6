"""Tests a job on two nodes of a real Slurm whose ranks record into separate stores: the merged store has
exactly the program's I/O. `make test-slurm` runs it; needs root and Slurm's packages, and is no part of `make
test`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from in_process import iodock
from places import ROOT
from recorded import loss_cures, rows
from slurm_site import SlurmSite, missing

KB = 1000
READ, WRITE, TASKS = 300 * KB, 200 * KB, 4

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm can be tried here: {missing()}"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Creates a folder with the stores of a job's four ranks, two on each node."""
    # The folder's path is short, because paths of sockets must be.
    folder = Path(tempfile.mkdtemp(prefix="iodock-slurm-"))
    folder.chmod(0o755)
    source = ROOT / "tests" / "kit" / "known_io.c"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", folder / "known_io", source], check=True)
    slurm = SlurmSite(folder / "slurm")
    try:
        recorder = f"{sys.executable} -m iodock record -q -o '{folder}/parts/%h-%r.iodock'"
        # Each rank writes more than the preceding one, into one file.
        program = f"./known_io {READ} $(({WRITE} * (SLURM_PROCID + 1))) out.dat 1 1 0"
        (folder / "rank.sh").write_text(f"exec {recorder} -- {program}\n")
        sources = os.environ.get("PYTHONPATH", "")
        script = f"export PYTHONPATH={sources}\ncd {folder}\nsrun sh rank.sh\n"
        slurm.run(script, "-N", "2", "-n", str(TASKS), "--ntasks-per-node=2")
        yield folder
    finally:
        slurm.end()
        shutil.rmtree(folder)


def test_merged_sums_equal_the_programs_io(folder: Path) -> None:
    parts = sorted((folder / "parts").glob("*.iodock"))
    assert sorted(part.name for part in parts) == [f"n{1 + rank // 2}-{rank}.iodock" for rank in range(TASKS)]
    merged = iodock("merge", *parts, "-o", folder / "run.iodock")
    assert merged.returncode == 0, merged.stderr
    assert "ranks: 4 of 4" in merged.stderr and "clock of n2" in merged.stderr
    sums = rows(
        folder / "run.iodock",
        "SELECT rank, sum(bytes) FILTER (file = '/dev/zero')::BIGINT AS read,"
        " sum(bytes) FILTER (file LIKE '%/out.dat')::BIGINT AS written"
        " FROM calls_seen GROUP BY rank ORDER BY rank",
    )
    assert [tuple(row.values()) for row in sums] == [
        (rank, READ, WRITE * (rank + 1)) for rank in range(TASKS)
    ]
    hosts = rows(folder / "run.iodock", "SELECT DISTINCT rank, host FROM processes ORDER BY 1, 2")
    assert [(row["rank"], row["host"]) for row in hosts] == [(0, "n1"), (1, "n1"), (2, "n2"), (3, "n2")]


def test_a_missing_node_is_named(folder: Path) -> None:
    parts = sorted((folder / "parts").glob("n1-*.iodock"))
    assert iodock("merge", *parts, "-o", folder / "half.iodock").returncode == 0
    assert "(rank 2, 3)" in loss_cures(folder / "half.iodock")["missing-ranks"]
