"""Tests the rule `slow-call`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from metadata_log import Trace, finding_of, of_log

MIB = 1 << 20


@pytest.mark.parametrize(("took_us", "found"), [(700_000, True), (90_000, False)])
def test_a_hanging_call_is_found_in_a_run_of_few_calls(tmp_path: Path, took_us: int, found: bool) -> None:
    def write(log: Trace) -> None:
        log.open("/data/input", flags="O_RDONLY", took_us=took_us)
        log.read(4096, 20)

    assert bool(of_rule(of_log(tmp_path, write), "slow-call")) == found


def look_in_vain(log: Trace, took_us: int) -> None:
    log.open_missing("/data/local/part", took_us)


def ask(log: Trace, took_us: int) -> None:
    log.call('stat("/data/part", {st_mode=S_IFREG|0644, st_size=9, ...})', "0", took_us)


def append(log: Trace, took_us: int) -> None:
    log.open("/data/log", flags="O_WRONLY|O_APPEND", took_us=took_us)
    log.write(20, 1)
    log.close(1)


@pytest.mark.parametrize(
    ("each", "rule"),
    [(look_in_vain, "failed-open-storm"), (ask, "stat-storm"), (append, "open-close-loop")],
    ids=["in vain", "asked", "appended"],
)
@pytest.mark.parametrize(("usual_us", "found"), [(40, True), (1, False)], ids=["as well", "alone"])
def test_a_hanging_call_explains_only_its_own_time(
    tmp_path: Path, each: Callable[[Trace, int], None], rule: str, usual_us: int, found: bool
) -> None:
    def write(log: Trace) -> None:
        for number in range(3000):
            each(log, 400_000 if number == 1000 else usual_us)

    diagnosis = of_log(tmp_path, write, wall_us=1_200_000)
    assert "slow-call" in blamed(diagnosis)
    assert (rule in blamed(diagnosis)) == found
    if found:
        (finding,) = of_rule(diagnosis, rule)
        assert finding.cost_seconds == pytest.approx(3000 * usual_us * 1e-6, rel=0.06)


def test_the_time_of_a_hanging_call_is_given(tmp_path: Path) -> None:
    """A case of plot5: one open of 13.9 s at 12:08:20, and one close of 1.9 s."""
    log = Trace(stamp="day")
    log.pause(10_048)
    for number in range(246):
        log.open("/home/me/plot.cfg", took_us=30 if number else 13_936_576, flags="O_WRONLY|O_CREAT|O_TRUNC")
        log.write(40, 11)
        log.close(10 if number else 1_939_770)
    diagnosis = diagnosed(log.imported(tmp_path, wall_us=20_000_000))
    opened, closed = of_rule(diagnosis, "slow-call")
    assert str(opened.message.values["when"]).startswith("12:08:20.010048")
    assert (opened.call, closed.call) == ("openat", "close")
    assert opened.cost_seconds == pytest.approx(13.9366, rel=0.001)
    assert closed.cost_seconds == pytest.approx(1.9398, rel=0.001)
    assert [one.rule for one in diagnosis.worth_changing] == ["slow-call", "slow-call"]


def test_a_long_read_of_many_bytes_is_not_a_hanging_call(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/in")
    for _ in range(200):
        log.read(4096, 10)
    log.read(256 * MIB, 400_000)
    assert not of_rule(diagnosed(log.imported(tmp_path)), "slow-call")


def test_the_typical_duration_is_measured_on_the_same_file(tmp_path: Path) -> None:
    """The times are from figure 4.3.8 of the SS-ken report: plot5's open of plot.cfg of 13.94 s, and the
    usual one after it."""

    def plot5(log: Trace) -> None:
        for opened, closed in ((13_936_576, 1_939_770), (5_942, 1_514)):
            log.open("plot.cfg", took_us=opened, flags="O_WRONLY|O_CREAT|O_TRUNC")
            log.write(42, 46)
            log.close(closed)
            log.open("all3.dat1", took_us=30, flags="O_RDONLY")
            log.read(32768, 8)
            log.close(10)

    trace = Trace()
    plot5(trace)
    opened, closed = of_rule(diagnosed(trace.imported(tmp_path)), "slow-call")
    assert opened.message.values["usual_ns"] == 5_942_000
    assert closed.message.values["usual_ns"] == 1_514_000
    assert all(any("Open the file once" in one.message.text for one in f.advice) for f in (opened, closed))


def test_a_single_call_has_no_typical_duration(tmp_path: Path) -> None:
    def hangs(log: Trace) -> None:
        log.open("/data/in", took_us=20, flags="O_RDONLY")
        log.read(4096, 800_000)
        log.close(10)

    found, _ = finding_of(hangs, "slow-call", tmp_path)
    assert "usual_ns" not in found.message.values
