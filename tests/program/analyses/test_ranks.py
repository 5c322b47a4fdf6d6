"""Tests `show ranks`, which lists the time and bytes of each rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iodock.program.run import Run
from iodock.program.store import Store
from iodock.shared.errors import RequestError
from metadata_log import FIRST, Trace

MS = 1_000


def of_ranks(folder: Path, ranks: int = 4) -> Path:
    """Imports a log in which rank R opens a file, reads 100 bytes in R + 1 ms, writes 10 R bytes in 2 ms,
    syncs in 3 ms, and waits 10 ms for a pipe."""
    log = Trace()
    for rank in range(ranks):
        pid = FIRST + rank
        log.clocks[pid] = 0
        log.call("pipe2([8, 9], 0)", pid=pid)
        log.open(f"/data/rank{rank}", took_us=500, pid=pid)
        log.read(100, (rank + 1) * MS, pid=pid)
        log.write(10 * rank, 2 * MS, pid=pid)
        log.call("fsync(3)", took_us=3 * MS, pid=pid)
        log.read(1, 10 * MS, fd=8, pid=pid)
        log.end(pid)
    return log.imported(folder, 1, ranks=ranks)


def shown(store: Path, **arguments: Any) -> list[dict[str, Any]]:
    with Store.open(store) as opened:
        rows: list[dict[str, Any]] = Run(opened).show("ranks", **arguments).to_arrow().to_pylist()
        return rows


def test_ranks_are_listed_slowest_first_with_times_and_bytes(tmp_path: Path) -> None:
    rows = shown(of_ranks(tmp_path))
    assert [row["rank"] for row in rows] == [3, 2, 1, 0]
    for row in rows:
        rank = row["rank"]
        assert row["read_time_ns"] == (rank + 1) * 1_000_000
        assert (row["write_time_ns"], row["sync_time_ns"]) == (2_000_000, 3_000_000)
        assert (row["metadata_time_ns"], row["waiting_time_ns"]) == (500_000, 10_000_000)
        assert row["io_time_ns"] == (rank + 1 + 2 + 3) * 1_000_000 + 500_000
        assert (row["read_bytes"], row["written_bytes"]) == (100, 10 * rank)
        assert row["collective_time_ns"] is None


@pytest.mark.parametrize("chosen", ["0,2-3", [0, 2, 3], ["0", "2-3"]])
def test_ranks_can_be_chosen_by_ranges(tmp_path: Path, chosen: Any) -> None:
    assert [row["rank"] for row in shown(of_ranks(tmp_path), rank=chosen)] == [3, 2, 0]


@pytest.mark.parametrize("chosen", ["3-0", "0-99999999999", "1-x", "-"])
def test_an_invalid_range_of_ranks_is_refused(tmp_path: Path, chosen: str) -> None:
    with pytest.raises(RequestError, match="rank must be a number"):
        shown(of_ranks(tmp_path), rank=chosen)


def test_without_durations_times_of_ranks_are_unknown(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/out")
    log.write(10, 0)
    (row,) = shown(log.imported(tmp_path, durations=False, ranks=1))
    assert row["io_time_ns"] is None and row["write_time_ns"] is None
    assert (row["written_bytes"], row["count"]) == (10, 2)


def test_a_run_without_ranks_refers_to_the_processes_analysis(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/out")
    with Store.open(log.imported(tmp_path)) as opened:
        answer = Run(opened).show("ranks")
        assert answer.to_arrow().num_rows == 0
        assert any("`iodock show processes`" in note for note in answer.notes)
