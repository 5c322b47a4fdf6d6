"""Tests each fault of `metadata_faults`: it is found with its count and cost, and its efficient twin has no
finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from metadata_faults import CASES, IDS, Case, made


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_metadata_problem_is_found_with_count_and_cost(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.fault, tmp_path))
    (found,) = of_rule(diagnosis, case.rule)
    assert found.evidence["count"] == case.count
    assert found.cost_seconds == pytest.approx(case.seconds, rel=0.01)
    assert found.files[: len(case.files)] == case.files
    assert found.severity is not Severity.NOTE
    assert diagnosis.worth_changing[0].rule == case.rule, [one.rule for one in diagnosis.worth_changing]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_same_work_done_well_gives_no_finding(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.clean, tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == []


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_metadata_problems_are_found_without_durations(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.fault, tmp_path, durations=False))
    if case.rule in {one.rule for one in diagnosis.silent}:
        return
    (found,) = of_rule(diagnosis, case.rule)
    assert found.evidence["count"] == case.count
    assert found.severity is not Severity.NOTE
