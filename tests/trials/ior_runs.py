"""Compares recordings of IOR and mdtest with three sources: what the benchmark prints, a library that counts
by MPI's profiling interface (PMPI), and counts of calls of libc. `make test-ior` builds IOR and runs this;
IODOCK_IOR names its folders."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recorded import PROGRAMS, live, record, rows, run

RANKS, TRANSFER, BLOCK, SEGMENTS = 4, 4096, 16384, 20
TRANSFERS = RANKS * SEGMENTS * BLOCK // TRANSFER
BYTES = TRANSFERS * TRANSFER
ITEMS, ITEM = 25, 3901
LAUNCHERS = {
    "openmpi": ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
    "mpich": (),
}
FOLDERS = {Path(folder).name: Path(folder) for folder in os.environ.get("IODOCK_IOR", "").split()}
WAYS = {
    "POSIX": ("-a", "POSIX"),
    "POSIX, a file for each rank": ("-a", "POSIX", "-F"),
    "MPI-IO": ("-a", "MPIIO"),
    "MPI-IO, collective": ("-a", "MPIIO", "-c"),
    "MPI-IO, a file for each rank": ("-a", "MPIIO", "-F"),
    "HDF5": ("-a", "HDF5"),
    "HDF5, collective": ("-a", "HDF5", "-c"),
}

pytestmark = [live, pytest.mark.skipif(not FOLDERS, reason="IODOCK_IOR has no folders of IOR: make test-ior")]


@dataclass(frozen=True)
class IorRun:
    """A recording, the same run without a recorder, and the files of the counting library."""

    way: str
    folder: Path
    plain: subprocess.CompletedProcess[str]
    done: subprocess.CompletedProcess[str]

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return rows(self.folder / "run.iodock", sql)

    def logged(self, name: str) -> dict[int, list[list[str]]]:
        """Returns the lines of the counting library's files NAME.N, by N."""
        files = (self.folder / "counted").glob(f"{name}.*")
        return {
            int(file.suffix[1:]): [line.split(" ") for line in file.read_text().splitlines()]
            for file in files
        }


def launched(kind: str, *program: object) -> list[object]:
    return [f"mpirun.{kind}", *LAUNCHERS[kind], "-n", RANKS, *program]


def measured(folder: Path, kind: str, way: str) -> IorRun:
    options = [*WAYS[way], "-t", TRANSFER, "-b", BLOCK, "-s", SEGMENTS, "-w", "-r", "-C", "-k", "-G", 7]
    ior = [FOLDERS[kind] / "bin" / "ior", *options, "-O", "summaryFormat=JSON", "-O", "summaryFile=said.json"]
    for name in ("plain", "data", "counted"):
        (folder / name).mkdir()
    plain = run(launched(kind, *ior, "-o", folder / "plain" / "out.dat"), folder)
    compiler = [f"mpicc.{kind}", "-shared", "-fPIC", "-o", folder / "counter.so"]
    subprocess.run([*compiler, PROGRAMS / "mpi_io_counter.c"], check=True)
    counter = [
        "env",
        f"LD_PRELOAD={folder}/counter.so",
        f"COUNTED={folder}/counted/counted",
        f"INSIDE={folder}/counted/inside",
    ]
    done = record(folder, "--", *launched(kind, *counter, *ior, "-o", folder / "data" / "out.dat"))
    return IorRun(way, folder, plain, done)


