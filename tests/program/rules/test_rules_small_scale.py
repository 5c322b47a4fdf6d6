"""Faults in small: short turns, quick iterations, writers that meet in part, and causes on many files."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.program.capture import import_logs
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20


def turns_of(folder: Path, turns: int, size: int, io_us: int, compute_us: int) -> Path:
    log = Trace()
    log.open("/data/frames", flags="O_RDONLY|O_DIRECT")
    for _ in range(turns):
        log.read(size, io_us)
        log.pause(compute_us)
    return log.imported(folder, 1)


def test_many_short_turns_could_overlap(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(turns_of(tmp_path, 200, MIB, 500, 800)), "io-not-overlapped")
    assert found.cost_seconds == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize(
    ("turns", "size", "io_us", "compute_us"),
    [(17, MIB, 500, 800), (200, MIB // 4, 500, 800), (200, MIB, 500, 100), (200, MIB, 50, 800)],
    ids=["few", "small", "no computing", "no waiting"],
)
def test_other_short_turns_are_left_alone(
    tmp_path: Path, turns: int, size: int, io_us: int, compute_us: int
) -> None:
    assert not of_rule(diagnosed(turns_of(tmp_path, turns, size, io_us, compute_us)), "io-not-overlapped")


def lines_into(folder: Path, name: str, compute_us: int) -> Path:
    log = Trace()
    log.open(name, flags="O_WRONLY|O_CREAT")
    for _ in range(2000):
        log.pause(compute_us)
        log.write(66, 4)
    return log.imported(folder, 1)


@pytest.mark.parametrize(
    ("name", "compute_us", "rule"),
    [
        ("/data/debug.out", 12, "write-in-compute-loop"),
        ("/data/solver.dbg", 12, "write-in-compute-loop"),
        ("/data/debug/table.dat", 2, "small-requests"),
        ("/data/table.dat", 2, "small-requests"),
        ("/data/debug.out", 1, "write-in-compute-loop"),  # the name says it
        ("/data/solver.log", 1, "write-in-compute-loop"),  # so does this one: no step is too short
        ("/data/solver.log", 4, "write-in-compute-loop"),
        ("/data/solver.log", 2, "write-in-compute-loop"),  # a third of the run is computing
        ("/data/log/table.dat", 2, "small-requests"),
        ("/data/catalog.dat", 2, "small-requests"),
        ("/data/table.dat", 12, "write-in-compute-loop"),  # reads nothing: it computes what it writes
    ],
)
def test_a_name_tells_debug_output_from_small_writes(
    tmp_path: Path, name: str, compute_us: int, rule: str
) -> None:
    found = diagnosed(lines_into(tmp_path, name, compute_us)).worth_changing
    assert [one.rule for one in found] == [rule]


def appenders(folder: Path, starts_us: tuple[int, ...]) -> Path:
    """Processes that each need 10 ms for 100 lines in the same file."""
    log = Trace()
    for number, start in enumerate(starts_us):
        pid = FIRST + 1 + number
        log.start(pid)
        log.pause(start, pid)
        log.open("/data/log", flags="O_WRONLY|O_APPEND", pid=pid)
        for _ in range(100):
            log.write(4096, 100, pid=pid)
        log.close(pid=pid)
    return log.imported(folder, 20_000)


@pytest.mark.parametrize(
    ("starts_us", "meet"),
    [
        ((0, 0, 0), True),
        ((0, 5_000, 10_500), True),  # the first has gone when the last one comes
        ((0, 10_500, 21_000), False),
        ((0, 9_900, 19_800), False),
        ((0, 30_000, 32_000, 70_000), True),  # computing before it, in turns on few processors
        ((0, 30_000, 39_900, 70_000), False),
    ],
)
def test_writers_need_not_all_meet_at_once(tmp_path: Path, starts_us: tuple[int, ...], meet: bool) -> None:
    found = of_rule(diagnosed(appenders(tmp_path, starts_us)), "shared-file-contention")
    assert bool(found) == meet


def test_writers_whose_stamps_are_all_alike_need_not_meet(tmp_path: Path) -> None:
    """`strace -f -t` without -T: seconds, and no durations."""
    lines = [
        line
        for pid in (7, 8, 9)
        for line in (
            f'{pid} 10:00:0{pid} openat(AT_FDCWD, "/data/log", O_WRONLY|O_APPEND) = 3',
            *[f'{pid} 10:00:0{pid} write(3, ""..., 4096) = 4096'] * 300,
        )
    ]
    log = tmp_path / "log"
    log.write_text("\n".join(lines) + "\n")
    import_logs([str(log)], tmp_path / "run.iodock")
    assert not of_rule(diagnosed(tmp_path / "run.iodock"), "shared-file-contention")


def test_who_waits_longest_for_the_shared_file_is_no_straggler(tmp_path: Path) -> None:
    log = Trace()
    for number, took_us in enumerate((1500, 1500, 1500, 4000)):
        pid = FIRST + 1 + number
        log.start(pid)
        log.open("/data/log", flags="O_WRONLY|O_APPEND", pid=pid)
        for _ in range(100):
            log.write(4096, took_us, pid=pid)
    rules = [one.rule for one in diagnosed(log.imported(tmp_path, 1)).worth_changing]
    assert rules[0] == "shared-file-contention" and "straggler" not in rules


def test_a_cause_on_many_files_hides_its_symptom_whichever_of_them_cost_most(tmp_path: Path) -> None:
    log = Trace()
    for round_ in range(60):
        for number in range(50):
            name = f"/data/part{number}"
            log.call(f'lgetxattr("{name}", "user.x", 0x7f, 255)', "-1 ENODATA (No data available)", 200)
            if round_ < 1:
                # Which files cost most differs from rule to rule.
                log.call(f'chmod("{name}", 0644)', "0", 10 * number)
    found = [one.rule for one in diagnosed(log.imported(tmp_path, 1)).worth_changing]
    assert found == ["failed-xattr"]
