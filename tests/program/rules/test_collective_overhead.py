"""Tests `collective-overhead`: it finds collective calls whose pieces are large already, and ignores those
with small pieces."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diagnosing import diagnosed, of_rule
from interface_calls import WRITE, WRITE_ALL, with_calls_of_mpi_io
from iodock.program.rules import collective_overhead
from made_store import without_checksums
from metadata_log import Trace
from rank_log import MIB, ranks
from recorded import MPIRUN, PROGRAMS, live, needs_mpi, record, run

NAME = collective_overhead.RULE.name
MS = 1_000_000


def written(folder: Path, count: int, size: int, movers: int = 1) -> Path:
    """Imports a run in which each of the first MOVERS of four ranks makes COUNT writes of 10 ms."""

    def work(log: Trace, number: int, pid: int) -> None:
        log.open("/data/shared.out", flags="O_WRONLY|O_CREAT", pid=pid)
        for _ in range(count if number < movers else 0):
            log.write(size, 10_000, pid=pid)
        log.close(pid=pid)

    return ranks(work, folder)


def test_large_requests_made_by_one_rank_for_all_are_found(tmp_path: Path) -> None:
    diagnosis = diagnosed(with_calls_of_mpi_io(written(tmp_path, 8, MIB), WRITE_ALL, 5 * MS, 0))
    (found,) = of_rule(diagnosis, NAME)
    values = found.message.values
    assert (values["call"], values["count"], values["movers"], values["ranks"]) == (WRITE_ALL, 8, 1, 4)
    assert (values["mean_bytes"], values["exchange_ns"], values["moving_ns"]) == (MIB, 40 * MS, 80 * MS)
    # Four ranks that all write would need a quarter of the time.
    assert found.cost_seconds == pytest.approx(0.04 + 0.08 * 3 / 4)
    assert not of_rule(diagnosis, "two-phase")


@pytest.mark.parametrize(
    ("count", "size", "call", "offset_bytes"),
    [(7, MIB, WRITE_ALL, 0), (8, MIB - 1, WRITE_ALL, 0), (8, MIB, WRITE_ALL, None), (8, MIB, WRITE, 0)],
    ids=["too few calls", "smaller pieces", "a view with holes", "independent"],
)
def test_small_requests_joined_by_aggregators_give_no_finding(
    count: int, size: int, call: str, offset_bytes: int | None, tmp_path: Path
) -> None:
    store = with_calls_of_mpi_io(written(tmp_path, count, size), call, 5 * MS, offset_bytes)
    assert not of_rule(diagnosed(store), NAME)


@pytest.mark.parametrize(
    ("count", "more_ns", "is_found"), [(100, 11, True), (99, 11, False), (100, 9, False)]
)
def test_collective_calls_slower_than_their_io_are_found(
    count: int, more_ns: int, is_found: bool, tmp_path: Path
) -> None:
    store = with_calls_of_mpi_io(written(tmp_path, count, 512), WRITE_ALL, more_ns * MS)
    found = of_rule(diagnosed(store), NAME)
    assert bool(found) == is_found
    if is_found:
        values = found[0].message.values
        assert (values["mean_bytes"], values["exchange_ns"]) == (512, 1100 * MS)
        assert "small pieces" in found[0].title.text


def test_reads_and_writes_of_a_file_are_one_finding(tmp_path: Path) -> None:
    store = with_calls_of_mpi_io(written(tmp_path, 200, 512), WRITE_ALL, 11 * MS)
    path = store / "interface_calls.parquet"
    calls = pq.read_table(path)
    # The four ranks made each call together, so four successive rows get the same name.
    names = [WRITE_ALL if number // 4 % 2 else "MPI_File_read_at_all" for number in calls["id"].to_pylist()]
    at = calls.schema.get_field_index("call")
    pq.write_table(calls.set_column(at, "call", pa.array(names)), path)
    without_checksums(store)
    (found,) = of_rule(diagnosed(store), NAME)
    values = found.message.values
    assert values["call"] == f"MPI_File_read_at_all, {WRITE_ALL}" and values["files"] == 1
    assert values["count"] == 200


@live
@needs_mpi
def test_a_collective_call_per_piece_is_found(tmp_path: Path) -> None:
    program = tmp_path / "pieces"
    built = run(["mpicc", "-o", program, PROGRAMS / "collective_pieces.c"], tmp_path)
    assert built.returncode == 0, built.stderr
    done = record(tmp_path, "--", *MPIRUN, program, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (found,) = of_rule(diagnosed(tmp_path / "run.iodock"), NAME)
    values = found.message.values
    assert (values["count"], values["ranks"], values["mean_bytes"]) == (200, 4, 512)
