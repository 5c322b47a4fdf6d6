"""Tests the rule `metadata-heavy`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Diagnosis
from metadata_log import Trace, of_log


def renamed(stages: int) -> Callable[[Trace], None]:
    """Returns a program that moves files from folder to folder, one by one."""

    def write(log: Trace) -> None:
        for stage in range(stages):
            for number in range(600):
                old, new = (f"/data/{one}/{number}.msg" for one in (stage, stage + 1))
                log.call(f'chmod("{old}", 0640)', "0", 5)
                log.call(f'rename("{old}", "{new}")', "0", 20)

    return write


@pytest.mark.parametrize(("stages", "found"), [(4, 1), (1, 0)], ids=["from stage to stage", "once"])
def test_metadata_calls_on_a_renamed_file_are_added_up(tmp_path: Path, stages: int, found: int) -> None:
    assert len(of_rule(of_log(tmp_path, renamed(stages)), "metadata-heavy")) == found


def test_many_metadata_calls_in_a_long_run_are_fine(tmp_path: Path) -> None:
    """A case of JAXA's CFD code: many metadata calls for each write, which take as long as the data, in a run
    of 100 s."""
    log = Trace()
    for _ in range(511):
        for name, size in (("/data/RESULT/x.rslt", 2_500_000), ("/data/adc.txt", 2100)):
            log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size=5, ...}})', "0", 7)
            log.open(name, took_us=50, flags="O_RDWR|O_CREAT")
            log.call("fstat(3, {st_mode=S_IFREG|0644, st_size=5, ...})", "0", 2)
            log.write(size, 100 if size > 10_000 else 1)
            log.close(1)
        log.pause(190_000)
    diagnosis = diagnosed(log.imported(tmp_path))
    assert not diagnosis.worth_changing


def opened_anew(folder: Path, opens: int, written: int) -> Diagnosis:
    """Diagnoses a run with two hundred files. Each is truncated (slowly) OPENS times and written; then mode,
    owner and name are changed."""
    log = Trace()
    for number in range(200):
        for _ in range(opens):
            log.open(f"/data/state{number}", took_us=2000 // opens, flags="O_WRONLY|O_CREAT|O_TRUNC")
            log.write(written, 20)
            for _ in range(8):
                log.call("fchmod(3, 0644)", "0", 1)
            log.close(1)
    return diagnosed(log.imported(folder))


@pytest.mark.parametrize(("opens", "written", "found"), [(2, 1 << 17, False), (1, 1 << 17, True)])
def test_opens_that_truncate_a_large_file_are_not_metadata_load(
    tmp_path: Path, opens: int, written: int, found: bool
) -> None:
    assert bool(of_rule(opened_anew(tmp_path, opens, written), "metadata-heavy")) == found
