"""Compares iodock with a second, independent reader (`reference_reader.py`) on every strace log in
`fixtures/` and on the logs below IODOCK_LOGS. The second reader itself must reproduce the truths of the
cases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from case_folders import FOLDERS, differences, import_case
from case_truth import Row, load
from reference_truth import truth_of

LOGS = [
    *(log for folder in FOLDERS for log in sorted(folder.glob("strace/*/log*"))),
    *(
        log
        for folder in filter(None, os.environ.get("IODOCK_LOGS", "").split(":"))
        for log in Path(folder).glob("*")
    ),
]
NOT_KEPT = {
    "series",
    "lines_parsed",
    "unparsed_sample",
    "rejoined_lines",
    "table_lines",
    "detached",
    "y_check",
    "case",
    "logs",
    "initial_cwd",
    "time_first_ns",
    "time_last_ns",
    "bytes_read_total",
    "bytes_written_total",
}


def case_of(log: Path) -> Row:
    truth = next(iter(log.parent.glob("truth.json*")), None)
    return load(truth) if truth else {}


def series_rows(rows: list[Any], like: list[Any]) -> list[Any]:
    calls = {row[2] for row in like}
    return sorted(
        (row for row in rows if row[2] in calls), key=lambda row: (row[0] or 0, str(row[2]), str(row[1]))
    )


@pytest.mark.parametrize("log", [log for log in LOGS if case_of(log)], ids=lambda log: log.parent.name)
def test_the_reference_reader_gives_the_known_results(log: Path) -> None:
    truth = case_of(log)
    found = truth_of([log], truth["initial_cwd"])
    for key in truth.keys() - NOT_KEPT:
        assert found[key] == truth[key], key
    for name, rows in truth["series"].items():
        for want, have in zip(series_rows(rows, rows), series_rows(found["series"][name], rows), strict=True):
            assert all(value is None or value == other for value, other in zip(want, have, strict=True)), want


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}-{log.name}")
def test_iodock_gives_the_results_of_the_reference_reader(log: Path, tmp_path: Path) -> None:
    directory = case_of(log).get("initial_cwd", "/somewhere")
    truth = truth_of([log], directory)
    store = tmp_path / "case.iodock"
    done = import_case(store, [log], {"initial_cwd": directory})
    assert done.returncode == 0, done.stderr
    # The reference computes the series of accesses of every file. The test compares the 8 longest.
    longest = sorted(truth["series"], key=lambda name: -len(truth["series"][name]))[:8]
    truth["series"] = {name: truth["series"][name] for name in longest}
    if "y_check" in case_of(log):
        # With -y, names distinguish pipes, so iodock counts both ends of a tee. The truth groups all pipes as
        # one.
        del truth["nonpath"]
    found = differences(store, truth, "strace")
    assert not found, "\n".join(found[:40])
