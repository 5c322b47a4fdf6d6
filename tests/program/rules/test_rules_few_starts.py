"""Processes whose start is what they take: few of a slow interpreter; and stages of pipelines, which are no
storm."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.program.diagnosis import diagnose
from iodock.program.store import Store
from metadata_log import FIRST, Trace, diagnosed, of_rule
from recorded import live, record


def started(log: Trace, count: int, modules: int, start_us: int, work_us: int) -> None:
    """COUNT commands, one after the other, that load MODULES of their own and then work."""
    for number in range(count):
        pid = 1000 + number
        log.start(pid, "/usr/bin/python3")
        for module in range(modules):
            log.open(f"/usr/lib/python3/m{module}.pyc", pid=pid)
            log.read(2000, 0, pid=pid)
            log.close(pid=pid)
            log.pause(start_us // modules, pid)
        log.open(f"/usr/lib/python3/last{number}.pyc", pid=pid)
        log.pause(work_us, pid)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid] + 1000


@pytest.mark.parametrize(
    ("count", "modules", "start_us", "work_us", "found"),
    [
        (25, 40, 150_000, 20_000, True),
        (12, 40, 150_000, 20_000, False),
        (25, 4, 150_000, 20_000, False),
        (25, 40, 150_000, 300_000, False),
    ],
    ids=["an interpreter's", "too few", "a command in C on a busy machine", "they work for longer"],
)
def test_few_starts_that_take_long(
    tmp_path: Path, count: int, modules: int, start_us: int, work_us: int, found: bool
) -> None:
    log = Trace()
    started(log, count, modules, start_us, work_us)
    findings = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "process-storm")
    assert [one.message.values["processes"] for one in findings] == ([count] if found else [])


@pytest.mark.parametrize(
    ("work_us", "at_once"), [(300_000, False), (20_000, True)], ids=["a late library", "side by side"]
)
def test_what_is_loaded_late_or_side_by_side_is_no_start(tmp_path: Path, work_us: int, at_once: bool) -> None:
    log = Trace()
    begin = log.clocks[FIRST]
    for pid in range(1000, 1025):
        log.clocks[FIRST] = begin if at_once else log.clocks[FIRST]
        log.start(pid, "/usr/bin/python3")
        for module in range(40):
            log.open(f"/usr/lib/python3/m{module}.pyc", pid=pid)
            log.read(2000, 0, pid=pid)
            log.close(pid=pid)
            log.pause(150_000 // 40 if at_once else 500, pid)
        log.pause(work_us, pid)
        log.open("/usr/share/zoneinfo/Asia/Tokyo", pid=pid)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid] + 1000
    assert of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "process-storm") == []


@pytest.mark.parametrize(("passed", "worth"), [(40 * 65536, False), (4096, True)], ids=["much", "a line"])
def test_what_stages_of_pipelines_pass_on_is_no_start(tmp_path: Path, passed: int, worth: bool) -> None:
    log = Trace()
    for number in range(30):
        fd, first, second = 10 + 2 * number, 1000 + 2 * number, 1001 + 2 * number
        log.call(f"pipe2([{fd}, {fd + 1}], 0)")
        log.start(first, "/usr/bin/cat")
        log.start(second, "/usr/bin/cat")
        pieces = max(2, passed // 65536)
        for _ in range(pieces):
            log.pause(20_000 // pieces, first)
            log.write(passed // pieces, 10, fd + 1, first)
            log.clocks[second] = log.clocks[first]
            log.read(passed // pieces, 10, fd, second)
        log.end(first)
        log.end(second)
        log.clocks[FIRST] = log.clocks[second] + 100
    found = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "process-storm")
    assert any((one.cost_share or 0) > 0.5 for one in found) == worth


@live
def test_who_sleeps_in_a_loop_goes_on_sleeping(tmp_path: Path) -> None:
    """A script waits 5 s in all: no other program saves that."""
    loop = "for n in $(seq 100); do cp /etc/hosts copy; sleep 0.05; done"
    assert record(tmp_path, "--", "sh", "-c", loop).returncode == 0
    with Store.open(tmp_path / "run.iodock") as store:
        (found,) = of_rule(diagnose(store), "process-storm")
    assert found.gain is not None
    assert 0 < found.gain.high_seconds < 2.5
