"""Tests comparing two clocks of one machine by counters: how precise the comparison is, and when it is
impossible."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from iodock.centre.alongside.clocks import MOST_WITHIN_S, Row, compared
from iodock.shared.meanwhile import ClockOffset, CounterSeries

SECOND = 1_000_000_000
BEGIN = 1_700_000_000 * SECOND
KEY = ("diskstats", "sda", "write_bytes")


def bursts(at_s: float) -> float:
    """Returns the bytes written until AT_S."""
    random = Random(4)
    whole = 0.0
    for _ in range(400):
        begin, size = random.uniform(-1000, 3000), random.uniform(1e7, 1e9)
        whole += size * min(1.0, max(0.0, (at_s - begin) / 4))
    return whole


def series(seconds: int, counter: Callable[[float], float]) -> CounterSeries:
    points = tuple((BEGIN + at * SECOND, counter(at)) for at in range(seconds))
    return CounterSeries("diskstats", "sda", "written_bytes", points)


def agent(counter: Callable[[float], float], ahead_s: float, every: int = 10) -> list[Row]:
    """Returns rows of an agent whose clock is AHEAD_S ahead, beginning eleven minutes before the
    recording."""
    return [
        (
            BEGIN + at * SECOND,
            BEGIN + (at + every) * SECOND,
            round(counter(at + every - ahead_s) - counter(at - ahead_s)),
        )
        for at in range(-660, 1500, every)
    ]


@pytest.mark.parametrize("ahead_s", [-431.0, -2.4, 0.0, 3.0, 77.0])
@pytest.mark.parametrize("seconds", [150, 600])
def test_the_clock_offset_is_found_from_changing_counters(ahead_s: float, seconds: int) -> None:
    found = compared([series(seconds, bursts)], {KEY: agent(bursts, ahead_s)}, "n1")
    assert isinstance(found, ClockOffset)
    assert found.is_measured and found.host == "n1"
    assert abs(found.offset_ns / SECOND - ahead_s) <= found.within_ns / SECOND <= MOST_WITHIN_S


@pytest.mark.parametrize("ahead_s", [-431.0, -2.4, 0.0, 3.0, 77.0])
def test_one_minute_gives_the_right_clock_offset_or_none(ahead_s: float) -> None:
    found = compared([series(60, bursts)], {KEY: agent(bursts, ahead_s)}, "n1")
    assert isinstance(found, str) or abs(found.offset_ns / SECOND - ahead_s) <= found.within_ns / SECOND


def test_a_constant_counter_gives_no_clock_offset() -> None:
    steady = series(600, lambda at: 1e6 * at)
    assert compared([steady], {KEY: agent(lambda at: 1e6 * at, 0.0)}, "n1") == "too-vague"


def test_counters_of_another_machine_do_not_match() -> None:
    assert compared([series(600, bursts)], {KEY: agent(lambda at: bursts(at * 1.7 + 90), 0.0)}, "n1") == (
        "no-match"
    )


def test_clocks_farther_apart_than_the_search_range_do_not_match() -> None:
    assert compared([series(300, bursts)], {KEY: agent(bursts, 1200.0)}, "n1") == "no-match"


@pytest.mark.parametrize("seconds", [1, 2, 25])
def test_a_short_recording_has_too_few_intervals_for_a_clock_offset(seconds: int) -> None:
    assert compared([series(seconds, bursts)], {KEY: agent(bursts, 0.0)}, "n1") == "too-few"


def test_recordings_without_common_intervals_give_no_clock_offset() -> None:
    assert compared([series(600, bursts)], {("diskstats", "sdb", "write_bytes"): []}, "n1") == "too-few"
    assert compared([], {KEY: agent(bursts, 0.0)}, "n1") == "too-few"


def test_a_restarted_counter_gives_no_wrong_clock_offset() -> None:
    """The machine was rebooted during the recording, so the growth in one interval is unknown."""

    def reset(at: float) -> float:
        return bursts(at) if at < 300 else bursts(at) - bursts(300)

    found = compared([series(600, reset)], {KEY: agent(bursts, 5.0)}, "n1")
    assert isinstance(found, str) or abs(found.offset_ns / SECOND - 5) <= found.within_ns / SECOND


@pytest.mark.parametrize("seconds", [163, 200, 239])
@pytest.mark.parametrize("phase", [0, 17, 40, 59])
def test_clock_offset_from_few_rows_is_unknown_or_right(seconds: int, phase: int) -> None:
    """The agent's rows cover one minute each, and the last one is cut. Only some of the possible clock
    offsets put enough rows inside the recording."""
    rows = [
        (begin - phase * SECOND, end - phase * SECOND, grown)
        for begin, end, grown in agent(bursts, phase, 60)
    ]
    begin = rows[-1][1]
    cut = [row for row in rows if row[1] <= BEGIN + 180 * SECOND]
    last = cut[-1][1]
    cut.append((last, last + 10 * SECOND, 10_000_000))
    assert begin > last
    found = compared([series(seconds, bursts)], {KEY: cut}, "n1")
    assert isinstance(found, str) or abs(found.offset_ns / SECOND) <= found.within_ns / SECOND
