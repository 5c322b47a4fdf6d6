"""Tests `iodock show jobs`, which prints a row for each log of a folder, including damaged logs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from in_process import asked, printed
from iodock.program.capture import import_logs
from places import FIXTURES

DARSHAN = FIXTURES / "darshan"
LOGS = ("imbalanced-io", "mpi-io-test-dxt", "mpi-io-test-x86_64-3.5.0", "ior-dfs", "empty")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with logs, a store, other files, and a subfolder with a damaged and a truncated
    log."""
    made = tmp_path_factory.mktemp("jobs")
    inner = made / "2026" / "11"
    inner.mkdir(parents=True)
    for name in LOGS:
        shutil.copy(DARSHAN / f"{name}.darshan", made)
    whole = (DARSHAN / "imbalanced-io.darshan").read_bytes()
    (inner / "cut.darshan").write_bytes(whole[: len(whole) // 2])
    (inner / "damaged.darshan").write_bytes(b"\0" * 5000)
    (inner / "none.darshan").write_bytes(b"")
    (made / "notes.txt").write_text("nothing\n")
    import_logs([str(DARSHAN / "skew-app.darshan")], made / "skew.iodock")
    broken = import_logs([str(DARSHAN / "skew-app.darshan")], made / "broken.iodock").store
    (broken / "manifest.json").write_text("{")
    return made


def jobs(folder: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed("show", "jobs", folder, *options, "--json"))
    return found


def test_each_log_and_store_has_a_row(folder: Path) -> None:
    found = jobs(folder)
    logs = [row["log"] for row in found["rows"]]
    inner = [f"2026/11/{name}.darshan" for name in ("cut", "damaged", "none")]
    assert sorted(logs) == sorted(
        [*(f"{name}.darshan" for name in LOGS), *inner, "skew.iodock", "broken.iodock"]
    )
    assert any("1 other files" in note for note in found["notes"])
    assert any("3 of 10 could not be read" in note for note in found["notes"])


def _share_of_uppermost(log: Path, scratch: Path) -> float:
    """Computes the mean I/O share of a process from the profiles: the time of MPI-IO for files used by
    MPI-IO, and the time of POSIX and stdio for all others."""
    store = import_logs([str(log)], scratch / "whole.iodock").store
    sql = "SELECT file_id, interface, read_time_ns + write_time_ns + meta_time_ns AS ns FROM profiles"
    profiles = json.loads(printed("query", store, sql, "--format", "json"))["rows"]
    passed = {row["file_id"] for row in profiles if row["interface"] == "mpi-io"}
    counted = [
        row["ns"]
        for row in profiles
        if row["interface"] == "mpi-io"
        or (row["interface"] in ("posix", "stdio") and row["file_id"] not in passed)
    ]
    return float(sum(counted)) / 496 / 1_479_000_000_000


def test_a_row_has_the_values_of_pydarshan(folder: Path, tmp_path: Path) -> None:
    sums: dict[str, list[int]] = {}
    for line in (DARSHAN / "sums.tsv").read_text().splitlines():
        log, module, _, *numbers = line.split("\t")
        if module in ("POSIX", "STDIO") and log != "*":
            one = sums.setdefault(log, [0, 0])
            sums[log] = [one[0] + int(numbers[0]), one[1] + int(numbers[1])]
    rows = {row["log"]: row for row in jobs(folder)["rows"]}
    for log in ("imbalanced-io.darshan", "mpi-io-test-dxt.darshan", "mpi-io-test-x86_64-3.5.0.darshan"):
        assert [rows[log]["read_bytes"], rows[log]["written_bytes"]] == sums[log]
    uneven = rows["imbalanced-io.darshan"]
    assert uneven["job"] == "1452113755"
    assert uneven["processes"] == 496
    assert uneven["run_time_ns"] == 1_479_000_000_000
    assert uneven["losses"] == "darshan-partial-module 1"
    assert uneven["io_share"] == pytest.approx(
        _share_of_uppermost(folder / "imbalanced-io.darshan", tmp_path)
    )
    assert uneven["io_share"] > 0.5
    assert uneven["files"] == 1030


def test_unknown_values_are_empty(folder: Path) -> None:
    rows = {row["log"]: row for row in jobs(folder)["rows"]}
    assert rows["empty.darshan"]["read_bytes"] is None
    assert rows["empty.darshan"]["files"] is None
    assert rows["empty.darshan"]["io_share"] is None


def test_a_damaged_log_has_a_row_with_the_reason(folder: Path) -> None:
    rows = {row["log"]: row for row in jobs(folder)["rows"]}
    assert "is empty" in rows["2026/11/none.darshan"]["problem"]
    assert rows["2026/11/damaged.darshan"]["problem"]
    assert rows["2026/11/damaged.darshan"]["read_bytes"] is None
    assert rows["2026/11/cut.darshan"]["problem"] is None
    assert "darshan-cut-region" in rows["2026/11/cut.darshan"]["losses"]
    assert "manifest.json" in rows["broken.iodock"]["problem"]


def test_a_log_and_its_store_give_the_same_row(folder: Path, tmp_path: Path) -> None:
    shutil.copy(DARSHAN / "skew-app.darshan", tmp_path)
    (log,) = jobs(tmp_path)["rows"]
    store = next(row for row in jobs(folder)["rows"] if row["log"] == "skew.iodock")
    for name in ("job", "executable", "processes", "start_ts", "run_time_ns", "read_bytes", "written_bytes"):
        assert store[name] == log[name], name
    assert store["io_share"] == pytest.approx(log["io_share"])
    # The program used its only file by MPI-IO.
    assert log["io_share"] == pytest.approx(_mean_in_mpi_io(folder / "skew.iodock"))


def _mean_in_mpi_io(store: Path) -> float:
    told = json.loads(printed("show", "files", store, "--json"))
    rows = [row for row in told["rows"] if row["interface"] == "mpi-io"]
    overview = json.loads(printed("show", "overview", store, "--json"))["totals"]["total"]
    share = sum(row["total_time_ns"] for row in rows) / overview["ranks"] / overview["wall_time_ns"]
    return float(share)


def test_jobs_can_be_sorted_and_limited(folder: Path) -> None:
    found = jobs(folder, "--sort", "written_bytes", "--top", "2")
    assert found["rows"][0]["log"] in ("imbalanced-io.darshan", "skew.iodock")
    assert len(found["rows"]) == 2
    assert found["totals"]["of"] == 10
    assert found["rows"][0]["written_bytes"] >= found["rows"][1]["written_bytes"]
    status, _, said = asked("show", "jobs", folder, "--sort", "nothing")
    assert status == 2
    assert "no such column" in said


def test_jobs_are_written_as_csv_and_as_a_table(folder: Path, tmp_path: Path) -> None:
    printed("show", "jobs", folder, "-o", tmp_path / "jobs.csv")
    lines = (tmp_path / "jobs.csv").read_text().splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("log,job,user_id,executable")
    assert "imbalanced-io.darshan" in printed("show", "jobs", folder)


def test_an_empty_folder_of_jobs_is_reported(tmp_path: Path) -> None:
    for place, said in (("none", "no such folder"), (".", "holds no log of Darshan")):
        status, out, told = asked("show", "jobs", tmp_path / place)
        assert status == 2
        assert said in told
        assert not out
    status, _, told = asked("show", "jobs", DARSHAN / "empty.darshan")
    assert status == 2
    assert "is not a folder" in told
