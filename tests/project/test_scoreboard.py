"""Tests the scoreboard of labelled logs: its arithmetic, and a folder with made-up logs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from counter_log import counted, layout, posix
from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import scoreboard
from scoreboard import AREAS, LABELS_OF, Judged, Score

from iodock.program import rules


def sets(*pairs: tuple[str, str]) -> list[tuple[frozenset[str], frozenset[str]]]:
    return [(frozenset(there.split()), frozenset(found.split())) for there, found in pairs]


def test_scores_are_computed_over_all_logs_together() -> None:
    one = scoreboard.score(sets(("A B", "A C"), ("A", ""), ("", "")))
    assert one == Score(hits=1, false_alarms=1, misses=2)
    assert one.precision == 0.5
    assert one.recall == pytest.approx(1 / 3)
    assert one.f1 == 0.4


def test_a_log_without_labels_and_findings_has_no_score() -> None:
    one = scoreboard.score(sets(("", "")))
    assert (one.precision, one.recall, one.f1) == (None, None, None)
    assert scoreboard.score(sets(("A", ""))).f1 == 0.0


def test_each_rule_of_the_table_supports_counters() -> None:
    known = {rule.name: rule for rule in rules.every()}
    assert [name for name in LABELS_OF if known[name].counters is None] == []


def test_each_label_belongs_to_one_area() -> None:
    heads = {label.partition("-")[0] for answers in LABELS_OF.values() for label in answers}
    inside = [head for area in AREAS.values() for head in area]
    assert sorted(inside) == sorted(heads)


def test_other_tools_are_scored_on_the_logs_they_analysed() -> None:
    known = [
        Judged("one", frozenset({"SHF"}), frozenset({"SHF"}), {"peer": frozenset({"file_strategy"})}),
        Judged("two", frozenset({"SML-R"}), frozenset(), {"peer": None}),
    ]
    rows = {row[0]: row[1:4] for row in scoreboard.peer_rows(known)}
    assert rows == {
        "rules": ("2", "1", "0"),
        "peer": ("1", "1", "0"),
        "rules, logs of peer": ("1", "1", "0"),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Creates a folder with a log of small writes into a shared file. Its labels name these, and small reads
    that the log does not contain."""
    writes = posix("/lustre/a", writes=40_000, write_size=5000, write_seconds=90.0)
    counted(tmp_path, [writes, layout("/lustre/a", range(8))])
    (tmp_path / "job.txt").rename(tmp_path / "small.darshan-parser.txt")
    told = {"small": {"labels": ["SML-R", "SML-W", "SHF"], "peers": {"peer": ["access_pattern"]}}}
    (tmp_path / "labels.json").write_text(json.dumps(told))
    return tmp_path


def test_a_folder_is_scored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scoreboard.main([str(folder), "--format", "markdown", "--logs"]) == 0
    said = capsys.readouterr().out
    assert "| SML-W | 1 | 1 | 0 | 1.00 | 1.00 | 1.00 |" in said
    assert "| SML-R | 1 | 0 | 0 | - | 0.00 | 0.00 |" in said
    # The rules find four ranks without MPI-IO, which no label names.
    assert "| MPNM | 0 | 0 | 1 | 0.00 | - | 0.00 |" in said
    assert "| all (micro) | 3 | 2 | 1 |" in said
    assert "| small | SHF SML-W | SML-R | MPNM |" in said


def test_a_label_without_a_log_gives_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "small.darshan-parser.txt").unlink()
    with pytest.raises(SystemExit):
        scoreboard.main([str(folder)])
    assert "no log of that name" in capsys.readouterr().err
