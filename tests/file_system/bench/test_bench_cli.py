"""Tests the command line of `iodock bench`."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench_run import iodock
from in_process import printed
from places import ROOT

FIXTURES = ROOT / "fixtures" / "bench"


def bench(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return iodock("bench", *arguments, **options)


def good(*arguments: object, **options: Any) -> str:
    done = bench(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_results_of_several_programs_share_a_table() -> None:
    table = good("show", FIXTURES / "ior-4.0.0-posix.txt", FIXTURES / "mdtest-4.0.0.txt", FIXTURES / "io500")
    assert "ior 4.0.0, 2026-11-21T02:52:27" in table
    row = next(line for line in table.splitlines() if line.startswith("ior ") and " write " in line)
    assert "207 MiB/s" in row and "±14 %" in row
    assert "note: invalid by the rules of the IO500: ior-hard-write" in table


def test_a_table_of_several_programs_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iodock.shared.tables.table.terminal_width", lambda: 120)
    logs = ("ior-4.0.0-posix.txt", "mdtest-4.0.0.txt", "io500")
    table = printed("bench", "show", *(FIXTURES / name for name in logs))
    assert max(map(len, table.splitlines())) <= 120


def test_benchmark_tables_are_in_japanese() -> None:
    assert "ファイル作成" in good("show", FIXTURES / "mdtest-4.0.0.txt", "--lang", "ja")


def test_json_fits_the_schema_and_can_be_read_again(tmp_path: Path) -> None:
    good("show", FIXTURES / "fio-3.33.json", FIXTURES / "elb.csv", "-o", tmp_path / "all.json")
    content = json.loads((tmp_path / "all.json").read_text())
    schema = json.loads((ROOT / "docs" / "reference" / "measurements.schema.json").read_text())
    jsonschema.validate(content, schema)
    assert [part["tool"] for part in content["protocol"]["parts"]] == ["fio", "elbencho"]
    again = json.loads(good("show", tmp_path / "all.json", "--format", "json"))
    assert again == content


def test_csv_has_a_column_for_each_field() -> None:
    rows = list(csv.DictReader(io.StringIO(good("show", FIXTURES / "fio-3.33.json", "--format", "csv"))))
    assert len(rows) == 3
    assert float(rows[1]["latency_p99_ns"]) == 4046848
    assert json.loads(rows[0]["variant"]) == {"job": "seq", "pattern": "write"}


def test_failures_name_the_place_and_the_remedy() -> None:
    done = bench("show", FIXTURES / "ior-3.2.1-posix.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert "ior-3.2.1-posix.txt:10: IOR stopped before any result: N:1 (strided)" in done.stderr
    assert "hint: IOR refused its options" in done.stderr
    assert bench("show", FIXTURES / "elb.csv", "--from", "iorr").returncode == 2
    assert bench("show").returncode == 2
