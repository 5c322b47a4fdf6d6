"""Tests the rule `mmap-random`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

from data_faults import large_reads, made
from diagnosing import diagnosed


def test_unseen_mmap_is_reported(tmp_path: Path) -> None:
    silent = {one.rule for one in diagnosed(made(large_reads, tmp_path)).silent}
    assert "mmap-random" in silent
