"""Tests which of several findings iodock shows if one is the cause of others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diagnosing import diagnosed
from iodock.program.diagnosis import _Found, _without_symptoms
from iodock.program.findings import Finding, Severity
from iodock.program.rules.base import Candidate
from iodock.shared.message import Message
from metadata_log import Trace


def found_by(rule: str, cost: float) -> _Found:
    nothing = Message("")
    finding = Finding(
        rule=rule,
        severity=Severity.HIGH,
        confidence=0.8,
        cost_seconds=cost,
        cost_share=None,
        node_hours=None,
        gain=None,
        title=nothing,
        message=nothing,
        files=("/data/log",),
        file_count=1,
        call=None,
        evidence={},
        query="",
        advice=(),
        fine_when=nothing,
        case=None,
    )
    return _Found(finding, frozenset(finding.files), Candidate(nothing, 1, None, {}, ""))


@pytest.mark.parametrize(
    ("costs", "kept"),
    [
        ((4.0, 3.0, 2.5), ["open-close-loop"]),
        ((4.0, 2.5, 1.5), ["small-requests", "open-close-loop"]),
        ((4.0, 2.5, 1.0), ["write-in-compute-loop", "open-close-loop"]),
    ],
)
def test_a_hidden_finding_still_hides_its_own_symptoms(costs: tuple[float, ...], kept: list[str]) -> None:
    rules = ("small-requests", "write-in-compute-loop", "open-close-loop")
    found = [found_by(*one) for one in zip(rules, costs, strict=True)]
    assert [one.finding.rule for one in _without_symptoms(found)] == kept


@pytest.mark.parametrize(
    ("direction", "kept"),
    [("write", ["bytewise-read"]), (None, ["bytewise-read"]), ("read", ["small-requests", "bytewise-read"])],
)
def test_a_finding_on_reads_does_not_hide_one_on_writes(direction: str | None, kept: list[str]) -> None:
    writes = replace(found_by("small-requests", 1.0), direction="write")
    other = replace(found_by("bytewise-read", 2.0), direction=direction)
    assert [one.finding.rule for one in _without_symptoms([writes, other])] == kept


def test_a_cause_on_many_files_hides_its_symptom_on_any_of_them(tmp_path: Path) -> None:
    log = Trace()
    for round_ in range(60):
        for number in range(50):
            name = f"/data/part{number}"
            log.call(f'lgetxattr("{name}", "user.x", 0x7f, 255)', "-1 ENODATA (No data available)", 200)
            if round_ < 1:
                # This call makes the most expensive files differ between rules.
                log.call(f'chmod("{name}", 0644)', "0", 10 * number)
    found = [one.rule for one in diagnosed(log.imported(tmp_path, 1)).worth_changing]
    assert found == ["failed-xattr"]
