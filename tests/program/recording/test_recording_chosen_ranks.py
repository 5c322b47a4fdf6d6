"""Tests `iodock record --ranks`, which records the calls of some ranks and only counts those of the
others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from recorded import IODOCK, PROGRAMS, live, record, rows, run

pytestmark = live
RANKS, CHOSEN, PIECE = 6, (1, 4), 1000
# Each rank writes one piece more than the preceding rank, and a child process reads each piece back.
PROGRAM = f"""
import os, subprocess
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
fd = os.open("data", os.O_RDWR | os.O_CREAT)
for number in range(rank + 1):
    os.pwrite(fd, b"x" * {PIECE}, {PIECE} * (100 * rank + number))
os.fsync(fd)
os.close(fd)
with open(f"own-{{rank}}", "wb") as own:
    own.write(b"y" * {PIECE} * (rank + 1))
subprocess.run(["cat", f"own-{{rank}}"], stdout=subprocess.DEVNULL, check=True)
"""
RECORDED = [*IODOCK, "record", "-q", "--ranks", ",".join(map(str, CHOSEN))]


def launched(folder: Path, *before: object) -> subprocess.CompletedProcess[str]:
    """Starts the ranks as a launcher does: each with its own number, and with the command BEFORE in front of
    the program."""
    program = [*map(str, before), sys.executable, "-S", "-c", PROGRAM]
    launcher = 'for rank in $(seq 0 $((RANKS - 1))); do OMPI_COMM_WORLD_RANK=$rank "$@" || exit 1; done'
    environment = {**os.environ, "RANKS": str(RANKS), "OMPI_COMM_WORLD_SIZE": str(RANKS)}
    return run(["sh", "-c", launcher, "sh", *program], folder, env=environment)


def recorded_by_one(folder: Path, *options: object) -> Path:
    """Records the launcher and all ranks by one recorder."""
    folder.mkdir()
    program = [sys.executable, "-S", "-c", PROGRAM]
    launcher = 'for rank in $(seq 0 5); do OMPI_COMM_WORLD_RANK=$rank "$@" || exit 1; done; cat data > copy'
    chosen = ("--ranks", ",".join(map(str, CHOSEN)))
    done = record(folder, *chosen, *options, "--", "sh", "-c", launcher, "sh", *program)
    assert done.returncode == 0, done.stderr
    return folder / "run.iodock"


def side_by_side(store: Path, *options: object) -> list[dict[str, Any]]:
    done = run([*IODOCK, "show", "ranks", store, "--format", "json", *options], store.parent)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return sorted(found, key=lambda row: int(row["rank"]))


def sums(store: Path, names: str, ranks: int = RANKS) -> list[tuple[object, ...]]:
    found = side_by_side(store, "--file", names)
    assert [row["rank"] for row in found] == list(range(ranks))
    measures = ("recorded", "writes", "written_bytes", "reads", "read_bytes")
    return [tuple(row[name] for name in measures) for row in found]


def of_rank(rank: int) -> str:
    return "whole" if rank in CHOSEN else "counted"


def assert_sums_are_the_programs_own(store: Path) -> None:
    pieces = [rank + 1 for rank in range(RANKS)]
    assert sums(store, "**/data") == [
        (of_rank(rank), count, count * PIECE, 0, 0) for rank, count in enumerate(pieces)
    ]
    own = sums(store, "**/own-*")
    assert [(row[0], row[2], row[4]) for row in own] == [
        (of_rank(rank), count * PIECE, count * PIECE) for rank, count in enumerate(pieces)
    ]


def ranks_with_calls(store: Path) -> set[int | None]:
    return {row["rank"] for row in rows(store, "SELECT DISTINCT rank FROM calls_seen")}


def test_sums_over_all_ranks_equal_the_programs_io(tmp_path: Path) -> None:
    store = recorded_by_one(tmp_path / "run")
    assert_sums_are_the_programs_own(store)
    # Calls of processes without a rank, such as the launcher, are recorded.
    assert ranks_with_calls(store) == {None, *CHOSEN}
    assert rows(store, "SELECT DISTINCT rank FROM profiles ORDER BY 1") == [
        {"rank": rank} for rank in range(RANKS) if rank not in CHOSEN
    ]
    counted = "SELECT count(*) AS n FROM profiles WHERE upid IS NULL OR file_id IS NULL"
    assert rows(store, counted) == [{"n": 0}]
    same = "SELECT count(*) AS n FROM files WHERE name LIKE '%/run/data'"
    assert rows(store, same) == [{"n": 1}]


def test_with_light_processes_without_a_rank_are_counted(tmp_path: Path) -> None:
    store = recorded_by_one(tmp_path / "run", "--light")
    assert_sums_are_the_programs_own(store)
    assert ranks_with_calls(store) == set(CHOSEN)
    copied = (
        "SELECT sum(written_bytes)::BIGINT AS n FROM profiles p JOIN files f USING (file_id)"
        " WHERE f.name LIKE '%/copy'"
    )
    assert rows(store, copied) == [{"n": (tmp_path / "run" / "copy").stat().st_size}]


def test_results_name_the_ranks_that_were_only_counted(tmp_path: Path) -> None:
    store = recorded_by_one(tmp_path / "run")
    counted = "counted and not recorded: ranks 0,2-3,5."
    for command in (("show", "summary"), ("show", "ranks"), ("show", "profiles"), ("show", "files")):
        done = run([*IODOCK, *command, store], tmp_path)
        assert done.returncode == 0 and counted in done.stderr, done.stderr
    told = json.loads(run([*IODOCK, "diagnose", store, "--format", "json"], tmp_path).stdout)
    assert "4 of 6 ranks were counted but not recorded" in " ".join(map(str, told["remarks"]))
    silent = {one["rule"] for one in told["silent"]}
    assert {"rank-imbalance", "two-phase", "serial-phases", "file-per-process", "straggler"} <= silent
    # For counted ranks, a query that needs single calls has no values, and iodock says this.
    late = run([*IODOCK, "show", "ranks", store, "--since", "0.01"], tmp_path)
    assert late.returncode == 0 and "counted ranks are not shown" in late.stderr, late.stderr
    found = side_by_side(store, "--since", "0.01")
    assert {row["rank"] for row in found if row["io_time_ns"] is None} >= set(range(RANKS)) - set(CHOSEN)


def test_a_light_recording_shows_its_ranks(tmp_path: Path) -> None:
    program = [sys.executable, "-S", "-c", PROGRAM]
    done = record(tmp_path, "--light", "--", "env", "OMPI_COMM_WORLD_RANK=2", *program)
    assert done.returncode == 0, done.stderr
    (row,) = side_by_side(tmp_path / "run.iodock", "--file", "**/data")
    shown = {name: row[name] for name in ("rank", "recorded", "writes", "written_bytes", "count")}
    assert shown == {"rank": 2, "recorded": "counted", "writes": 3, "written_bytes": 3000, "count": None}


def test_ranks_that_start_iodock_share_a_store(tmp_path: Path) -> None:
    done = launched(tmp_path, *RECORDED, "-o", "run.iodock", "--")
    assert done.returncode == 0, done.stderr
    assert_sums_are_the_programs_own(tmp_path / "run.iodock")
    assert ranks_with_calls(tmp_path / "run.iodock") == set(CHOSEN)


def test_recorded_and_counted_parts_are_merged(tmp_path: Path) -> None:
    done = launched(tmp_path, *RECORDED, "-o", "parts/%r.iodock", "--")
    assert done.returncode == 0, done.stderr
    parts = [tmp_path / "parts" / f"{rank}.iodock" for rank in range(RANKS)]
    for part in parts:
        # Opening a store creates its tables. The launcher's environment names further ranks, so iodock does
        # not create them at the end of the recording.
        rows(part, "SELECT 1")
    held = [json.loads((part / "manifest.json").read_text())["tables"] for part in parts]
    has = [("profiles" in tables, tables["events"] > 0) for tables in held]
    assert has == [(rank not in CHOSEN, rank in CHOSEN) for rank in range(RANKS)]
    merged = run([*IODOCK, "merge", *parts, "-o", "run.iodock"], tmp_path)
    assert merged.returncode == 0 and "ranks: 6 of 6" in merged.stderr, merged.stderr
    assert_sums_are_the_programs_own(tmp_path / "run.iodock")
    told = run([*IODOCK, "diagnose", tmp_path / "run.iodock"], tmp_path)
    assert "4 of 6 ranks were counted but not recorded" in " ".join(told.stdout.split()), told.stdout
    # Without the chosen ranks, the merged store contains only counters.
    light = run([*IODOCK, "merge", parts[0], parts[2], "-o", "light.iodock"], tmp_path)
    assert light.returncode == 0, light.stderr
    assert [row["written_bytes"] for row in side_by_side(tmp_path / "light.iodock", "--file", "**/data")] == [
        PIECE,
        3 * PIECE,
    ]


def test_an_invalid_list_of_ranks_is_refused(tmp_path: Path) -> None:
    for wrong in ("", "1-", "a", "-1", "1,,2", "3 4"):
        done = record(tmp_path, f"--ranks={wrong}", "--", "true")
        assert done.returncode == 2 and "not a list of ranks" in done.stderr, wrong
    for wrong in ("9-3", ",".join(str(2 * rank) for rank in range(65))):
        done = record(tmp_path, f"--ranks={wrong}", "--", "true")
        assert done.returncode == 2 and "rank" in done.stderr, wrong
    done = record(tmp_path, "--ranks", "0", "-p", "1")
    assert done.returncode == 2 and "--ranks is for a program that iodock starts" in done.stderr


QUESTIONS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
int PMPI_File_get_info(MPI_File file, MPI_Info *info) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    FILE *out = fopen("questions", "a");
    fprintf(out, "%d\\n", rank);
    fclose(out);
    return ((int (*)(MPI_File, MPI_Info *))dlsym(RTLD_NEXT, "PMPI_File_get_info"))(file, info);
}
"""
LAUNCHERS = {
    "openmpi": ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
    "mpich": (),
}


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_mpi_io_calls_are_recorded_for_the_chosen_ranks(tmp_path: Path, kind: str) -> None:
    if not (shutil.which(f"mpirun.{kind}") and shutil.which(f"mpicc.{kind}")):
        pytest.skip(f"{kind} is not installed")
    subprocess.run([f"mpicc.{kind}", "-o", tmp_path / "mpi_io", PROGRAMS / "mpi_io.c"], check=True)
    (tmp_path / "questions.c").write_text(QUESTIONS)
    library = tmp_path / "questions.so"
    subprocess.run([f"mpicc.{kind}", "-shared", "-fPIC", "-o", library, tmp_path / "questions.c"], check=True)
    launch = [f"mpirun.{kind}", *LAUNCHERS[kind], "-n", 4, "env", f"LD_PRELOAD={library}"]
    done = record(tmp_path, "--ranks", "0,2", "--", *launch, tmp_path / "mpi_io", "out.dat")
    assert done.returncode == 0, done.stderr
    # The recorder reads hints after two opens, an info and a view, in the chosen ranks only.
    asked_by = Counter((tmp_path / "questions").read_text().split())
    assert asked_by == {"0": 4, "2": 4}
    store = tmp_path / "run.iodock"
    found = sums(store, "**/out.dat", 4)
    assert [row[0] for row in found] == ["whole", "counted", "whole", "counted"]
    # Each rank takes part in the collective write and makes four small writes.
    written = [row[2] for row in found]
    assert sum(map(int, written)) == 4 * ((1 << 20) + 4 * 1000 * 4)
    asked = "SELECT DISTINCT p.rank FROM interface_calls JOIN processes p USING (utid) ORDER BY 1"
    assert rows(store, asked) == [{"rank": 0}, {"rank": 2}]
    shown = run([*IODOCK, "show", "interfaces", store], tmp_path)
    assert shown.returncode == 0 and "aggregator" not in shown.stdout + shown.stderr
