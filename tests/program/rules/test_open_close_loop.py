"""Tests the rule `open-close-loop`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from metadata_faults import made
from metadata_log import Trace, of_log


@pytest.mark.parametrize(("processes", "found"), [(1, True), (500, False)])
def test_a_proc_file_opened_repeatedly_is_reported(tmp_path: Path, processes: int, found: bool) -> None:
    def write(log: Trace) -> None:
        for number in range(500):
            log.open(f"/proc/{1000 + number % processes}/statm", flags="O_RDONLY", took_us=20)
            log.read(40, 20)
            log.close(took_us=5)

    assert bool(of_rule(of_log(tmp_path, write), "open-close-loop")) == found


def opens_its_journal(log: Trace) -> None:
    log.open("/data/runs.data", fd=4)
    for _ in range(501):
        log.open("/data/runs.data-journal", took_us=300, flags="O_RDWR|O_CREAT")
        log.write(512, 20)
        log.close(200)


def test_a_database_opens_its_journal_for_each_transaction(tmp_path: Path) -> None:
    assert not of_rule(diagnosed(made(opens_its_journal, tmp_path)), "open-close-loop")


def test_a_database_connection_per_query_is_an_open_close_loop(tmp_path: Path) -> None:
    log = Trace()
    for _ in range(300):
        for name in ("/data/birds.db", "/data/birds.db-journal"):
            log.open(name, took_us=300)
            log.read(4096, 10)
            log.close(100)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "open-close-loop")
    assert found.files == ("/data/birds.db",)
