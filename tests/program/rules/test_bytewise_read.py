"""Tests the rule `bytewise-read`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_faults import made
from diagnosing import diagnosed, of_rule
from metadata_log import Trace, of_log
from timed_strace import StraceLog


@pytest.mark.parametrize(("size", "found"), [(1, 1), (512, 0)])
def test_a_descriptor_opened_by_its_name_is_mostly_a_pipe(tmp_path: Path, size: int, found: int) -> None:
    def write(log: Trace) -> None:
        log.open("/dev/fd/63", flags="O_RDONLY")
        for _ in range(3000):
            log.read(size, 20)

    assert len(of_rule(of_log(tmp_path, write), "bytewise-read")) == found


def bash_reads_lines(log: StraceLog) -> None:
    log.execute("/usr/bin/bash")
    log.open("/data/list")
    for number in range(3000):
        log.read(4096, 20)
        log.seek((number + 1) * 20, 10)


def test_a_shell_that_seeks_back_after_each_line_is_reported_once(tmp_path: Path) -> None:
    diagnosis = diagnosed(made(bash_reads_lines, tmp_path))
    (found,) = diagnosis.worth_changing
    assert found.rule == "bytewise-read"
    assert found.cost_seconds == pytest.approx(0.09, rel=0.01)
