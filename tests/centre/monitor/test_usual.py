"""Tests which verdicts on runs the monitor must give, and which it must not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from iodock.centre.monitor.usual import LEAST_RUNS, Run, Verdict, judged

SECOND = 1_000_000_000
DAY = 86_400 * SECOND


def run(number: int, seconds: float, moved: float = 1e9, metadata: float = 0, is_over: bool = True) -> Run:
    begin = number * DAY
    return Run(str(number), begin, begin + int(seconds * SECOND), moved, 0, metadata, True, is_over)


def past(*seconds: float, moved: float = 1e9) -> list[Run]:
    return [run(number, each, moved) for number, each in enumerate(seconds)]


SIX = past(600, 620, 590, 605, 610, 615)


def said(own: Run, others: list[Run]) -> Verdict:
    return judged(own, others).verdict


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(607, Verdict.USUAL), (60, Verdict.USUAL), (660, Verdict.USUAL), (700, Verdict.SLOWER)],
)
def test_a_run_beyond_the_tolerance_and_spread_counts_as_slower(seconds: float, expected: Verdict) -> None:
    assert said(run(9, seconds), SIX) is expected


def test_a_wide_spread_prevents_the_verdict_slower() -> None:
    assert said(run(9, 1400), past(400, 900, 600, 1500, 800, 500)) is Verdict.USUAL


def test_few_earlier_runs_give_no_verdict() -> None:
    assert said(run(9, 6000), SIX[: LEAST_RUNS - 1]) is Verdict.FEW
    assert judged(run(9, 6000), SIX[: LEAST_RUNS - 1]).usual_s is None
    assert said(run(9, 6000), SIX[:LEAST_RUNS]) is Verdict.SLOWER


def test_running_and_later_runs_are_not_compared() -> None:
    going_on = [replace(one, is_over=False) for one in SIX]
    assert said(run(9, 6000), going_on) is Verdict.FEW
    assert said(run(-1, 6000), SIX) is Verdict.FEW
    own = run(9, 6000)
    assert own.job not in judged(own, [*SIX, own]).compared


def test_runs_of_another_volume_are_not_compared() -> None:
    for factor in (0.3, 3.3):
        assert said(run(9, 6000, 1e9 * factor), SIX) is Verdict.FEW
    # A run in progress may have moved only part of its data, but not more than earlier runs did.
    assert said(run(9, 6000, 1e6, is_over=False), SIX) is Verdict.SLOWER
    assert said(run(9, 60, 1e6, is_over=False), SIX) is Verdict.RUNS
    assert said(run(9, 6000, 1e10, is_over=False), SIX) is Verdict.FEW


def test_more_time_for_more_bytes_is_not_slower() -> None:
    assert said(run(9, 1200, 2e9), SIX) is Verdict.USUAL
    assert said(run(9, 2400, 2e9), SIX) is Verdict.SLOWER


def test_runs_without_bytes_are_compared_by_operations() -> None:
    listings = [run(number, 100 + number, 0, 1000) for number in range(6)]
    assert said(run(9, 300, 0, 1000), listings) is Verdict.SLOWER
    assert said(run(9, 300, 0, 10_000), listings) is Verdict.FEW
    assert said(run(9, 300, 0, 0), listings) is Verdict.FEW
    assert said(run(9, 300, 0, 1000), SIX) is Verdict.FEW


def test_a_few_outliers_do_not_change_the_median() -> None:
    ten = past(600, 605, 610, 595, 590, 602, 608, 612, 599, 601)
    assert said(run(12, 900), [*ten, run(10, 40_000)]) is Verdict.SLOWER


def test_short_runs_need_a_difference_of_two_readings() -> None:
    assert said(run(9, 45), past(30, 30, 30, 30, 30)) is Verdict.USUAL
    assert said(run(9, 51), past(30, 30, 30, 30, 30)) is Verdict.SLOWER


def test_equal_runs_are_rarely_called_slower() -> None:
    random, wrong = Random(7), 0
    for _ in range(400):
        times = [3600 * random.lognormvariate(0, 0.2) for _ in range(11)]
        wrong += said(run(20, times[-1]), past(*times[:-1])) is Verdict.SLOWER
    assert wrong <= 20


def test_the_verdict_agrees_with_its_numbers_for_arbitrary_runs() -> None:
    random = Random(3)
    for _ in range(500):
        others = [
            run(number, random.uniform(0, 3000), 10 ** random.uniform(8, 10), random.choice((0, 50)))
            for number in range(random.randrange(30))
        ]
        own = run(40, 1000, is_over=random.random() < 0.5)
        judgement = judged(own, others)
        assert (judgement.verdict is Verdict.FEW) == (len(judgement.compared) < LEAST_RUNS)
        if judgement.limit_s is not None and judgement.usual_s is not None:
            assert judgement.limit_s > judgement.usual_s
            assert judgement.verdict is not Verdict.SLOWER or own.seconds > judgement.limit_s
