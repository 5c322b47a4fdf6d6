"""Tests that stores of an older version open and give the numbers that the older version gave."""

from __future__ import annotations

import csv
import json
import tarfile
from pathlib import Path

import pytest

from in_process import iodock

STORES = Path(__file__).parents[3] / "fixtures" / "stores" / "without-checksums.tar.xz"
"""A loop that opens and closes its log for each line, and its corrected version, recorded before stores had
checksums and a table of opens."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(STORES) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def told(folder: Path, *command: str) -> str:
    done = iodock(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_counts_equal_those_of_the_older_version(folder: Path) -> None:
    table = json.loads(told(folder, "show", "summary", "before.iodock", "--format", "json"))
    counts = {row["call"]: (row["count"], row["success"]) for row in table["rows"]}
    assert counts["openat"] == (250, 243)
    assert counts["write"] == (202, 202)
    assert counts["newfstatat"] == (460, 433)
    assert sum(count for count, _ in counts.values()) == 2154


@pytest.mark.usefixtures("few_rules")
def test_diagnosis_report_and_comparison_open_older_stores(folder: Path) -> None:
    findings = json.loads(told(folder, "diagnose", "before.iodock", "--format", "json"))
    assert any("d.log" in json.dumps(finding) for finding in findings["findings"])
    told(folder, "report", "before.iodock", "-o", "report.html")
    assert "openat" in (folder / "report.html").read_text()
    rows = csv.DictReader(
        told(folder, "diff", "before.iodock", "after.iodock", "--format", "csv").splitlines()
    )
    first = next(iter(rows))
    assert first["file"].endswith("/d.log")
    assert (first["count_before"], first["count_after"]) == ("1602", "10")
