"""Tests the rule `slow-close`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from metadata_log import Trace

MIB = 1 << 20


def test_closes_that_write_back_data_are_explained_without_a_finding(tmp_path: Path) -> None:
    """A case of SWarp: closes take 83 % of the I/O time, and writes 9 %."""
    log = Trace()
    for number in range(10):
        log.open(f"/data/resamp{number}.fits", flags="O_WRONLY|O_CREAT")
        for _ in range(9):
            log.write(MIB, 1000)
        log.close(83_000)
    diagnosis = diagnosed(log.imported(tmp_path, wall_us=2_000_000))
    (found,) = of_rule(diagnosis, "slow-close")
    assert found.severity is Severity.NOTE and found.gain is None
    assert found.cost_seconds == pytest.approx(0.83)
    assert not diagnosis.worth_changing
