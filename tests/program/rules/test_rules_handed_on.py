"""Faults that are handed on: to other threads, to a file's next name, through a pipe; waiting for cold files;
what single calls that hung leave of a cost; and neighbours without fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iodock.program.findings import Diagnosis
from iodock.program.rules import pipe_bound
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20
THREAD = "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD)"


def of_log(folder: Path, write: Callable[[Trace], None], wall_us: int = 1) -> Diagnosis:
    log = Trace()
    write(log)
    return diagnosed(log.imported(folder, wall_us))


def blamed(diagnosis: Diagnosis) -> list[str]:
    return [one.rule for one in diagnosis.worth_changing]


def look_in_vain(log: Trace, took_us: int) -> None:
    log.open_missing("/data/local/part", took_us)


def ask(log: Trace, took_us: int) -> None:
    log.call('stat("/data/part", {st_mode=S_IFREG|0644, st_size=9, ...})', "0", took_us)


def append(log: Trace, took_us: int) -> None:
    log.open("/data/log", flags="O_WRONLY|O_APPEND", took_us=took_us)
    log.write(20, 1)
    log.close(1)


@pytest.mark.parametrize(
    ("each", "rule"),
    [(look_in_vain, "failed-open-storm"), (ask, "stat-storm"), (append, "open-close-loop")],
    ids=["in vain", "asked", "appended"],
)
@pytest.mark.parametrize(("usual_us", "found"), [(40, True), (1, False)], ids=["as well", "alone"])
def test_a_call_that_hung_explains_its_own_time_only(
    tmp_path: Path, each: Callable[[Trace, int], None], rule: str, usual_us: int, found: bool
) -> None:
    def write(log: Trace) -> None:
        for number in range(3000):
            each(log, 400_000 if number == 1000 else usual_us)

    diagnosis = of_log(tmp_path, write, wall_us=1_200_000)
    assert "slow-call" in blamed(diagnosis)
    assert (rule in blamed(diagnosis)) == found
    if found:
        (finding,) = of_rule(diagnosis, rule)
        assert finding.cost_seconds == pytest.approx(3000 * usual_us * 1e-6, rel=0.06)


@pytest.mark.parametrize(("read_us", "found"), [(300, True), (3, False)], ids=["cold", "from memory"])
def test_each_cold_file_waits_for_its_device(tmp_path: Path, read_us: int, found: bool) -> None:
    def write(log: Trace) -> None:
        for number in range(1500):
            log.open(f"/data/part-{number:05}.rst", flags="O_RDONLY", took_us=2)
            log.read(9000, read_us)
            log.close(1)
            log.pause(500)

    diagnosis = of_log(tmp_path, write)
    assert ("tiny-file-flood" in blamed(diagnosis)) == found
    (finding,) = of_rule(diagnosis, "tiny-file-flood")
    # 45 µs: what the bytes would need at the device's rate, were they in one file.
    expected = 1500 * (3 + max(0, read_us - 45)) * 1e-6
    assert finding.cost_seconds == pytest.approx(expected, rel=0.02)


def renamed(stages: int) -> Callable[[Trace], None]:
    """Files go from folder to folder, one by one."""

    def write(log: Trace) -> None:
        for stage in range(stages):
            for number in range(600):
                old, new = (f"/data/{one}/{number}.msg" for one in (stage, stage + 1))
                log.call(f'chmod("{old}", 0640)', "0", 5)
                log.call(f'rename("{old}", "{new}")', "0", 20)

    return write


@pytest.mark.parametrize(("stages", "found"), [(4, 1), (1, 0)], ids=["from stage to stage", "once"])
def test_a_files_way_through_folders_is_all_its_own(tmp_path: Path, stages: int, found: int) -> None:
    assert len(of_rule(of_log(tmp_path, renamed(stages)), "metadata-heavy")) == found


def loop(waits: bool) -> Callable[[Trace], None]:
    """An event loop has its two helpers read pictures in turn, and computes after each or meanwhile."""

    def write(log: Trace) -> None:
        log.call("epoll_create1(EPOLL_CLOEXEC)", "9")
        for helper in (FIRST + 1, FIRST + 2):
            log.call(THREAD, str(helper))
        log.open("/data/radar", flags="O_RDONLY")
        for number in range(20):
            helper = FIRST + 1 + number % 2
            log.clocks[helper] = log.clocks[FIRST]
            log.call(f'pread64(3, ""..., {6 * MIB}, {number * 6 * MIB})', str(6 * MIB), 6000, helper)
            if waits:
                log.call("epoll_wait(9, [], 16, -1)", "0", 6000)
            log.pause(12000)

    return write


@pytest.mark.parametrize(("waits", "found"), [(True, 1), (False, 0)], ids=["in turn", "meanwhile"])
def test_an_event_loop_that_waits_for_its_helpers_takes_turns_with_them(
    tmp_path: Path, waits: bool, found: int
) -> None:
    assert len(of_rule(of_log(tmp_path, loop(waits)), "io-not-overlapped")) == found


@pytest.mark.parametrize(
    ("sync_us", "found"), [(1000, 1), (200_000, 0)], ids=["turns", "one sync at the end"]
)
def test_one_long_call_makes_no_turns(tmp_path: Path, sync_us: int, found: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/restart", flags="O_WRONLY|O_CREAT")
        for _ in range(20):
            log.write(6 * MIB, 6000)
            log.pause(9000)
        log.call("fdatasync(3)", "0", sync_us)

    assert len(of_rule(of_log(tmp_path, write), "io-not-overlapped")) == found


@pytest.mark.parametrize(("between_us", "rest_us", "found"), [(0, 200, 1), (4, 16, 0), (0, 900, 0)])
def test_who_reads_in_pieces_may_look_at_them_in_between_or_after(
    tmp_path: Path, between_us: int, rest_us: int, found: int
) -> None:
    def write(log: Trace) -> None:
        for number in range(20):
            log.open(f"/data/run-{number}", flags="O_RDONLY")
            log.call("fstat(3, {st_mode=S_IFREG|0644, st_size=6029312, ...})", "0", 1)
            for _ in range(46):
                log.read(131072, 20)
                log.pause(between_us)
            log.close(1)
            log.pause(rest_us)

    assert len(of_rule(of_log(tmp_path, write), "whole-file-for-a-few-bytes")) == found


@pytest.mark.parametrize(
    ("cpu_ns", "wall_ns", "passed"),
    [(40_000_000, 150_000_000, True), (400_000_000, 700_000_000, False), (90_000_000, 700_000_000, True)],
    ids=["a program's start", "each byte is looked at", "hardly any of the run"],
)
def test_what_programs_start_with_is_no_work_on_what_they_pass_on(
    cpu_ns: int, wall_ns: int, passed: bool
) -> None:
    row = {"cpu_ns": cpu_ns, "bytes": 400_000_000, "read_bytes": 200_000_000}
    assert pipe_bound._is_passed_on(row, wall_ns, pipe_bound.Settings()) == passed
