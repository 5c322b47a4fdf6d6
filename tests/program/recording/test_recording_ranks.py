"""Tests recordings of MPI ranks."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from recorded import (
    IODOCK,
    MPIRUN,
    PROGRAMS,
    live,
    loss_cures,
    losses,
    needs_mpi,
    rows,
    run,
)

pytestmark = [pytest.mark.whole, live]


# The following tests run under mpirun.


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("mpi") / "ranks"
    subprocess.run(["mpicc", "-o", program, PROGRAMS / "ranks.c"], check=True)
    return program


def by_rank(store: Path) -> list[tuple[Any, ...]]:
    sql = (
        "SELECT rank, call, count(*) AS calls, sum(bytes)::BIGINT AS bytes FROM calls_seen"
        " WHERE file LIKE '%.dat' GROUP BY ALL ORDER BY ALL"
    )
    return [tuple(row.values()) for row in rows(store, sql)]


@needs_mpi
def test_ranks_share_one_store_with_both_command_forms(tmp_path: Path, ranks: Path) -> None:
    wanted = [
        (rank, call, calls, size)
        for rank in range(4)
        for call, calls, size in (
            ("close", 2, None),
            ("openat", 2, None),
            ("pwrite64", 17, 17 * 1009),
            ("write", 13, 13 * 1009),
        )
    ]
    inside = [*MPIRUN, *IODOCK, "record", "-q", "-o", "inside.iodock", "--", ranks]
    assert run(inside, tmp_path).returncode == 0
    outside = [*IODOCK, "record", "-q", "-o", "outside.iodock", "--", *MPIRUN, ranks]
    assert run(outside, tmp_path).returncode == 0
    assert by_rank(tmp_path / "inside.iodock") == wanted
    assert by_rank(tmp_path / "outside.iodock") == wanted
    assert "unknown-descriptors" not in losses(tmp_path / "outside.iodock")


@needs_mpi
def test_the_ranks_of_a_launch_keep_the_previous_store_once(tmp_path: Path, ranks: Path) -> None:
    ranks_of_processes = "SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank"
    for number in range(3):
        done = run([*MPIRUN, *IODOCK, "record", "-o", "run.iodock", ranks, *["x"] * number], tmp_path)
        assert done.returncode == 0, done.stderr
        # One rank prints the note for all ranks.
        assert done.stderr.count("the previous one is kept as") == (number > 0), done.stderr
        for said in ("recorded by rewrite", "the store lies on the file system", "not seen:"):
            assert done.stderr.count(said) <= 1, done.stderr
    stores = ["run-1.iodock", "run-2.iodock", "run.iodock"]
    assert sorted(path.name for path in tmp_path.glob("*.iodock")) == stores
    for store in stores:
        found = rows(tmp_path / store, ranks_of_processes)
        assert [row["rank"] for row in found] == [0, 1, 2, 3], store


@needs_mpi
def test_ranks_share_a_store_with_a_default_name_too(tmp_path: Path, ranks: Path) -> None:
    for _ in range(2):
        assert run([*MPIRUN, *IODOCK, "record", "-q", ranks], tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.glob("*.iodock")) == ["ranks-1.iodock", "ranks.iodock"]


@needs_mpi
def test_a_late_rank_joins_its_launch(tmp_path: Path) -> None:
    recorder = " ".join([*IODOCK, "record", "-q", "-o", "run.iodock", "--", "cat", "/etc/hostname"])
    assert run([*IODOCK, "record", "-q", "-o", "run.iodock", "--", "true"], tmp_path).returncode == 0
    script = f"if [ $OMPI_COMM_WORLD_RANK = 2 ]; then sleep 2; fi; {recorder}"
    assert run([*MPIRUN, "sh", "-c", script], tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-1.iodock", "run.iodock"]
    found = rows(tmp_path / "run.iodock", "SELECT DISTINCT rank FROM processes ORDER BY rank")
    assert [row["rank"] for row in found] == [0, 1, 2, 3]


@needs_mpi
def test_a_killed_rank_is_named(tmp_path: Path) -> None:
    recorder = " ".join([*IODOCK, "record", "-q", "-o", "run.iodock", "--", "sh", "-c"])
    # The recorder of rank 2 is killed. Its flushed data must be present, and the other ranks' parts complete.
    script = (
        f"if [ $OMPI_COMM_WORLD_RANK = 2 ]; then {recorder} 'sleep 2.5; kill -9 $PPID; sleep 5'; "
        f"else {recorder} 'sleep 1; cat /etc/hostname'; fi; exit 0"
    )
    done = run([*MPIRUN, "sh", "-c", script], tmp_path)
    store = tmp_path / "run.iodock"
    assert store.is_dir(), done.stderr
    found = rows(store, "SELECT DISTINCT rank FROM calls_seen WHERE rank IS NOT NULL ORDER BY 1")
    assert [row["rank"] for row in found] == [0, 1, 2, 3]
    assert "(rank 2)" in loss_cures(store)["journal-cut"]


@needs_mpi
def test_a_rank_without_a_part_is_named(tmp_path: Path) -> None:
    recorder = " ".join([*IODOCK, "record", "-q", "-o", "run.iodock", "--", "cat", "/etc/hostname"])
    script = f"if [ $OMPI_COMM_WORLD_RANK = 2 ]; then sleep 1; else {recorder}; fi"
    assert run([*MPIRUN, "sh", "-c", script], tmp_path).returncode == 0
    assert "(rank 2)" in loss_cures(tmp_path / "run.iodock")["missing-ranks"]


@needs_mpi
def test_the_ranks_of_a_launch_replace_a_store_once(tmp_path: Path, ranks: Path) -> None:
    ranks_of_processes = "SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank"
    command = [*MPIRUN, *IODOCK, "record", "--quiet", "--force", "-o", "run.iodock", str(ranks)]
    for _ in range(4):
        done = run(command, tmp_path)
        assert done.returncode == 0, done.stderr
    assert [row["rank"] for row in rows(tmp_path / "run.iodock", ranks_of_processes)] == [0, 1, 2, 3]
