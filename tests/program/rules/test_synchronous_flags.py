"""Tests the rule `synchronous-flags`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import of_rule
from metadata_log import Trace, of_log


def opened_again(log: Trace) -> None:
    log.open("/proc/self/fd/3", flags="O_WRONLY|O_DSYNC", fd=4)
    for _ in range(200):
        log.write(512, 2000, fd=4)


def flagged(flags: str, count: int = 200) -> Callable[[Trace], None]:
    def write(log: Trace) -> None:
        for number in range(count):
            text = f'pwritev2(3, [{{iov_base=""..., iov_len=512}}], 1, {number * 512}, {flags})'
            log.call(text, "512", 2000)

    return write


def made_in(folder: str) -> Callable[[Trace], None]:
    """Returns a program that creates an unnamed file (O_TMPFILE) in its working directory."""

    def write(log: Trace) -> None:
        log.call(f'chdir("{folder}")')
        log.open(".", flags="O_RDWR|O_TMPFILE|O_DSYNC", fd=4)
        for _ in range(200):
            log.write(512, 2000, fd=4)

    return write


@pytest.mark.parametrize(
    ("then", "found"),
    [
        (opened_again, 1),
        (flagged("RWF_DSYNC"), 1),
        (flagged("RWF_SYNC"), 1),
        (flagged("RWF_HIPRI"), 0),
        (made_in("/data/run"), 1),
    ],
    ids=["/proc/self/fd", "RWF_DSYNC", "RWF_SYNC", "neither", "O_TMPFILE"],
)
def test_synchronous_writes_are_found_for_every_way_to_set_the_flag(
    tmp_path: Path, then: Callable[[Trace], None], found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/journal", flags="O_WRONLY|O_CREAT")
        then(log)

    assert len(of_rule(of_log(tmp_path, write), "synchronous-flags")) == found


def test_only_writes_with_the_flag_are_part_of_the_cost(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        log.open("/data/journal", flags="O_WRONLY|O_CREAT")
        flagged("RWF_DSYNC", 50)(log)
        flagged("0", 150)(log)

    (finding,) = of_rule(of_log(tmp_path, write), "synchronous-flags")
    assert finding.evidence["count"] == 50
