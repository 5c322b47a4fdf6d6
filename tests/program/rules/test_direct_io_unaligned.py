"""Tests the rule `direct-io-unaligned`: when it gives a finding, its count and cost, and when it gives
none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import of_rule
from metadata_log import Trace, of_log


@pytest.mark.parametrize(
    ("flags", "size", "off_after", "before", "found"),
    [
        ("O_WRONLY|O_DIRECT", 1536, None, 0, 1),
        ("O_WRONLY|O_DIRECT", 8192, None, 0, 0),
        ("O_WRONLY|O_APPEND", 1536, None, 0, 0),
        ("O_WRONLY|O_DIRECT", 1536, 0, 0, 0),
        ("O_WRONLY|O_DIRECT", 8192, None, 200, 0),
    ],
    ids=["odd", "fits", "another flag", "switched off", "odd before"],
)
def test_direct_io_may_be_switched_on_and_off_by_fcntl(
    tmp_path: Path, flags: str, size: int, off_after: int | None, before: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/field", flags="O_WRONLY|O_CREAT", took_us=1)
        for _ in range(before):
            log.write(1536, 500)
        log.call(f"fcntl(3, F_SETFL, {flags})", "0", 1)
        for number in range(200):
            if number == off_after:
                log.call("fcntl(3, F_SETFL, O_WRONLY)", "0", 1)
            log.write(size, 500)

    assert len(of_rule(of_log(tmp_path, write), "direct-io-unaligned")) == found
