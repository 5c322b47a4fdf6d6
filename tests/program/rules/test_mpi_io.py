"""Tests ranks that open files by MPI-IO: rules on ranks report nothing about them if MPI-IO's own calls are
not recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed
from metadata_log import Trace
from rank_log import ranks
from recorded import MPIRUN, live, needs_mpi, record, run

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
    # This rule is about MPI-IO itself, so it always mentions MPI-IO.
    told.discard("independent-io-where-collective-would-do")
    found = {one.rule for one in diagnosis.findings}
    assert told == (OF_RANKS | {"small-requests"} if by_mpi_io else set())
    assert bool(found & OF_RANKS) != by_mpi_io
    assert "small-requests" not in found or not by_mpi_io


# Like IOR, the program queries the free space, which makes the statfs call that MPI-IO also makes when it
# opens a file.
POSIX_ONLY = """
#include <fcntl.h>
#include <mpi.h>
#include <sys/statvfs.h>
#include <unistd.h>
int main(int count, char **arguments) {
    static char piece[1024];
    struct statvfs about;
    int rank;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    statvfs(".", &about);
    int fd = open("shared.out", O_RDWR | O_CREAT, 0644);
    for (int at = 0; at < 500; at++)
        if (pwrite(fd, piece, sizeof(piece), (at * 4 + rank) * sizeof(piece)) < 0)
            return 1;
    MPI_Finalize();
}
"""


@live
@needs_mpi
def test_ranks_that_made_no_call_of_mpi_io_are_judged(tmp_path: Path) -> None:
    (tmp_path / "posix.c").write_text(POSIX_ONLY)
    assert run(["mpicc", "-o", "posix", "posix.c"], tmp_path).returncode == 0
    for how in ("auto", "never"):
        done = record(tmp_path, "--force", "--interfaces", how, "--", *MPIRUN, "./posix")
        assert done.returncode == 0, done.stderr
        silent = {one.rule: str(one.why.text) for one in diagnosed(tmp_path / "run.iodock").silent}
        told = {name for name, why in silent.items() if "MPI-IO" in why}
        assert bool(told & OF_RANKS) == (how == "never"), told
