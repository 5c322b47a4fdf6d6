"""Tests logs of a machine whose clock was set back while the program ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed
from iodock.program import capture
from iodock.program.findings import Diagnosis
from iodock.program.store import Store
from timed_strace import StraceLog

HOUR_US = 3_600_000_000


def imported(folder: Path, set_back_us: int) -> Path:
    folder.mkdir()
    log = StraceLog()
    log.open("/data/a")
    for number in range(4000):
        if number == 2000:
            log.now -= set_back_us
        log.read(100, 100)
    log.close()
    log.ends()
    path = folder / "run.log"
    path.write_text("\n".join(log.lines) + "\n")
    capture.import_logs([str(path)], folder / "run.iodock")
    return folder / "run.iodock"


def said(diagnosis: Diagnosis) -> list[tuple[str, float | None]]:
    return [(one.rule, one.cost_seconds) for one in diagnosis.worth_changing]


@pytest.mark.parametrize("set_back_us", [HOUR_US, 20_000], ids=["an hour", "20 ms"])
def test_a_clock_that_was_set_back_does_not_change_the_findings(set_back_us: int, tmp_path: Path) -> None:
    steady, moved = (imported(tmp_path / str(by), by) for by in (0, set_back_us))
    right, found = diagnosed(steady), diagnosed(moved)
    assert [name for name, *_ in found.losses] == ["clock-set-back"]
    assert not right.losses
    assert said(found) == [(rule, pytest.approx(cost)) for rule, cost in said(right)] != []
    assert found.verdict.wall_seconds == pytest.approx(right.verdict.wall_seconds, rel=0.001)
    assert found.verdict.io_share == pytest.approx(right.verdict.io_share, rel=0.001)


def test_with_a_clock_set_back_calls_stay_in_order(tmp_path: Path) -> None:
    with Store.open(imported(tmp_path / "moved", HOUR_US)) as store:
        (row,) = store.rows(
            """SELECT count(*) AS reads, count(*) FILTER (WHERE dur < 0 OR end_ts < ts) AS ended_before,
  count(*) FILTER (WHERE offset_bytes < before) AS out_of_order
FROM (SELECT *, lag(offset_bytes) OVER (ORDER BY ts) AS before FROM events WHERE direction = 1)"""
        )
    assert row == {"reads": 4000, "ended_before": 0, "out_of_order": 0}
