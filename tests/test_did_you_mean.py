"""Names that are not known: the error says which one was meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recorded import IODOCK, run

LOG = """100 1700000000.000000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.000010>
100 1700000000.000100 read(3, ""..., 4096) = 4096 <0.000010>
100 1700000000.000200 close(3) = 0 <0.000010>
"""

MEANT = [
    (["recrod", "x"], "no such command: recrod", "did you mean record", 2),
    (["show", "summry", "STORE"], "no such analysis: summry", "did you mean summary", 2),
    (["show", "summary", "STORE", "--by", "fille"], "no such key: fille", "did you mean file", 2),
    (["show", "summary", "STORE", "--call", "opnat"], "no such call: opnat", "did you mean openat", 2),
    (
        ["show", "summary", "STORE", "--call", "family:opn"],
        "no such family of calls: opn",
        "did you mean open",
        2,
    ),
    (["explain", "smal-requests"], "nothing here is called smal-requests", "did you mean small-requests", 2),
    (["query", "STORE", "SELECT cal FROM calls_seen"], 'column "cal" not found', "did you mean call", 1),
    (["query", "STORE", "SELECT * FROM cals_seen"], "cals_seen does not exist", "did you mean calls_seen", 1),
    (["show", "summary", "STORE", "-o", "x.foo"], "x.foo: no format is called foo", "endings: table, csv", 2),
    (["report", "STORE", "-o", "x.csv"], "x.csv: a report is one HTML page", "-o NAME.html", 2),
    (["record", "STORE"], "can't be executed", "it is a store: iodock diagnose", 126),
]


@pytest.mark.parametrize("arguments, said, hint, status", MEANT, ids=[" ".join(one[0]) for one in MEANT])
def test_what_was_meant(tmp_path: Path, arguments: list[str], said: str, hint: str, status: int) -> None:
    (tmp_path / "run.log").write_text(LOG)
    assert run([*IODOCK, "import", "run.log", "-q"], tmp_path).returncode == 0
    store = os.fspath(tmp_path / "run.iodock")
    done = run([*IODOCK, *(one.replace("STORE", store) for one in arguments)], tmp_path)
    assert done.returncode == status
    error, advice = done.stderr.splitlines()
    assert error.startswith("error: ") and said in error
    assert advice.startswith("hint: ") and hint in advice
    assert not (tmp_path / "x.foo").exists() and not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("heading", ["total time", "合計時間"])
def test_headings_of_tables_are_explained(tmp_path: Path, heading: str) -> None:
    done = run([*IODOCK, "explain", heading], tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("total_time_ns  (column of ")
