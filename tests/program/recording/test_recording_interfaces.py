"""Compares recorded MPI-IO calls with the counts of a library that uses MPI's profiling interface (PMPI)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from iodock.program.store.anonymous import anonymous_copy
from recorded import IODOCK, PROGRAMS, live, needs_gcc, record, rows, run

pytestmark = live
RANKS, PIECE, SMALL, SMALLS = 4, 1 << 20, 1000, 4
LAUNCHERS = {
    "openmpi": ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
    "mpich": (),
}


def needed(kind: str) -> None:
    if not (shutil.which(f"mpirun.{kind}") and shutil.which(f"mpicc.{kind}")):
        pytest.skip(f"{kind} is not installed")


@pytest.fixture(scope="module", params=LAUNCHERS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with the store of four ranks, the file that they wrote, and the counts of the
    profiling library."""
    kind = request.param
    needed(kind)
    folder = tmp_path_factory.mktemp(kind)
    compiler = f"mpicc.{kind}"
    subprocess.run([compiler, "-o", folder / "mpi_io", PROGRAMS / "mpi_io.c"], check=True)
    shared = [compiler, "-shared", "-fPIC", "-o", folder / "counter.so", PROGRAMS / "mpi_io_counter.c"]
    subprocess.run(shared, check=True)
    launched = [f"mpirun.{kind}", *LAUNCHERS[kind], "-n", RANKS]
    counting = ["env", f"LD_PRELOAD={folder / 'counter.so'}", f"COUNTED={folder / 'counted'}"]
    done = record(folder, "--", *launched, *counting, folder / "mpi_io", folder / "out.dat")
    assert done.returncode == 0, done.stderr
    return folder