@pytest.fixture(scope="module", params=[(kind, way) for kind in FOLDERS for way in WAYS], ids=" ".join)
def ior(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> IorRun:
    kind, way = request.param
    found = measured(tmp_path_factory.mktemp("ior"), kind, way)
    if found.plain.returncode and "HDF5" in way:
        pytest.skip(f"this IOR has no HDF5: {found.plain.stderr.splitlines()[:1]}")
    return found


def test_output_and_data_are_those_without_recording(ior: IorRun) -> None:
    assert (ior.done.returncode, ior.plain.returncode) == (0, 0), ior.done.stderr
    assert (ior.done.stdout, ior.done.stderr) == (ior.plain.stdout, ior.plain.stderr)
    written, plain = (
        {file.name: file.read_bytes() for file in (ior.folder / name).iterdir()} for name in ("data", "plain")
    )
    assert {name: len(data) for name, data in written.items()} == {
        name: len(data) for name, data in plain.items()
    }
    # HDF5 files contain the time of their creation.
    assert "HDF5" in ior.way or written == plain


def test_transfers_and_bytes_are_those_that_ior_says(ior: IorRun) -> None:
    said = json.loads((ior.folder / "said.json").read_text())
    expected = {
        (one["operation"], one["numTasks"] * one["segmentCount"] * one["blockSize"] // one["transferSize"])
        for one in said["summary"]
    }
    assert expected == {("write", TRANSFERS), ("read", TRANSFERS)}
    assert {round(one["xsizeMiB"] * (1 << 20)) for one in said["summary"]} == {BYTES}
    transfers = """SELECT CASE direction WHEN 1 THEN 'read' ELSE 'write' END AS operation, count(*) AS calls,
        CAST(sum({bytes}) AS BIGINT) AS bytes FROM {table} JOIN files f USING (file_id)
        WHERE f.name LIKE '%/data/out.dat%' AND direction > 0 AND {condition} GROUP BY ALL ORDER BY ALL"""
    if ior.way.startswith("POSIX"):
        found = ior.rows(transfers.format(bytes="bytes", table="events", condition="bytes > 0"))
    else:
        mine = "MPI-IO" if ior.way.startswith("MPI-IO") else "HDF5"
        calls = f"interface = '{mine}' AND result = 0 AND call NOT LIKE 'H5A%'"
        found = ior.rows(transfers.format(bytes="requested_bytes", table="interface_calls", condition=calls))
    assert found == [
        {"operation": "read", "calls": TRANSFERS, "bytes": BYTES},
        {"operation": "write", "calls": TRANSFERS, "bytes": BYTES},
    ]


def test_calls_of_mpi_io_are_those_of_the_counter(ior: IorRun) -> None:
    calls, failed, sizes = Counter[str](), Counter[str](), Counter[str]()
    for lines in ior.logged("counted").values():
        for name, has_failed, size in lines:
            calls[name] += 1
            failed[name] += int(has_failed)
            sizes[name] += int(size)
    found = ior.rows(
        """SELECT call, count(*) AS calls, count(*) FILTER (result <> 0) AS failed,
        CAST(coalesce(sum(requested_bytes), 0) AS BIGINT) AS bytes
        FROM interface_calls WHERE interface = 'MPI-IO' GROUP BY call"""
    )
    assert {row["call"]: (row["calls"], row["failed"], row["bytes"]) for row in found} == {
        name: (calls[name], failed[name], sizes[name]) for name in calls
    }
    collective = {name for name, size in sizes.items() if size and name.endswith("_all")}
    assert (ior.way.endswith("collective")) == bool(collective)


def test_system_calls_are_inside_of_the_mpi_io_call_of_their_thread(ior: IorRun) -> None:
    """The test compares each thread's libc calls, in their order, with the recorded ones."""
    expected = {
        thread: [
            (call, max(int(size), 0), "" if within == "-" else within)
            for call, size, within, name in lines
            if name.startswith(f"{ior.folder}/data/")
        ]
        for thread, lines in ior.logged("inside").items()
    }
    found: dict[int, list[tuple[str, int, str]]] = {thread: [] for thread in expected}
    for row in ior.rows(
        """WITH RECURSIVE above AS (
          SELECT id, id AS at, parent_id, interface, call FROM interface_calls
          UNION ALL SELECT a.id, k.id, k.parent_id, k.interface, k.call FROM above a
            JOIN interface_calls k ON k.id = a.parent_id
        )
        SELECT p.tid, c.name AS call, coalesce(e.bytes, 0) AS bytes,
          coalesce((SELECT max(a.call) FROM above a WHERE a.id = e.interface_call_id
            AND a.interface = 'MPI-IO'), '') AS within
        FROM events e JOIN processes p USING (utid) JOIN calls c ON c.id = e.call_id
        JOIN files f ON f.file_id = e.file_id
        WHERE f.name LIKE '%/data/%' AND c.name IN ('read', 'write', 'pread64', 'pwrite64', 'readv', 'writev',
          'preadv', 'pwritev', 'lseek', 'fsync', 'ftruncate') ORDER BY p.tid, e.ts"""
    ):
        found.setdefault(row["tid"], []).append((row["call"], row["bytes"], row["within"]))
    pairs = [
        (mine, its) for thread in expected for mine, its in zip(found[thread], expected[thread], strict=True)
    ]
    right = sum(mine == its for mine, its in pairs)
    inside = sum(within != "" for _, (_, _, within) in pairs)
    print(f"{ior.way}: {right} of {len(pairs)} system calls are right, {inside} of them inside MPI-IO")
    assert pairs and right == len(pairs), [pair for pair in pairs if pair[0] != pair[1]][:5]
    assert all(not calls for thread, calls in found.items() if thread not in expected)


@pytest.mark.parametrize("kind", FOLDERS)
def test_metadata_calls_of_mdtest_are_those_that_it_says(kind: str, tmp_path: Path) -> None:
    options = ["-n", ITEMS, "-w", ITEM, "-e", ITEM, "-d", tmp_path / "data"]
    done = record(tmp_path, "--", *launched(kind, FOLDERS[kind] / "bin" / "mdtest", *options))
    assert done.returncode == 0, done.stderr
    assert f"{RANKS} tasks, {RANKS * ITEMS} files/directories" in done.stdout
    found = rows(
        tmp_path / "run.iodock",
        """SELECT c.name AS call, count(*) AS calls, count(e.bytes) AS transfers,
        CAST(coalesce(sum(e.bytes), 0) AS BIGINT) AS bytes
        FROM events e JOIN calls c ON c.id = e.call_id JOIN files f ON f.file_id = e.file_id
        WHERE regexp_matches(f.name, '/data/.*/(file|dir)[.]mdtest[^/]*$') AND e.errno_id IS NULL
        GROUP BY ALL""",
    )
    by_call = {row["call"]: (row["calls"], row["bytes"]) for row in found}
    every = RANKS * ITEMS
    assert by_call["mkdir"] == by_call["rmdir"] == by_call["unlink"] == (every, 0)
    assert by_call["write"] == by_call["read"] == (every, every * ITEM)
