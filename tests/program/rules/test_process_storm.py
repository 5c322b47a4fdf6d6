"""Tests the rule `process-storm`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from iodock.program.diagnosis import diagnose
from iodock.program.store import Store
from metadata_faults import ENOENT, made
from metadata_log import FIRST, Trace, of_log
from recorded import live, record


@pytest.mark.parametrize(
    ("sync_us", "rules"), [(3000, ["sync-heavy"]), (300, ["process-storm", "sync-heavy"])]
)
def test_the_cost_of_a_command_loop_includes_only_process_starts(
    tmp_path: Path, sync_us: int, rules: list[str]
) -> None:
    def write(log: Trace) -> None:
        for pid in range(1000, 1100):
            log.start(pid, "/usr/bin/dd")
            log.pause(1500, pid)
            log.open("/data/log", flags="O_WRONLY|O_APPEND", pid=pid)
            log.write(40, 5, pid=pid)
            log.call("fsync(3)", "0", sync_us, pid)
            log.end(pid)
            log.clocks[FIRST] = log.clocks[pid]

    diagnosis = of_log(tmp_path, write)
    assert [one for one in blamed(diagnosis) if one in ("process-storm", "sync-heavy")] == rules
    for storm in of_rule(diagnosis, "process-storm"):
        assert storm.cost_seconds == pytest.approx(100 * 1505e-6, rel=0.05)


def starts(log: Trace, pid: int, program: str, parent: int = FIRST) -> None:
    log.start(pid, program, parent)
    log.open_missing("/etc/settings", 200, pid)
    log.pause(1000, pid)
    log.end(pid)
    log.clocks[parent] = log.clocks[pid]


def mixed(kinds: int, times: int) -> Callable[[Trace], None]:
    def write(log: Trace) -> None:
        log.call('execve("/bin/sh", ["sh", "run.sh"], 0x7f /* 9 vars */)')
        for number in range(kinds * times):
            starts(log, FIRST + 1 + number, f"/usr/bin/tool{number % kinds}")

    return write


def nested(log: Trace) -> None:
    log.call('execve("/bin/sh", ["sh", "run.sh"], 0x7f /* 9 vars */)')
    for pass_ in range(20):
        shell = FIRST + 1 + 10 * pass_
        log.start(shell, "/bin/sh")
        for number in range(3):
            starts(log, shell + 1 + number, f"/usr/bin/tool{number}", shell)
        log.end(shell)
        log.clocks[FIRST] = log.clocks[shell]


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (mixed(4, 20), True),
        (nested, True),
        (mixed(80, 1), False),
        (mixed(10, 8), False),
        (mixed(4, 10), False),
    ],
    ids=["a few commands", "a shell with commands", "each once", "each some times", "few passes"],
)
def test_a_loop_may_start_several_programs(
    tmp_path: Path, write: Callable[[Trace], None], found: bool
) -> None:
    assert bool(of_rule(of_log(tmp_path, write), "process-storm")) == found


def started(log: Trace, count: int, modules: int, start_us: int, work_us: int) -> None:
    """Adds COUNT successive commands that each load MODULES and then work."""
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
        (25, 40, 150_000, 300_000, False),
    ],
    ids=["an interpreter's", "too few", "they work for longer"],
)
def test_few_slow_process_starts_are_found(
    tmp_path: Path, count: int, modules: int, start_us: int, work_us: int, found: bool
) -> None:
    log = Trace()
    started(log, count, modules, start_us, work_us)
    findings = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "process-storm")
    assert [one.message.values["processes"] for one in findings] == ([count] if found else [])


@pytest.mark.parametrize(
    ("work_us", "at_once"), [(300_000, False), (20_000, True)], ids=["a late library", "side by side"]
)
def test_late_and_parallel_loading_is_not_part_of_a_start(
    tmp_path: Path, work_us: int, at_once: bool
) -> None:
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


def test_data_passed_between_pipeline_stages_is_not_part_of_a_start(tmp_path: Path) -> None:
    log = Trace()
    for number in range(30):
        fd, first, second = 10 + 2 * number, 1000 + 2 * number, 1001 + 2 * number
        log.call(f"pipe2([{fd}, {fd + 1}], 0)")
        log.start(first, "/usr/bin/cat")
        log.start(second, "/usr/bin/cat")
        for _ in range(40):
            log.pause(500, first)
            log.write(65536, 10, fd + 1, first)
            log.clocks[second] = log.clocks[first]
            log.read(65536, 10, fd, second)
        log.end(first)
        log.end(second)
        log.clocks[FIRST] = log.clocks[second] + 100
    assert "process-storm" not in blamed(diagnosed(log.imported(tmp_path, wall_us=1)))


@live
def test_savings_exclude_sleeps_in_the_loop(tmp_path: Path) -> None:
    """The script sleeps 3 s in total, which no change of the loop would save."""
    loop = "for n in $(seq 60); do cp /etc/hosts copy; sleep 0.05; done"
    assert record(tmp_path, "--", "sh", "-c", loop).returncode == 0
    with Store.open(tmp_path / "run.iodock") as store:
        (found,) = of_rule(diagnose(store), "process-storm")
    assert found.gain is not None
    assert found.gain.of_seconds is not None
    assert 0 < found.gain.high_seconds <= 1.5 * (found.gain.of_seconds - 3)


def test_costs_of_process_starts_are_reported_only_by_the_process_storm(tmp_path: Path) -> None:
    """A case of Kyoto: each process of the loop fails to open the loader's file. The finding names the loop,
    not the file."""
    log = Trace()
    for number in range(400):
        pid = 1000 + number
        log.start(pid, "/usr/bin/cat")
        log.call('access("/etc/ld.so.preload", R_OK)', ENOENT, 500, pid)
        log.call('open("/etc/ld.config", O_RDONLY)', ENOENT, 500, pid)
        log.end(pid)
        log.pause(1000)
    diagnosis = diagnosed(log.imported(tmp_path))
    (found,) = diagnosis.worth_changing
    assert found.rule == "process-storm"
    assert (found.evidence["processes"], found.evidence["missed"]) == (400, 800)
    assert found.cost_seconds == pytest.approx(0.4, rel=0.01)


def forks_again(log: Trace) -> None:
    log.call('execve("/opt/bin/solver", ["solver"], 0x7f /* 9 vars */)')
    for number in range(400):
        log.start(1000 + number)
        log.open("/data/in", pid=1000 + number, took_us=1000)
        log.end(1000 + number)
        log.pause(1500)


def test_forked_processes_are_named_after_their_parent(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(made(forks_again, tmp_path)), "process-storm")
    assert found.evidence["programs"] == "solver (fork)"


def test_short_processes_without_listings_are_a_process_storm(tmp_path: Path) -> None:
    log = Trace()
    for number in range(60):
        pid = FIRST + 1 + number
        log.start(pid, "/usr/bin/tally")
        log.open("/data/in.cfg", flags="O_RDONLY", took_us=5000, pid=pid)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid]
    assert blamed(diagnosed(log.imported(tmp_path))) == ["process-storm"]
