"""Rules on data: what each finds, counts and charges in logs with known times, and that its twin is clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_faults import CASES, IDS, Build, Case, made, overwritten, written_anew
from iodock.program.findings import Severity
from iodock.program.store import Store
from timed_strace import StraceLog, diagnosed, of_rule


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_fault_is_found_counted_charged_and_named_first(case: Case, tmp_path: Path) -> None:
    store = made(case.fault, tmp_path)
    diagnosis = diagnosed(store)
    assert [one.rule for one in diagnosis.worth_changing][:1] == [case.rule]
    (found,) = of_rule(diagnosis, case.rule)
    assert found.evidence["count"] == case.count
    assert found.cost_seconds == pytest.approx(case.seconds, rel=0.01)
    assert found.cost_share == pytest.approx(case.seconds, rel=0.05)
    assert found.files == case.files
    with Store.open(store) as opened:
        rows = opened.engine.user_query(found.query).to_pylist()
    assert case.files[0] in {row["file"] for row in rows}, "its query shows the file"


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_same_work_done_well_is_not_blamed(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.clean, tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_without_durations_the_calls_count(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.fault, tmp_path, durations=False))
    (found,) = of_rule(diagnosis, case.rule)
    assert found.cost_seconds is None and found.gain is None
    assert found.severity is Severity.MEDIUM


def test_overwriting_waits_for_the_pages_at_the_edges(tmp_path: Path) -> None:
    diagnosis = diagnosed(made(overwritten, tmp_path))
    (found,) = diagnosis.worth_changing
    assert (found.rule, found.files) == ("unaligned-requests", ("/data/field",))
    assert found.evidence["count"] == 1000 - 16, "64 times 40,000 is a multiple of 4096"
    assert found.cost_seconds == pytest.approx(999 * 78e-6, rel=0.01), "20 us of copying, 2 for a call"


def test_what_is_written_anew_waits_for_no_page(tmp_path: Path) -> None:
    assert not diagnosed(made(written_anew, tmp_path)).worth_changing


def bash_reads_lines(log: StraceLog) -> None:
    log.execute("/usr/bin/bash")
    log.open("/data/list")
    for number in range(3000):
        log.read(4096, 20)
        log.seek((number + 1) * 20, 10)


def test_a_shell_that_goes_back_after_each_line_is_told_once(tmp_path: Path) -> None:
    diagnosis = diagnosed(made(bash_reads_lines, tmp_path))
    (found,) = diagnosis.worth_changing
    assert found.rule == "bytewise-read"
    assert found.cost_seconds == pytest.approx(0.09, rel=0.01)


def test_writes_of_a_few_pages_one_after_the_other_may_be_unaligned(tmp_path: Path) -> None:
    def build(size: int) -> Build:
        def writes(log: StraceLog) -> None:
            log.open("/data/out", "O_WRONLY|O_CREAT")
            for _ in range(1000):
                log.write(size, 100)

        return writes

    found = {
        size: len(of_rule(diagnosed(made(build(size), tmp_path)), "unaligned-requests"))
        for size in (4096, 5000, 8191, 10240, 65000)
    }
    assert found == {4096: 0, 5000: 1, 8191: 0, 10240: 0, 65000: 0}
