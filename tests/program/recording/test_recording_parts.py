"""Tests MPI ranks that each record into their own store, and the merged store."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from iodock.cli.recording import _named
from recorded import IODOCK, MPIRUN, PROGRAMS, live, loss_cures, losses, needs_mpi, rows, run

pytestmark = live


def test_a_store_name_may_contain_host_and_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    host = os.uname().nodename
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "7")
    assert _named("/local/%h-%r.iodock") == f"/local/{host}-7.iodock"
    assert _named("run%%r%-100%.iodock") == "run%r%-100%.iodock"
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert _named("%r") == f"pid{os.getpid()}"


@pytest.mark.whole
@needs_mpi
def test_parts_of_ranks_are_merged_to_one_run(tmp_path: Path) -> None:
    subprocess.run(["mpicc", "-o", tmp_path / "ranks", PROGRAMS / "ranks.c"], check=True)
    parts = tmp_path / "parts"
    done = run([*MPIRUN, *IODOCK, "record", "-q", "-o", "parts/%h-%r.iodock", "--", "./ranks"], tmp_path)
    assert done.returncode == 0, done.stderr
    host = os.uname().nodename
    stores = sorted(parts.glob("*.iodock"))
    assert [store.name for store in stores] == [f"{host}-{rank}.iodock" for rank in range(4)]
    merged = run([*IODOCK, "merge", *stores, "-o", "run.iodock"], tmp_path)
    assert merged.returncode == 0 and "ranks: 4 of 4" in merged.stderr, merged.stderr
    sums = rows(
        tmp_path / "run.iodock",
        "SELECT rank, call, count(*) AS calls, sum(bytes)::BIGINT AS bytes FROM calls_seen"
        " WHERE file LIKE '%.dat' AND bytes > 0 GROUP BY ALL ORDER BY ALL",
    )
    assert [tuple(row.values()) for row in sums] == [
        (rank, call, calls, calls * 1009)
        for rank in range(4)
        for call, calls in (("pwrite64", 17), ("write", 13))
    ]
    assert "missing-ranks" not in losses(tmp_path / "run.iodock")
    # The launcher sets the number of ranks, so iodock knows that a part is missing.
    assert run([*IODOCK, "merge", *stores[:3], "-o", "three.iodock"], tmp_path).returncode == 0
    assert "(rank 3)" in loss_cures(tmp_path / "three.iodock")["missing-ranks"]
    # The second launch of the same program is another run.
    again = run([*MPIRUN, *IODOCK, "record", "-q", "-o", "again/%r.iodock", "--", "./ranks"], tmp_path)
    assert again.returncode == 0, again.stderr
    mixed = run([*IODOCK, "merge", stores[0], "again/1.iodock", "-o", "mixed.iodock"], tmp_path)
    assert mixed.returncode == 2 and "is of another run than" in mixed.stderr


@pytest.mark.whole
@needs_mpi
def test_merged_mpi_io_calls_keep_their_system_calls(tmp_path: Path) -> None:
    subprocess.run(["mpicc", "-o", tmp_path / "mpi_io", PROGRAMS / "mpi_io.c"], check=True)
    recorded = [*IODOCK, "record", "-q", "-o", "parts/%r.iodock", "--", "./mpi_io", "out.dat"]
    done = run([*MPIRUN, *recorded], tmp_path)
    assert done.returncode == 0, done.stderr
    stores = sorted((tmp_path / "parts").glob("*.iodock"))
    assert run([*IODOCK, "merge", *stores, "-o", "run.iodock"], tmp_path).returncode == 0
    inside = (
        "SELECT k.call, sum(e.bytes)::BIGINT AS bytes, count(*) AS calls FROM events e JOIN interface_calls k"
        " ON k.id = e.interface_call_id AND k.file_id = e.file_id AND k.utid = e.utid"
        " WHERE e.bytes > 0 GROUP BY ALL ORDER BY ALL"
    )
    asked = (
        "SELECT call, count(*) AS n, sum(requested_bytes)::BIGINT AS bytes FROM interface_calls GROUP BY ALL"
    )
    whole = {row["call"]: (row["bytes"], row["calls"]) for row in rows(tmp_path / "run.iodock", inside)}
    summed: dict[str, tuple[int, int]] = {}
    for store in stores:
        for row in rows(store, inside):
            size, calls = summed.get(row["call"], (0, 0))
            summed[row["call"]] = (size + row["bytes"], calls + row["calls"])
    assert whole == summed and whole["MPI_File_write_at_all"][0] == 4 << 20
    made = {row["call"]: (row["n"], row["bytes"]) for row in rows(tmp_path / "run.iodock", asked)}
    assert made["MPI_File_write_at_all"] == (4, 4 << 20)
    said = run([*IODOCK, "show", "interfaces", "run.iodock"], tmp_path)
    assert "of 4 ranks" in said.stdout + said.stderr
