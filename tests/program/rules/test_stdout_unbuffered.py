"""Tests the rule `stdout-unbuffered`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from metadata_log import Trace, of_log


@pytest.mark.parametrize(
    ("opened", "found"), [("dup(1)", True), ('openat(AT_FDCWD, "/data/o", O_RDWR)', False)]
)
def test_a_duplicate_of_standard_output_counts_as_standard_output(
    tmp_path: Path, opened: str, found: bool
) -> None:
    def write(log: Trace) -> None:
        log.call(opened, "3", 5)
        for _ in range(1500):
            log.write(40, 5)

    assert bool(of_rule(of_log(tmp_path, write), "stdout-unbuffered")) == found


def test_lines_of_a_computing_program_are_reported_once(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/progress.txt", fd=5, flags="O_WRONLY|O_CREAT")
    log.call("dup2(5, 1)", "1")
    for _ in range(2000):
        log.pause(400)
        log.write(50, 50, fd=1)
    diagnosis = diagnosed(log.imported(tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == ["stdout-unbuffered"]
    assert of_rule(diagnosis, "write-in-compute-loop") == []
