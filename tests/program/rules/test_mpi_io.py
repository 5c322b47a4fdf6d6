"""Ranks that open files by MPI-IO: rules report nothing about them until MPI-IO's own calls are recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed
from metadata_log import Trace
from rank_log import ranks

OF_RANKS = {"file-per-process", "rank-imbalance", "shared-file-contention", "straggler"}


@pytest.mark.parametrize("by_mpi_io", [False, True])
def test_rules_about_ranks_are_skipped_if_mpi_io_is_not_recorded(tmp_path: Path, by_mpi_io: bool) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.call('statfs("/dev/shm", {f_type=TMPFS_MAGIC, ...})', pid=pid)
        if by_mpi_io:
            log.call('statfs("/data/shared.out", {f_type=EXT2_SUPER_MAGIC, ...})', pid=pid)
        log.open("/data/shared.out", flags="O_RDWR|O_CREAT", pid=pid)
        for piece in range(500):
            log.call(f'pwrite64(3, ""..., 1024, {(piece * 4 + number) * 1024})', "1024", 500, pid=pid)
        log.close(pid=pid)

    diagnosis = diagnosed(ranks(work, tmp_path))
    silent = {one.rule: str(one.why.text) for one in diagnosis.silent}
    told = {name for name, why in silent.items() if "MPI-IO" in why}
    # This one is about MPI-IO itself.
    told.discard("independent-io-where-collective-would-do")
    found = {one.rule for one in diagnosis.findings}
    assert told == (OF_RANKS | {"small-requests"} if by_mpi_io else set())
    assert bool(found & OF_RANKS) != by_mpi_io
    assert "small-requests" not in found or not by_mpi_io
