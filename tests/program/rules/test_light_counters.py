"""Tests rules on the counters of a light recording: entries that belong to no single file, and entries that
are not files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from counter_log import MIB, TOGETHER, Record, as_light, counted, posix
from diagnosing import diagnosed
from iodock.program.findings import Diagnosis

OF_ONE_FILE = {
    *("open-close-loop", "redundant-reads", "redundant-writes", "random-access", "stat-storm", "seek-storm"),
    *("shared-file-contention", "unaligned-requests", "file-per-process", "sync-heavy"),
}


def of(folder: Path, *records: Record, processes: int = 4, **changes: str) -> Diagnosis:
    """Returns the diagnosis of a light recording with these records."""
    whole: Diagnosis = diagnosed(as_light(counted(folder, records, processes), **changes)).whole
    return whole


def found(diagnosis: Diagnosis) -> set[str]:
    return {one.rule for one in diagnosis.findings}


def used_badly(**more: Any) -> Record:
    """Returns counters that would be faults if they belonged to one file."""
    counts = {
        "reads": 4000,
        "read_size": 5000,
        "read_jumps": 4000,
        "read_returns": 2000,
        "read_seconds": 40.0,
    }
    counts |= {"writes": 4000, "write_size": 5000, "write_jumps": 4000, "write_extent": MIB}
    counts |= {"write_seconds": 40.0, "read_extent": MIB, "meta_seconds": 10.0, "FILE_NOT_ALIGNED": 8000}
    return posix("/data/a", 0, **counts | {"OPENS": 4000, "STATS": 20_000, "SEEKS": 9000} | more)


def test_files_counted_together_are_not_judged_as_one(tmp_path: Path) -> None:
    alone = of(tmp_path, used_badly(), processes=1)
    assert {"open-close-loop", "redundant-reads", "random-access"} <= found(alone)
    together = of(tmp_path, used_badly(), processes=1, profiles=TOGETHER)
    assert not found(together) & OF_ONE_FILE
    assert "small-requests" in found(together)
    said = {one.text: one.values for one in together.remarks}
    assert {"files": 500} in said.values()
    assert not [one for one in alone.remarks if "counted together" in one.text]


def test_pipes_and_sockets_are_not_file_io(tmp_path: Path) -> None:
    file = posix("/data/a", 0, reads=1000, read_size=4 * MIB, read_seconds=10.0)
    other = used_badly(meta_seconds=30.0)
    other.name = "/data/other"
    as_file = of(tmp_path, file, other, processes=1)
    assert as_file.verdict.io_seconds == pytest.approx(120.0)
    for kind in ("pipe", "eventfd", "socket", "other"):
        kinds = (
            f"SELECT * REPLACE (CASE WHEN name LIKE '%other' THEN '{kind}' ELSE kind END AS kind) FROM files"
        )
        diagnosis = of(tmp_path, file, other, processes=1, files=kinds)
        assert not found(diagnosis), kind
        assert diagnosis.verdict.io_seconds == pytest.approx(10.0), kind


def test_terminals_are_not_file_io(tmp_path: Path) -> None:
    shown = posix("/dev/pts/3", 0, writes=4000, write_size=10, write_seconds=40.0)
    file = posix("/data/a", 0, reads=1000, read_size=4 * MIB, read_seconds=10.0)
    assert of(tmp_path, file, shown, processes=1).verdict.io_seconds == pytest.approx(10.0)


def test_summed_thread_times_are_not_given_as_a_share_of_the_run(tmp_path: Path) -> None:
    threads = "SELECT p.* REPLACE (7 AS upid, n AS utid) FROM range({}) r(n) LEFT JOIN processes p ON true"
    of_it = "SELECT * REPLACE (7::UINTEGER AS upid, NULL::INTEGER AS rank) FROM profiles"
    for count in (1, 8):
        log = counted(tmp_path, [used_badly()], 1)
        diagnosis = diagnosed(as_light(log, processes=threads.format(count), profiles=of_it)).whole
        gains = [one.gain for one in diagnosis.findings if one.gain is not None]
        assert bool(gains) == (count == 1)
        assert diagnosis.worth_changing
        assert all((one.cost_seconds is None) == (count > 1) for one in diagnosis.worth_changing)
        assert ("at most" in diagnosis.verdict.text.text) == (count > 1)
        assert (diagnosis.verdict.io_share is None) == (count > 1)
        assert diagnosis.verdict.text.text.startswith("The process spent")


def test_mpi_io_is_not_recommended_if_it_could_not_be_seen(tmp_path: Path) -> None:
    shared = [
        posix("/data/a", rank, writes=4000, write_size=50_000, write_jumps=4000, write_seconds=20.0)
        for rank in range(4)
    ]
    names = {"many-processes-without-parallel-io", "independent-io-where-collective-would-do"}
    assert not found(of(tmp_path, *shared)) & names
    assert names <= {one.rule for one in of(tmp_path, *shared).silent}


def test_large_requests_to_a_shared_file_are_not_called_small(tmp_path: Path) -> None:
    large = [posix("/data/a", rank, writes=100, write_size=16 * MIB, write_seconds=20.0) for rank in range(4)]
    (one,) = [it for it in of(tmp_path, *large).findings if it.rule == "shared-file-contention"]
    assert "small" not in one.title.text
