"""Tests that iodock treats impossible numbers as unknown, counts them as losses, and keeps them out of
sums."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iodock.cli.run import run as run_command
from iodock.program.run import Run
from iodock.program.store import Store

OPEN = '10:00:00.000000 openat(AT_FDCWD, "/data/a", O_RDWR) = 3 <0.000010>'


def imported(folder: Path, *lines: str) -> Run:
    log = folder / "run.strace"
    log.write_text("\n".join(f"7 {line}" for line in (OPEN, *lines)) + "\n")
    store = folder / "run.iodock"
    assert run_command(["import", "-q", str(log), "-o", str(store)]) == 0
    return Run(Store.open(store))


@pytest.mark.parametrize(
    "line",
    [
        'read(3, "x"..., 10) = 9223372036854775807 <0.000010>',
        'pwrite64(3, "x"..., 10, 0) = 36028797018963968 <0.000010>',
        'read(3, "x"..., 10) = 10 <10000000000.000000>',
        "sendfile(3, 3, NULL, 10) = 9223372036854775807 <0.000010>",
    ],
)
def test_every_analysis_handles_impossible_numbers(tmp_path: Path, line: str) -> None:
    stamped = [f"10:00:0{number % 9 + 1}.000000 {line}" for number in range(20)]
    with imported(tmp_path, *stamped, '10:00:10.000000 read(3, "x"..., 10) = 10 <0.000010>') as run:
        for analysis in ("summary", "files", "volume", "sizes", "timeline", "overview", "processes"):
            run.show(analysis)
        assert run.diagnose().verdict.text
        (total,) = run.query(
            "SELECT CAST(max(bytes) AS BIGINT) AS most, max(dur) AS longest FROM events"
        ).to_pylist()
        assert total["most"] <= 2**45 and total["longest"] <= 10**16
        losses = {loss["name"]: loss["count"] for loss in run.manifest["losses"]}
    # Both ends of sendfile have an impossible number.
    assert losses["incredible-numbers"] == (40 if "sendfile" in line else 20)
    assert (
        run_command(["diagnose", str(tmp_path / "run.iodock"), "--format", "json", "-o", str(tmp_path / "f")])
        == 0
    )
    assert json.loads((tmp_path / "f").read_text())["verdict"]


def test_the_largest_possible_numbers_are_kept(tmp_path: Path) -> None:
    line = f'10:00:01.000000 read(3, "x"..., {2**45}) = {2**45} <{10**7}.000000>'
    with imported(tmp_path, line) as run:
        (row,) = run.show("summary", call=["read"]).to_arrow().to_pylist()
        assert (row["read_bytes"], row["total_time_ns"]) == (2**45, 10**16)
        assert not [loss for loss in run.manifest["losses"] if loss["name"] == "incredible-numbers"]


@pytest.mark.parametrize(
    "line",
    [
        'write(3, "x"..., 4096) = 4296 <0.000010>',
        'pread64(3, "x"..., 4096, 0) = 4296 <0.000010>',
        'readv(3, [{iov_base="x"..., iov_len=4000}, {iov_base="", iov_len=96}], 2) = 4296 <0.000010>',
    ],
)
def test_no_call_transfers_more_than_requested(tmp_path: Path, line: str) -> None:
    cut = 'readv(3, [{iov_base="x"..., iov_len=4000}, ...], 99) = 4296 <0.000010>'
    with imported(tmp_path, f"10:00:01.000000 {line}", f"10:00:02.000000 {cut}") as run:
        rows = run.show("summary").to_arrow().to_pylist()
        assert sum((row["read_bytes"] or 0) + (row["written_bytes"] or 0) for row in rows) == 4296
        losses = {loss["name"]: loss["count"] for loss in run.manifest["losses"]}
    assert losses["incredible-numbers"] == 1


def test_received_messages_may_be_longer_than_requested(tmp_path: Path) -> None:
    line = '10:00:01.000000 recvfrom(3, "x"..., 10, MSG_TRUNC, NULL, NULL) = 200 <0.000010>'
    with imported(tmp_path, line) as run:
        assert "incredible-numbers" not in {loss["name"] for loss in run.manifest["losses"]}
