"""Tests the pairs (program with an I/O fault, corrected program): their data are valid, and the command runs
one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from iodock.program import rules
from places import ROOT

sys.path[:0] = [str(ROOT / "benches"), str(ROOT / "tools")]

import pair  # noqa: E402
import pairs  # noqa: E402
from pair_runs import Measured  # noqa: E402
from pair_score import judged, totals  # noqa: E402

EVERY = pair.every()
SOURCES = (".c", ".cpp", ".f90", ".java", ".py", ".sh", ".R")


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_every_pair_is_complete(one: pair.Pair) -> None:
    known = {advice.language for rule in rules.every() for advice in rule.advice} | {"Java", "R"}
    assert one.title and one.why
    assert one.languages and one.languages <= known
    assert set(one.first) <= set(rules.names())
    assert bool(one.first) == one.pays
    for command in (one.before.run, one.after.run, one.before.compile, one.after.compile, one.input):
        named = [word for word in command or () if word.endswith(SOURCES)]
        assert all((one.folder / name).is_file() for name in named)


def test_python_packages_of_pairs_are_pinned() -> None:
    pinned = {line.split("==")[0] for line in (pair.FOLDER / "requirements.txt").read_text().splitlines()}
    assert {name for one in EVERY for name in one.packages} <= pinned


@pytest.mark.parametrize("text", ["title = ", 'title = "x"', 'unheard_of = 1\ntitle = "x"'])
def test_a_damaged_pair_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(text)
    with pytest.raises(pair.PairError, match=r"pair\.toml"):
        pair.read(tmp_path)


def finding(rule: str, severity: str, gain: tuple[float, float], language: str) -> dict[str, Any]:
    advice = [{"language": language}, {"language": "any"}]
    return {"rule": rule, "severity": severity, "gain": gain, "cost_seconds": gain[0], "advice": advice}


def measured(*findings: dict[str, Any], after: tuple[dict[str, Any], ...] = ()) -> Measured:
    one = Measured(next(one for one in EVERY if one.name == "c-bytewise"))
    one.alone = {"before": [2.0, 9.0, 2.0], "after": [1.0, 1.0, 1.0]}
    one.recorded = {"before": [2.2] * 3, "after": [1.0] * 3}
    verdict = {"wall_seconds": 2.2, "io_seconds": 1.5}
    one.found = {
        "before": [{"findings": findings, "verdict": verdict}] * 3,
        "after": [{"findings": after, "verdict": verdict}],
    }
    return one


def test_correct_advice_is_recognised() -> None:
    one = judged(measured(finding("bytewise-read", "high", (0.4, 0.7), "C")))
    assert (one.gain, one.promised) == (1.0, (0.4, 0.7))
    assert one.first_right and one.inside and one.within_io_time and not one.wrong_languages


def test_savings_may_include_work_around_the_calls() -> None:
    more = finding("bytewise-read", "high", (0.8, 1.8), "C")
    assert not judged(measured(more)).within_what_could_go
    one = judged(measured(more | {"work_seconds": 0.4}))
    assert one.within_what_could_go and not one.within_io_time


def test_wrong_advice_is_recognised() -> None:
    right, left = (
        finding("seek-storm", "low", (0.1, 1.6), "C++"),
        finding("pipe-bound", "high", (9, 20), "C"),
    )
    one = judged(measured(left, right, after=(left,)))
    assert one.promised == (0.1, 1.6)
    assert one.wrong_languages == ("C++ (seek-storm)",)
    assert not one.first_right and not one.within_io_time
    assert [row[1] for row in totals([one])[1:]] == [
        "0 of 1",
        "0 of 1",
        "1 of 1",
        "0 of 1",
        "0 of 1",
        "0 of 0",
    ]


def test_notes_do_not_count_as_advice() -> None:
    one = judged(measured(finding("bytewise-read", "note", (0.8, 1.2), "C")))
    assert one.promised is None and not one.inside and not one.first and one.is_silent


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc")
def test_the_command_line_runs_a_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = tmp_path / "kept"
    options = ["--runs", "1", "--dir", str(tmp_path / "work"), "--keep", str(keep), "--format", "markdown"]
    assert pairs.main(["--only", "c-bytewise", *options]) == 0
    assert "| c-bytewise | " in capsys.readouterr().out
    assert (keep / "c-bytewise" / "before-1.iodock").is_dir()
    assert not list((tmp_path / "work").iterdir())
    assert pairs.main(["--only", "c-bytewise", "--again", "--keep", str(keep)]) == 0
    assert "c-bytewise" in capsys.readouterr().out
    assert pairs.main(["--only", "nothing"]) == 2
    assert pairs.main(["--again"]) == 2
