"""Tests the rule `sync-heavy`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from metadata_log import Trace


def synced_once(folder: Path, size: int) -> Path:
    log = Trace()
    for number in range(40):
        log.open(f"/data/new/{number}", flags="O_WRONLY|O_CREAT")
        log.write(size, 10)
        log.call("fsync(3)", "0", 5000)
        log.close()
    return log.imported(folder)


def test_a_sync_per_small_file_is_found(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(synced_once(tmp_path, 2000)), "sync-heavy")
    assert found.evidence["count"] == 40
    assert found.cost_seconds == pytest.approx(0.2, rel=0.01)


def test_a_sync_per_large_file_gives_no_finding(tmp_path: Path) -> None:
    assert not of_rule(diagnosed(synced_once(tmp_path, 1 << 20)), "sync-heavy")


def test_syncs_of_a_folder_are_counted(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/new", flags="O_RDONLY|O_DIRECTORY")
    for number in range(40):
        log.open(f"/data/new/{number}", fd=4, flags="O_WRONLY|O_CREAT")
        log.write(32, 10, fd=4)
        log.close(fd=4)
        log.call("fsync(3)", "0", 5000)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "sync-heavy")
    assert found.cost_seconds == pytest.approx(39 * 0.005, rel=0.01)
