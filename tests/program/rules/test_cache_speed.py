"""Tests the rule `cache-speed`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_faults import MIB, made
from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from iodock.shared.settings import FileSystem, Settings
from timed_strace import StraceLog, mounted


def test_a_rate_beyond_device_speed_gives_only_a_note(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/a")
        for _ in range(100):
            log.read(8 * MIB, 500)

    diagnosis = diagnosed(made(build, tmp_path))
    (found,) = of_rule(diagnosis, "cache-speed")
    assert found.severity is Severity.NOTE and found.gain is None
    assert found.evidence["rate_bytes_per_s"] == pytest.approx(8 * MIB / 500e-6)
    assert not diagnosis.worth_changing


def test_a_configured_link_bandwidth_lowers_the_limit_for_cache_speed(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/a")
        for _ in range(100):
            log.read(MIB, 1000)

    store = made(build, tmp_path)
    slow_link = Settings(file_systems={"/data": FileSystem(link_bytes_per_s=125e6)})
    assert not of_rule(diagnosed(store), "cache-speed")
    (found,) = of_rule(diagnosed(mounted(store, "/data", "nfs4"), slow_link), "cache-speed")
    assert found.severity is Severity.NOTE