def counted(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Returns calls, failed calls and bytes by name, as the profiling library counted them."""
    calls, failed, sizes = Counter[str](), Counter[str](), Counter[str]()
    for file in folder.glob("counted.*"):
        for line in file.read_text().splitlines():
            name, has_failed, size = line.split()
            calls[name] += 1
            failed[name] += int(has_failed)
            sizes[name] += int(size)
    return {name: (calls[name], failed[name], sizes[name]) for name in calls}


def asked(folder: Path, sql: str) -> list[dict[str, Any]]:
    return rows(folder / "run.iodock", sql)


def test_each_mpi_io_call_is_recorded_with_its_bytes(recorded: Path) -> None:
    found = asked(
        recorded,
        """SELECT call, count(*) AS calls, count(*) FILTER (result <> 0) AS failed,
        CAST(coalesce(sum(requested_bytes), 0) AS BIGINT) AS bytes
        FROM interface_calls GROUP BY call""",
    )
    assert {row["call"]: (row["calls"], row["failed"], row["bytes"]) for row in found} == counted(recorded)
    assert counted(recorded)["MPI_File_write_at_all"] == (RANKS, 0, RANKS * PIECE)
    assert counted(recorded)["MPI_File_write_at"] == (RANKS * (SMALLS + 1), RANKS, RANKS * SMALLS * SMALL * 4)


def test_the_written_file_is_the_same_as_without_recording(recorded: Path) -> None:
    blocks = (recorded / "out.dat").read_bytes()
    assert len(blocks) == RANKS * (PIECE + SMALLS * SMALL * 4)
    assert blocks[: RANKS * 4096] == b"".join(bytes([ord("a") + rank]) * 4096 for rank in range(RANKS))


def test_system_calls_belong_to_their_mpi_io_call(recorded: Path) -> None:
    inside = asked(
        recorded,
        """SELECT count(*) AS calls, count(k.id) AS attributed,
        count(*) FILTER (k.utid = e.utid AND k.ts <= e.ts AND e.ts + e.dur <= k.end_ts) AS nested,
        CAST(sum(e.bytes) FILTER (e.direction = 2) AS BIGINT) AS written
        FROM events e JOIN files f ON f.file_id = e.file_id
        LEFT JOIN interface_calls k ON k.id = e.interface_call_id
        WHERE f.name LIKE '%/out.dat' AND e.direction > 0""",
    )[0]
    assert inside["calls"] == inside["attributed"] == inside["nested"] > 0
    assert inside["written"] == RANKS * (PIECE + SMALLS * SMALL * 4)


def test_other_system_calls_belong_to_no_mpi_io_call(recorded: Path) -> None:
    outside = asked(
        recorded,
        """SELECT count(*) AS calls FROM events e JOIN interface_calls k ON k.utid = e.utid
        AND k.ts <= e.ts AND e.ts + e.dur <= k.end_ts WHERE e.interface_call_id IS DISTINCT FROM k.id""",
    )[0]
    assert outside["calls"] == 0


def test_offsets_of_mpi_io_calls_are_file_offsets(recorded: Path) -> None:
    found = asked(
        recorded,
        """SELECT offset_bytes FROM interface_calls WHERE call = 'MPI_File_write_at' AND result = 0
        ORDER BY offset_bytes""",
    )
    first = RANKS * PIECE
    wanted = [first + at * SMALL * 4 for at in range(RANKS * SMALLS)]
    assert [row["offset_bytes"] for row in found] == wanted
    # With a file view that has gaps, the recorder does not know the offset.
    views = asked(recorded, "SELECT offset_bytes FROM interface_calls WHERE call = 'MPI_File_write_at_all'")
    assert [row["offset_bytes"] for row in views] == [None] * RANKS


def test_show_interfaces_names_the_aggregators(recorded: Path) -> None:
    shown = run([*IODOCK, "show", "interfaces", "run.iodock", "--format", "json"], recorded).stdout
    movers = asked(
        recorded,
        """SELECT count(DISTINCT e.utid) AS movers FROM events e
        JOIN interface_calls k ON k.id = e.interface_call_id AND k.file_id = e.file_id
        WHERE k.call = 'MPI_File_write_at_all' AND e.bytes > 0""",
    )[0]["movers"]
    words = {1: "1 aggregator of 4 ranks", RANKS: "each of 4 ranks by itself"}
    word = words.get(movers, f"{movers} aggregators of 4 ranks")
    assert f"MPI_File_write_at_all -> pwrite64: {word}" in shown


def test_requested_and_effective_hints_are_recorded(recorded: Path) -> None:
    found = asked(
        recorded,
        """SELECT DISTINCT k.call, h.key, h.asked, h.taken FROM hints h
        JOIN interface_calls k ON k.id = h.interface_call_id WHERE h.asked IS NOT NULL""",
    )
    by_key = {row["key"]: (row["asked"], row["taken"]) for row in found if row["call"] == "MPI_File_open"}
    assert by_key["cb_buffer_size"][0] == "33554432" and by_key["no_such_hint"][0] == "7"
    # Open MPI returns all hints that the program set; MPICH returns only those that it knows.
    assert by_key["cb_buffer_size"][1] == "33554432"
    shown = run([*IODOCK, "show", "interfaces", "run.iodock", "--hints", "--format", "csv"], recorded).stdout
    assert "cb_buffer_size" in shown and "no_such_hint" in shown
    later = [(row["call"], row["key"], row["asked"]) for row in found if row["call"] != "MPI_File_open"]
    assert sorted(later) == [
        ("MPI_File_set_info", "cb_nodes", "1"),
        ("MPI_File_set_view", "no_such_hint", "8"),
    ]


def test_an_anonymous_copy_has_no_values_of_hints(recorded: Path, tmp_path: Path) -> None:
    copy = anonymous_copy(recorded / "run.iodock", tmp_path / "copy.iodock")
    counting = "SELECT count(*) AS calls FROM interface_calls"
    assert rows(copy, counting) == asked(recorded, counting)
    assert rows(copy, "SELECT count(asked) + count(taken) AS told FROM hints") == [{"told": 0}]


def test_calls_can_be_grouped_by_interface(recorded: Path) -> None:
    asked_for = ["--file", "**/out.dat", "--by", "interface,interface-call", "--format", "csv"]
    shown = run([*IODOCK, "show", "summary", "run.iodock", *asked_for], recorded)
    found = shown.stdout.splitlines()
    by_call = {line.split(",")[1].strip('"'): line.split(",")[0].strip('"') for line in found[1:]}
    assert by_call["MPI_File_write_at_all"] == by_call["MPI_File_write_at"] == "MPI-IO"


def test_collective_buffering_is_named_without_a_finding(recorded: Path) -> None:
    shown = run([*IODOCK, "diagnose", "run.iodock", "--format", "json"], recorded).stdout
    found = {one["rule"]: one for one in json.loads(shown)["findings"]}
    assert found["two-phase"]["severity"] == "note"
    assert not {"serial-phases", "rank-imbalance", "straggler"} & set(found)


@pytest.mark.parametrize("kind", LAUNCHERS)
@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
def test_fortran_programs_are_recorded_alike(kind: str, module: str, tmp_path: Path) -> None:
    needed(kind)
    if not shutil.which(f"mpif90.{kind}"):
        pytest.skip(f"{kind} has no compiler of Fortran")
    chosen = ["-cpp", *(["-DF08"] if module == "mpi_f08" else [])]
    compiler = [f"mpif90.{kind}", *chosen, "-o", tmp_path / "mpi_io", PROGRAMS / "mpi_io.f90"]
    subprocess.run(compiler, check=True, cwd=tmp_path)
    launched = [f"mpirun.{kind}", *LAUNCHERS[kind], "-n", RANKS]
    done = record(tmp_path, "--", *launched, tmp_path / "mpi_io", tmp_path / "out.dat")
    assert done.returncode == 0, done.stderr
    found = asked(
        tmp_path,
        """SELECT call, count(*) AS calls, CAST(sum(requested_bytes) AS BIGINT) AS bytes
        FROM interface_calls k JOIN files f ON f.file_id = k.file_id
        WHERE f.name LIKE '%/out.dat' AND result = 0 GROUP BY call""",
    )
    assert {row["call"]: (row["calls"], row["bytes"]) for row in found} == {
        "MPI_File_open": (RANKS, None),
        "MPI_File_set_info": (RANKS, None),
        "MPI_File_set_view": (RANKS, None),
        "MPI_File_write_at_all": (RANKS, RANKS * 8000),
        "MPI_File_write_at": (RANKS * 3, RANKS * (80 + 160 + 240)),
        "MPI_File_close": (RANKS, None),
    }
    offsets = "SELECT offset_bytes FROM interface_calls WHERE call = 'MPI_File_write_at_all' ORDER BY 1"
    assert [row["offset_bytes"] for row in asked(tmp_path, offsets)] == [
        16 + at * 8000 for at in range(RANKS)
    ]
    hints = asked(
        tmp_path,
        """SELECT k.call, h.key, h.asked, count(*) AS ranks FROM hints h
        JOIN interface_calls k ON k.id = h.interface_call_id WHERE h.asked IS NOT NULL GROUP BY ALL""",
    )
    assert {(row["call"], row["key"], row["asked"], row["ranks"]) for row in hints} == {
        ("MPI_File_open", "cb_buffer_size", "33554432", RANKS),
        ("MPI_File_set_info", "cb_buffer_size", "33554432", RANKS),
        ("MPI_File_set_info", "no_such_hint", "7", RANKS),
        ("MPI_File_set_view", "cb_buffer_size", "33554432", RANKS),
        ("MPI_File_set_view", "no_such_hint", "7", RANKS),
    }
    outside = asked(
        tmp_path,
        """SELECT count(*) AS calls FROM events e JOIN files f ON f.file_id = e.file_id
        WHERE f.name LIKE '%/out.dat' AND e.direction > 0 AND e.interface_call_id IS NULL""",
    )
    assert outside[0]["calls"] == 0


@needs_gcc
@pytest.mark.parametrize("kind", LAUNCHERS)
def test_split_nonblocking_and_large_count_calls(kind: str, tmp_path: Path) -> None:
    needed(kind)
    subprocess.run([f"mpicc.{kind}", "-o", tmp_path / "calls", PROGRAMS / "mpi_calls.c"], check=True)
    launched = [f"mpirun.{kind}", *LAUNCHERS[kind], "-n", RANKS, tmp_path / "calls", tmp_path / "out.dat"]
    done = record(tmp_path, "--", *launched)
    assert done.returncode == 0, done.stderr
    made, sizes = Counter[str](), Counter[str]()
    for line in done.stdout.splitlines():
        name, size = line.split()
        made[name] += 1
        sizes[name] += int(size)
    found = asked(
        tmp_path,
        """SELECT call, count(*) AS calls, CAST(coalesce(sum(requested_bytes), 0) AS BIGINT) AS bytes
        FROM interface_calls GROUP BY call""",
    )
    assert {row["call"]: (row["calls"], row["bytes"]) for row in found} == {
        name: (made[name], sizes[name]) for name in made
    }
    # Open MPI has no calls for large counts. The program makes the plain calls instead, and one with a count
    # too large for them fails.
    assert made["MPI_File_write_at"] == RANKS * (1 if kind == "mpich" else 2)
    failed = asked(tmp_path, "SELECT count(*) AS calls FROM interface_calls WHERE result <> 0")
    assert failed == [{"calls": 0 if kind == "mpich" else RANKS}]
    far = asked(tmp_path, "SELECT DISTINCT max(offset_bytes) AS far FROM interface_calls")
    assert far == [{"far": 5 * 3 << 30}]
    moved = asked(
        tmp_path,
        """SELECT CAST(sum(e.bytes) FILTER (e.interface_call_id IS NOT NULL) AS BIGINT) AS within,
        CAST(sum(e.bytes) AS BIGINT) AS bytes
        FROM events e JOIN files f USING (file_id) WHERE f.name LIKE '%/out.dat' AND e.direction = 2""",
    )[0]
    assert moved["bytes"] == sum(size for name, size in sizes.items() if "write" in name)
    # Threads of the MPI library transfer the data of non-blocking calls later, outside of any MPI call.
    later = sum(
        size for name, size in sizes.items() if "iwrite" in name or ("write" in name and "begin" in name)
    )
    assert moved["bytes"] - later <= moved["within"] <= moved["bytes"]


def test_a_program_without_mpi_does_not_get_the_mpi_library(tmp_path: Path) -> None:
    program = ["sh", "-c", "echo $LD_PRELOAD > preloaded"]
    for how, has_it in (("auto", False), ("never", False), ("always", True)):
        record(tmp_path, "--force", "--interfaces", how, "--", *program, env={**os.environ, "LD_PRELOAD": ""})
        assert ("libiodock_interfaces.so" in (tmp_path / "preloaded").read_text()) == has_it


def test_ranks_of_one_launch_are_recorded_together(recorded: Path) -> None:
    shown = run([*IODOCK, "show", "ranks", "run.iodock", "--file", "*/out.dat", "--format", "json"], recorded)
    ranks = json.loads(shown.stdout)["rows"]
    times = [row["io_time_ns"] for row in ranks]
    assert sorted(row["rank"] for row in ranks) == list(range(RANKS)) and times == sorted(times, reverse=True)
    written = RANKS * (PIECE + SMALLS * SMALL * 4)
    assert sum(row["written_bytes"] for row in ranks) == written
    # In collective calls a rank waits for others that make the system calls, so the store does not count all
    # of the time.
    (called,) = asked(recorded, "SELECT sum(dur) AS time FROM interface_calls WHERE is_collective")
    assert 0 < sum(row["collective_time_ns"] for row in ranks) < called["time"]
    others = run([*IODOCK, "show", "ranks", "run.iodock", "--file", "/dev/*", "--format", "json"], recorded)
    assert [row["collective_time_ns"] for row in json.loads(others.stdout)["rows"]] == [None] * RANKS
