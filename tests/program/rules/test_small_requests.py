"""Tests the rule `small-requests`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

from data_faults import made, small_reads
from diagnosing import diagnosed, of_rule
from iodock.shared.settings import Settings
from timed_strace import StraceLog, mounted


def test_disk_stalls_are_not_part_of_the_cost_of_small_requests(tmp_path: Path) -> None:
    """Every 32nd read waits for the disk, and would also wait with large requests."""
    log = StraceLog()
    log.open("/data/a")
    for number in range(3200):
        log.read(2048, 5000 if number % 32 == 0 else 5)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "small-requests")
    assert found.cost_seconds is not None and found.cost_seconds < 0.025


def test_small_files_opened_once_each_are_not_small_requests(tmp_path: Path) -> None:
    log = StraceLog()
    for number in range(2000):
        log.open(f"/data/set/part{number}")
        log.read(300, 100)
        log.close()
    assert not of_rule(diagnosed(log.imported(tmp_path)), "small-requests")


def test_a_network_file_system_needs_larger_requests(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/a")
        for _ in range(2001):
            log.read(8192, 100)

    store = made(build, tmp_path)
    assert not of_rule(diagnosed(store), "small-requests")
    (found,) = of_rule(diagnosed(mounted(store, "/data", "nfs4")), "small-requests")
    assert found.evidence["count"] == 2000


def test_thresholds_can_be_configured(tmp_path: Path) -> None:
    store = made(small_reads, tmp_path)
    lowered = Settings(rules={"small-requests": {"below_bytes": 64}})
    assert not of_rule(diagnosed(store, lowered), "small-requests")
