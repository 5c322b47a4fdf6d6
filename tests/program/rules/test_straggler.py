"""Tests the rule `straggler`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from metadata_log import Trace
from rank_log import ranks, writes

MIB = 1 << 20


def test_a_rank_slower_at_the_same_work_is_a_straggler(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 10, 50_000 if n == 1 else 10_000), tmp_path)
    diagnosis = diagnosed(path)
    (found,) = of_rule(diagnosis, "straggler")
    assert found.message.values["worker"] == 1
    assert found.cost_seconds == pytest.approx(0.5 - 0.1)
    assert [one.rule for one in diagnosis.worth_changing] == ["straggler"]


def test_a_rank_with_one_hanging_call_is_not_a_straggler(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        writes(log, number, pid, 20, 10_000)
        log.open(f"/data/end.{number}", flags="O_WRONLY|O_CREAT", pid=pid)
        log.write(MIB, 400_000 if number == 1 else 10_000, pid=pid)
        log.close(pid=pid)

    assert not of_rule(diagnosed(ranks(work, tmp_path)), "straggler")


def test_a_rank_that_is_slow_in_few_large_calls_is_a_straggler(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 2, 150_000 if n == 1 else 50_000), tmp_path)
    (found,) = of_rule(diagnosed(path), "straggler")
    assert found.cost_seconds == pytest.approx(0.2)


def test_a_rank_that_starts_late_is_a_straggler(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.pause(500_000 if number == 2 else 1000 * number, pid)
        writes(log, number, pid, 10, 10_000)

    (found,) = of_rule(diagnosed(ranks(work, tmp_path)), "straggler")
    assert found.message.values["worker"] == 2
    assert found.cost_seconds == pytest.approx(0.5 - 0.003)
