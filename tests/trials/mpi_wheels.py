"""Compares recordings with other MPI libraries (MPICH and Open MPI from PyPI, MPI-5's ABI, and mpi4py) with
the counts of MPI's profiling interface or of the program itself. `make test-mpi` installs them and runs this;
IODOCK_MPIS names their folders."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from recorded import PROGRAMS, live, record, rows

RANKS, PIECE, SMALL, SMALLS = 4, 1 << 20, 4000, 4
"""Of fixtures/programs/mpi_io.c."""
FOLDERS = {Path(folder).name: Path(folder) for folder in os.environ.get("IODOCK_MPIS", "").split()}
COMPILERS = {
    f"{name} {compiler}": folder / "bin" / compiler
    for name, folder in FOLDERS.items()
    for compiler in ("mpicc", "mpicc_abi")
    if (folder / "bin" / compiler).exists()
}
OF_OPEN_MPI = ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
WITH_MPI4PY = """
import sys
from mpi4py import MPI
ranks, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.rank
made = []
def told(name, size):
    made.append(f"MPI_File_{name} {size}")
file = MPI.File.Open(ranks, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
told("open", 0)
piece = bytearray(b"x" * 5000)
file.Write_at_all(rank * 5000, piece)
told("write_at_all", 5000)
for at in range(3):
    file.Write_at((4 + 3 * rank + at) * 5000, piece)
    told("write_at", 5000)
file.Sync()
told("sync", 0)
file.Read_at_all(((rank + 1) % 4) * 5000, piece)
told("read_at_all", 5000)
file.Close()
told("close", 0)
open(f"made.{rank}", "w").write(chr(10).join(made))
"""

pytestmark = [live, pytest.mark.skipif(not FOLDERS, reason="IODOCK_MPIS has no folders: make test-mpi")]


def launched(folder: Path, *program: object) -> list[object]:
    options = OF_OPEN_MPI if folder.name.startswith("openmpi") else ()
    return [folder / "bin" / "mpirun", *options, "-n", RANKS, *program]


def counted(files: list[Path]) -> dict[str, tuple[int, int]]:
    """Returns calls and bytes by name, from the first and the last word of each line."""
    calls, sizes = Counter[str](), Counter[str]()
    for file in files:
        for line in file.read_text().splitlines():
            name, *_, size = line.split()
            calls[name] += 1
            sizes[name] += int(size)
    return {name: (calls[name], sizes[name]) for name in calls}


def told(folder: Path) -> dict[str, tuple[int, int]]:
    found = rows(
        folder / "run.iodock",
        """SELECT call, count(*) AS calls, CAST(coalesce(sum(requested_bytes), 0) AS BIGINT) AS bytes
        FROM interface_calls GROUP BY call""",
    )
    return {row["call"]: (row["calls"], row["bytes"]) for row in found}


def written(folder: Path) -> list[dict[str, int]]:
    return rows(
        folder / "run.iodock",
        """SELECT CAST(sum(e.bytes) AS BIGINT) AS bytes,
        count(*) FILTER (e.interface_call_id IS NULL) AS outside FROM events e
        JOIN files f ON f.file_id = e.file_id WHERE f.name LIKE '%/out.dat' AND e.direction = 2""",
    )


@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_programs_are_recorded_with_each_mpi(compiler: str, tmp_path: Path) -> None:
    path = COMPILERS[compiler]
    shared = [path, "-shared", "-fPIC", "-o", tmp_path / "counter.so", PROGRAMS / "mpi_io_counter.c"]
    subprocess.run(shared, check=True)
    subprocess.run([path, "-o", tmp_path / "mpi_io", PROGRAMS / "mpi_io.c"], check=True)
    counter = ["env", f"LD_PRELOAD={tmp_path}/counter.so", f"COUNTED={tmp_path}/counted"]
    done = record(tmp_path, "--", *launched(path.parent.parent, *counter, tmp_path / "mpi_io", "out.dat"))
    assert done.returncode == 0, done.stderr
    expected = counted(list(tmp_path.glob("counted.*")))
    assert told(tmp_path) == expected
    assert expected["MPI_File_write_at_all"] == (RANKS, RANKS * PIECE)
    assert expected["MPI_File_write_at"] == (RANKS * (SMALLS + 1), RANKS * SMALLS * SMALL)
    assert written(tmp_path) == [{"bytes": RANKS * (PIECE + SMALLS * SMALL), "outside": 0}]


@pytest.mark.parametrize("name", FOLDERS)
def test_mpi4py_is_recorded_with_each_mpi(name: str, tmp_path: Path) -> None:
    program = tmp_path / "pieces.py"
    program.write_text(WITH_MPI4PY)
    python = FOLDERS[name] / "bin" / "python"
    done = record(tmp_path, "--", *launched(FOLDERS[name], python, program, "out.dat"))
    assert done.returncode == 0, done.stderr
    expected = counted(list(tmp_path.glob("made.*")))
    assert expected["MPI_File_write_at"] == (3 * RANKS, 3 * RANKS * 5000)
    assert told(tmp_path) == expected
    assert written(tmp_path) == [{"bytes": 4 * RANKS * 5000, "outside": 0}]
