"""Tests that iodock names collective buffering, and that other rules do not report it as an imbalance."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from interface_calls import WRITE, WRITE_ALL, with_calls_of_mpi_io
from iodock.program.findings import Severity
from metadata_log import Trace
from rank_log import ranks, writes

MIB = 1 << 20


def one_writes(log: Trace, number: int, pid: int) -> None:
    log.open("/data/shared.out", flags="O_WRONLY|O_CREAT", pid=pid)
    for _ in range(0 if number else 40):
        log.write(MIB, 10_000, pid=pid)
    log.close(pid=pid)


def test_a_rank_that_writes_for_all_is_the_aggregator(tmp_path: Path) -> None:
    store = with_calls_of_mpi_io(ranks(one_writes, tmp_path), WRITE_ALL)
    diagnosis = diagnosed(store)
    (found,) = of_rule(diagnosis, "two-phase")
    values = found.message.values
    assert (values["aggregators"], values["ranks"], values["named"]) == (1, 4, "0")
    assert values["moved_bytes"] == 40 * MIB
    assert found.severity is Severity.NOTE and found.gain is None
    assert not of_rule(diagnosis, "serial-phases") and not blamed(diagnosis)


def test_a_rank_that_writes_only_its_own_data_is_not_an_aggregator(tmp_path: Path) -> None:
    diagnosis = diagnosed(with_calls_of_mpi_io(ranks(one_writes, tmp_path), WRITE))
    assert not of_rule(diagnosis, "two-phase")
    (found,) = of_rule(diagnosis, "serial-phases")
    assert found.severity is not Severity.NOTE


def test_ranks_that_transfer_their_own_data_are_not_aggregators(tmp_path: Path) -> None:
    store = ranks(lambda log, n, pid: writes(log, n, pid, 20, 10_000), tmp_path)
    assert not of_rule(diagnosed(with_calls_of_mpi_io(store, WRITE)), "two-phase")


@pytest.mark.parametrize(("call", "found"), [(WRITE, True), (WRITE_ALL, False)])
def test_uneven_ranks_are_judged_by_their_requests(call: str, found: bool, tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.call('statfs("/data", {f_type=EXT2_SUPER_MAGIC, ...})', pid=pid)
        writes(log, number, pid, 50 if number == 3 else 10, 10_000)

    diagnosis = diagnosed(with_calls_of_mpi_io(ranks(work, tmp_path), call))
    assert bool(of_rule(diagnosis, "rank-imbalance")) == found
    silent = {one.rule for one in diagnosis.silent if "MPI-IO" in one.why.text}
    assert ("rank-imbalance" in silent) != found
