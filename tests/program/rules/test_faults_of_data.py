"""Tests each fault of `data_faults`: it is found first, with its count and cost, and its efficient twin has
no finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_faults import CASES, IDS, Case, made
from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from iodock.program.store import Store


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_data_problem_is_found_with_count_and_cost_as_the_first_finding(
    case: Case, tmp_path: Path
) -> None:
    store = made(case.fault, tmp_path)
    diagnosis = diagnosed(store)
    assert [one.rule for one in diagnosis.worth_changing][:1] == [case.rule]
    (found,) = of_rule(diagnosis, case.rule)
    assert found.evidence["count"] == case.count
    assert found.cost_seconds == pytest.approx(case.seconds, rel=0.01)
    assert found.cost_share == pytest.approx(case.seconds, rel=0.05)
    assert found.files == case.files
    with Store.open(store) as opened:
        rows = opened.engine.user_query(found.query).to_pylist()
    assert case.files[0] in {row["file"] for row in rows}, "its query shows the file"


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_same_work_done_well_gives_no_finding(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.clean, tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == []


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_data_problems_are_found_without_durations(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.fault, tmp_path, durations=False))
    (found,) = of_rule(diagnosis, case.rule)
    assert found.cost_seconds is None and found.gain is None
    assert found.severity is Severity.MEDIUM
