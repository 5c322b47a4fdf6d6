"""Tests the rule `backward-access`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_faults import made
from diagnosing import blamed, diagnosed, of_rule
from iodock.program.findings import Severity
from log_shapes import at
from metadata_log import Trace
from timed_strace import StraceLog


def test_small_requests_cost_calls_even_with_fast_memory(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/history")
        for number in range(20_000, 0, -1):
            log.pread(16384, number * 16384, 1)

    (found,) = of_rule(diagnosed(made(build, tmp_path)), "backward-access")
    # The calls read 16 GB/s. Each takes 0.1 us apart from copying, and 313 large calls would remain.
    assert found.cost_seconds == pytest.approx(20_000 * 0.1e-6 - 313e-6, rel=0.01)
    assert found.severity is Severity.NOTE


def test_seeks_back_are_part_of_backward_access(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/history")
        for number in range(500, 0, -1):
            log.seek(number * 4096, 20)
            log.read(4096, 200)

    (found,) = of_rule(diagnosed(made(build, tmp_path)), "backward-access")
    assert found.cost_seconds == pytest.approx(0.1 - 0.0004 - 0.00041 + 0.01, rel=0.005)


def test_a_backward_pass_is_not_a_forward_pass(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/records.bin")
    for number in range(1200, 0, -1):
        log.call(f'pread64(3, ""..., 80, {number * 8000})', "80", 300)
    diagnosis = diagnosed(log.imported(tmp_path))
    assert of_rule(diagnosis, "backward-access")
    assert not of_rule(diagnosis, "random-access")


def test_equal_backward_steps_are_backward_access(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/history", flags="O_RDONLY")
    for place in reversed(range(1000)):
        at(log, "pread64", 512, place * 1024, 50)
    assert blamed(diagnosed(log.imported(tmp_path))) == ["backward-access"]
