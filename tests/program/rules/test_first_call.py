"""Tests that a first call that waits for the disk is not a cost of the loop around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from metadata_log import Trace

CALLS, FIRST_US, USUAL_US = 1101, 60_000, 20


def opens(log: Trace, took_us: int, number: int) -> None:
    log.open("/data/log", took_us=took_us, flags="O_WRONLY|O_APPEND")
    log.write(40, 1)
    log.close(0)


def asks(log: Trace, took_us: int, number: int) -> None:
    log.call('stat("/data/in", {st_mode=S_IFREG|0644, st_size=5, ...})', "0", took_us)


def lists(log: Trace, took_us: int, number: int) -> None:
    log.open("/data/in", flags="O_RDONLY|O_DIRECTORY")
    log.call("getdents64(3, 0x55 /* 90 entries */, 32768)", "2900", took_us)
    log.call("getdents64(3, 0x55 /* 0 entries */, 32768)", "0", 0)
    log.close(0)


def looks_in_vain(log: Trace, took_us: int, number: int) -> None:
    log.open_missing("/data/path/table.cfg", took_us)


def changes_rights(log: Trace, took_us: int, number: int) -> None:
    if not number:
        log.open("/data/in")
        log.close()
    log.call('chmod("/data/in", 0644)', "0", took_us)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (opens, "open-close-loop"),
        (asks, "stat-storm"),
        (lists, "directory-scan-storm"),
        (looks_in_vain, "failed-open-storm"),
        (changes_rights, "metadata-heavy"),
    ],
)
def test_the_slow_first_call_is_not_part_of_the_loops_cost(
    call: Callable[[Trace, int, int], None], rule: str, tmp_path: Path
) -> None:
    log = Trace()
    for number in range(CALLS):
        call(log, USUAL_US if number else FIRST_US, number)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), rule)
    assert found.cost_seconds == pytest.approx((CALLS - 1) * USUAL_US * 1e-6, rel=0.06)
