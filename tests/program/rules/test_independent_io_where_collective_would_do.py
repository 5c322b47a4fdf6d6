"""Tests `independent-io-where-collective-would-do` on recorded calls of MPI-IO. test_counters.py tests it on
counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from interface_calls import WRITE, WRITE_ALL, with_calls_of_mpi_io
from iodock.program.rules import independent_io_where_collective_would_do as rule
from metadata_log import Trace
from rank_log import MIB, ranks
from timed_strace import mounted

NAME, PIECE, COUNT = rule.RULE.name, 4096, 200


def pieces(log: Trace, number: int, pid: int, size: int = PIECE, in_turns: bool = True) -> None:
    """Adds writes of pieces of one file by a rank: every fourth piece, or a quarter of the file."""
    log.open("/data/shared.out", flags="O_WRONLY|O_CREAT", pid=pid)
    for at in range(COUNT):
        place = at * 4 + number if in_turns else number * COUNT + at
        log.call(f'pwrite64(3, "x", {size}, {place * size})', str(size), 2000, pid=pid)
    log.close(pid=pid)


def recorded(folder: Path, call: str = WRITE, fs_type: str = "lustre", **how: int) -> Path:
    store = ranks(lambda log, number, pid: pieces(log, number, pid, **how), folder)
    return mounted(with_calls_of_mpi_io(store, call), "/data", fs_type)


def test_interleaved_requests_on_a_parallel_file_system_are_found(tmp_path: Path) -> None:
    diagnosis = diagnosed(recorded(tmp_path))
    (found,) = of_rule(diagnosis, NAME)
    values = found.message.values
    assert (values["call"], values["ranks"], values["count"]) == (WRITE, 4, 4 * COUNT)
    assert (values["mean_bytes"], values["mean_ns"]) == (PIECE, 2_000_000)
    # One large request of 2 ms remains for each rank, and the time to move the bytes.
    assert found.cost_seconds == pytest.approx(COUNT * 0.002 - 0.002, rel=0.01)
    assert "shared-file-contention" not in blamed(diagnosis)


@pytest.mark.parametrize(
    "how",
    [
        {"call": WRITE_ALL},
        {"fs_type": "ext4"},
        {"in_turns": False},
        {"size": MIB},
    ],
    ids=["collective", "local disk", "parts one after the other", "large pieces"],
)
def test_no_finding_where_collective_io_would_not_help(how: dict[str, object], tmp_path: Path) -> None:
    assert not of_rule(diagnosed(recorded(tmp_path, **how)), NAME)  # type: ignore[arg-type]


def test_without_mpi_io_calls_the_rule_explains_why_it_was_not_checked(tmp_path: Path) -> None:
    store = mounted(ranks(lambda log, number, pid: pieces(log, number, pid), tmp_path), "/data", "lustre")
    (silent,) = [one for one in diagnosed(store).silent if one.rule == NAME]
    assert "MPI-IO" in silent.why.text
