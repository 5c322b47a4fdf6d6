"""Tests a program with MPI-IO that srun starts on two nodes of a real Slurm: recorded into one store, into a
store for each rank, and with some ranks counted, its sums equal the program's own. `make test-slurm` runs it;
needs root, Slurm's packages and an MPI, and is no part of `make test`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from in_process import iodock
from recorded import PROGRAMS, loss_cures, rows
from slurm_site import NODES, SlurmSite, missing

RANKS, CHOSEN = 4, (0, 3)
PIECE, SMALL, SMALLS = 1 << 20, 4000, 4
"""Of fixtures/programs/mpi_io.c."""
WRITTEN = RANKS * (PIECE + SMALLS * SMALL)
# MPICH (--mpi=pmi2, UCX_TLS=tcp,self) is left out, because its MPI_Finalize sometimes hangs between these
# nodes.
PLUGINS = {"openmpi": "pmix"}
# Both nodes have the same addresses, so Open MPI must use the loopback interface.
_SETTINGS = "OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=lo"

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm can be tried here: {missing()}"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmSite]:
    # The folder's path is short, because paths of sockets must be.
    folder = Path(tempfile.mkdtemp(prefix="iodock-slurm-"))
    folder.chmod(0o755)
    slurm = SlurmSite(folder / "slurm")
    try:
        (folder / "pmix").mkdir()
        # Each node gets its own tmpfs, because PMIx would use the same names below /tmp on both.
        for node in NODES:
            slurm.start_in(node, f"pmix-{node}", ["mount", "-t", "tmpfs", "tmpfs", str(folder / "pmix")])
        for node in NODES:
            assert slurm.running[f"pmix-{node}"].wait(60) == 0, slurm.log(f"pmix-{node}")
        yield slurm
    finally:
        slurm.end()
        shutil.rmtree(folder)


@pytest.fixture(scope="module", params=PLUGINS)
def job(request: pytest.FixtureRequest, slurm: SlurmSite) -> Path:
    """Returns the folder of a job with four ranks on two nodes, recorded in three ways, and with a program of
    the batch script."""
    kind, plugin = request.param, PLUGINS[request.param]
    if shutil.which(f"mpicc.{kind}") is None:
        pytest.skip(f"{kind} is not installed")
    listed = subprocess.run(["srun", "--mpi=list"], env=slurm.environment, capture_output=True, text=True)
    if plugin not in (listed.stdout + listed.stderr).split():
        pytest.skip(f"this Slurm has no --mpi={plugin}")
    folder = slurm.folder.parent / kind
    folder.mkdir()
    subprocess.run([f"mpicc.{kind}", "-o", folder / "mpi_io", PROGRAMS / "mpi_io.c"], check=True)
    recorder = f"{sys.executable} -m iodock record -q"
    step = f"timeout 100 srun --mpi={plugin} {recorder}"
    script = [
        f"export PYTHONPATH={os.environ.get('PYTHONPATH', '')}",
        f"export SLURM_PMIX_TMPDIR={slurm.folder.parent}/pmix {_SETTINGS}",
        f"cd {folder}",
        f"{step} -o one.iodock -- ./mpi_io one.dat || exit 1",
        f"{step} -o 'parts/%h-%r.iodock' -- ./mpi_io parts.dat || exit 1",
        f"{step} -o chosen.iodock --ranks {','.join(map(str, CHOSEN))} -- ./mpi_io chosen.dat || exit 1",
        f"{recorder} -o script.iodock --ranks 3 -- sh -c 'echo batch > script.dat'",
    ]
    slurm.run("\n".join([*script, ""]), "-N", "2", "-n", str(RANKS), "--ntasks-per-node=2")
    return folder


def assert_sums_are_the_programs_own(store: Path, data: str) -> None:
    moved = rows(
        store,
        f"SELECT sum(bytes)::BIGINT AS bytes FROM calls_seen WHERE file LIKE '%/{data}' AND class = 'data'"
        " AND call LIKE '%write%'",
    )
    assert moved == [{"bytes": WRITTEN}]
    asked = rows(
        store,
        "SELECT call, count(*) AS calls, count(DISTINCT rank) AS ranks, sum(requested_bytes)::BIGINT AS bytes"
        " FROM interface_calls JOIN processes USING (utid)"
        " WHERE direction > 0 AND result = 0 GROUP BY call ORDER BY call",
    )
    assert [tuple(row.values()) for row in asked] == [
        ("MPI_File_read_at_all", RANKS, RANKS, RANKS * PIECE),
        ("MPI_File_write_at", RANKS * SMALLS, RANKS, RANKS * SMALLS * SMALL),
        ("MPI_File_write_at_all", RANKS, RANKS, RANKS * PIECE),
    ]
    outside = rows(
        store,
        "SELECT count(*) AS calls FROM events JOIN files USING (file_id)"
        f" WHERE name LIKE '%/{data}' AND bytes > 0 AND interface_call_id IS NULL",
    )
    assert outside == [{"calls": 0}]


def assert_both_nodes_are_there(store: Path) -> None:
    found = rows(store, "SELECT DISTINCT rank, host FROM processes WHERE rank IS NOT NULL ORDER BY 1, 2")
    assert [tuple(row.values()) for row in found] == [(0, "n1"), (1, "n1"), (2, "n2"), (3, "n2")]


def side_by_side(store: Path, *options: str) -> list[dict[str, object]]:
    done = iodock("show", "ranks", store, "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    return sorted(json.loads(done.stdout)["rows"], key=lambda row: int(row["rank"]))


def test_two_nodes_are_in_one_store(job: Path) -> None:
    store = job / "one.iodock"
    assert (job / "one.dat").stat().st_size == WRITTEN
    assert_both_nodes_are_there(store)
    assert_sums_are_the_programs_own(store, "one.dat")
    assert [row["rank"] for row in side_by_side(store)] == list(range(RANKS))
    assert "missing-ranks" not in loss_cures(store)


def test_a_store_for_each_rank_is_merged(job: Path) -> None:
    parts = sorted((job / "parts").glob("*.iodock"))
    assert [part.name for part in parts] == [f"n{1 + rank // 2}-{rank}.iodock" for rank in range(RANKS)]
    store = job / "merged.iodock"
    merged = iodock("merge", *parts, "-o", store)
    assert merged.returncode == 0, merged.stderr
    # Both nodes have the same clock, but iodock can only give an upper bound for the difference.
    assert "ranks: 4 of 4" in merged.stderr and "clock of n2: differs from the clock of n1" in merged.stderr
    assert_both_nodes_are_there(store)
    assert_sums_are_the_programs_own(store, "parts.dat")


def test_other_ranks_are_counted(job: Path) -> None:
    store = job / "chosen.iodock"
    found = side_by_side(store, "--file", "**/chosen.dat")
    assert [row["rank"] for row in found] == list(range(RANKS))
    assert [row["rank"] for row in found if row["recorded"] == "whole"] == list(CHOSEN)
    assert sum(int(str(row["written_bytes"])) for row in found) == WRITTEN
    asked = rows(store, "SELECT DISTINCT rank FROM interface_calls JOIN processes USING (utid) ORDER BY 1")
    assert [row["rank"] for row in asked] == list(CHOSEN)


def test_a_batch_script_has_no_rank(job: Path) -> None:
    store = job / "script.iodock"
    assert rows(store, "SELECT DISTINCT rank FROM processes") == [{"rank": None}]
    # A process without a rank is recorded, although --ranks chose other processes.
    written = rows(store, "SELECT sum(bytes)::BIGINT AS n FROM calls_seen WHERE file LIKE '%/script.dat'")
    assert written == [{"n": len("batch\n")}]
    assert "missing-ranks" not in loss_cures(store)
