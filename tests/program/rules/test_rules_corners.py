"""Faults in shapes that are off the beaten track: spread over names, folders, programs and workers, in runs
of a few calls; and neighbours without fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iodock.program.findings import Diagnosis
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20
MISSING = "-1 ENOENT (No such file or directory)"


def of_log(folder: Path, write: Callable[[Trace], None], wall_us: int = 1) -> Diagnosis:
    log = Trace()
    write(log)
    return diagnosed(log.imported(folder, wall_us))


def blamed(diagnosis: Diagnosis) -> list[str]:
    return [one.rule for one in diagnosis.worth_changing]


def asks(names: list[str], times: int, come: bool = False) -> Callable[[Trace], None]:
    def write(log: Trace) -> None:
        for _ in range(times):
            for name in names:
                log.call(f'newfstatat(AT_FDCWD, "{name}", 0x7f, 0)', MISSING, 20)
        for name in names if come else ():
            log.call(f'newfstatat(AT_FDCWD, "{name}", {{st_mode=S_IFREG|0644, st_size=9, ...}}, 0)', "0", 20)

    return write


@pytest.mark.parametrize(
    ("names", "times", "come", "rule"),
    [
        ([f"/cache/key{n}" for n in range(40)], 30, False, "failed-open-storm"),
        ([f"/opt/{n}/bin/tool" for n in "abcde"], 300, False, "failed-open-storm"),
        ([f"/data/done.{n}" for n in range(40)], 30, True, "stat-storm"),
        (["/data/STOP"], 1200, False, "stat-storm"),
        ([f"/data/mark{n}" for n in range(12)], 100, False, "stat-storm"),
    ],
    ids=["many names", "search path", "what comes in the end", "one name", "often"],
)
def test_who_asks_for_many_names_in_vain_does_not_wait(
    tmp_path: Path, names: list[str], times: int, come: bool, rule: str
) -> None:
    assert blamed(of_log(tmp_path, asks(names, times, come))) == [rule]


@pytest.mark.parametrize(("program", "found"), [(None, True), ("/opt/bin/step", False)])
def test_forked_workers_look_for_files_together(tmp_path: Path, program: str | None, found: bool) -> None:
    def write(log: Trace) -> None:
        for pid in range(FIRST + 1, FIRST + 5):
            log.start(pid, program)
            for number in range(300):
                log.open_missing(f"/data/part{pid}-{number}", 20, pid)
            log.end(pid)

    assert bool(of_rule(of_log(tmp_path, write), "failed-open-storm")) == found


@pytest.mark.parametrize(("folders", "found"), [(1, True), (1200, False)])
def test_links_that_are_asked_for_again_count_as_stats(tmp_path: Path, folders: int, found: bool) -> None:
    def write(log: Trace) -> None:
        for number in range(1200):
            name = f"/data/a{number % folders}"
            log.call(f'readlink("{name}", 0x7f, 1023)', "-1 EINVAL (Invalid argument)", 20)

    assert bool(of_rule(of_log(tmp_path, write), "stat-storm")) == found


@pytest.mark.parametrize(("program", "found"), [("/opt/bin/solver", True), ("/usr/bin/cc1", False)])
def test_compilers_follow_the_paths_of_what_they_include(tmp_path: Path, program: str, found: bool) -> None:
    def write(log: Trace) -> None:
        log.call(f'execve("{program}", ["{program}"], 0x7f /* 9 vars */)')
        log.call('newfstatat(AT_FDCWD, "/data/include", {st_mode=S_IFDIR|0755, st_size=9, ...}, 0)', "0", 20)
        for _ in range(1200):
            log.call('readlink("/data/include", 0x7f, 1023)', "-1 EINVAL (Invalid argument)", 20)

    assert bool(of_rule(of_log(tmp_path, write), "stat-storm")) == found


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


@pytest.mark.parametrize(("together", "found"), [(True, True), (False, False)])
def test_workers_are_told_from_what_was_forked_before_them(
    tmp_path: Path, together: bool, found: bool
) -> None:
    def write(log: Trace) -> None:
        log.start(FIRST + 1)
        log.pause(500, FIRST + 1)
        log.end(FIRST + 1)
        log.pause(1000)
        for worker in range(4):
            pid = FIRST + 2 + worker
            log.start(pid)
            for step in range(60):
                log.open(f"/data/w{worker}-s{step}.out", flags="O_WRONLY|O_CREAT", took_us=100, pid=pid)
                log.write(4096, 10, pid=pid)
                log.close(pid=pid)
            log.end(pid)
            if not together:
                log.clocks[FIRST] = log.clocks[pid]

    assert bool(of_rule(of_log(tmp_path, write), "file-per-process")) == found


@pytest.mark.parametrize(("took_us", "found"), [(700_000, True), (90_000, False)])
def test_a_call_may_hang_in_a_run_of_few_calls(tmp_path: Path, took_us: int, found: bool) -> None:
    def write(log: Trace) -> None:
        log.open("/data/input", flags="O_RDONLY", took_us=took_us)
        log.read(4096, 20)

    assert bool(of_rule(of_log(tmp_path, write), "slow-call")) == found


@pytest.mark.parametrize(
    ("root", "times", "found"), [("/data", 6, True), ("/data", 3, False), ("/sys/devices", 6, False)]
)
def test_folders_of_a_tree_are_listed_again(tmp_path: Path, root: str, times: int, found: bool) -> None:
    def write(log: Trace) -> None:
        for _ in range(times):
            for number in range(30):
                log.open(f"{root}/d{number}", flags="O_RDONLY|O_DIRECTORY", took_us=20)
                log.call("getdents64(3, 0x7f /* 90 entries */, 32768)", "2880", 100)
                log.call("getdents64(3, 0x7f /* 0 entries */, 32768)", "0", 5)
                log.close()

    assert bool(of_rule(of_log(tmp_path, write), "directory-scan-storm")) == found


def test_a_tool_may_list_a_tree_more_often(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        log.call('execve("/usr/bin/git", ["git", "gc"], 0x7f /* 9 vars */)')
        for _ in range(6):
            for number in range(30):
                log.open(f"/data/d{number}", flags="O_RDONLY|O_DIRECTORY", took_us=20)
                log.call("getdents64(3, 0x7f /* 90 entries */, 32768)", "2880", 100)
                log.close()

    assert not of_rule(of_log(tmp_path, write), "directory-scan-storm")


@pytest.mark.parametrize(("folder", "found"), [("case{0}", True), ("{1}", False)])
def test_files_are_numbered_by_their_folders_too(tmp_path: Path, folder: str, found: bool) -> None:
    def write(log: Trace) -> None:
        for number in range(600):
            letters = "".join(chr(ord("a") + number // 26**place % 26) for place in range(3))
            name = f"/data/{folder.format(number, letters)}/result.txt"
            log.open(name, flags="O_WRONLY|O_CREAT", took_us=100)
            log.write(60, 10)
            log.close()

    assert bool(of_rule(of_log(tmp_path, write), "tiny-file-flood")) == found


@pytest.mark.parametrize(("processes", "found"), [(1, True), (500, False)])
def test_what_the_kernel_tells_is_opened_again(tmp_path: Path, processes: int, found: bool) -> None:
    def write(log: Trace) -> None:
        for number in range(500):
            log.open(f"/proc/{1000 + number % processes}/statm", flags="O_RDONLY", took_us=20)
            log.read(40, 20)
            log.close(took_us=5)

    assert bool(of_rule(of_log(tmp_path, write), "open-close-loop")) == found


@pytest.mark.parametrize(
    ("opened", "found"), [("dup(1)", True), ('openat(AT_FDCWD, "/data/o", O_RDWR)', False)]
)
def test_a_duplicate_of_standard_output_is_standard_output(tmp_path: Path, opened: str, found: bool) -> None:
    def write(log: Trace) -> None:
        log.call(opened, "3", 5)
        for _ in range(1500):
            log.write(40, 5)

    assert bool(of_rule(of_log(tmp_path, write), "stdout-unbuffered")) == found


def turns(size: int, io_us: int, sync_us: int, compute_us: int) -> Callable[[Trace], None]:
    def write(log: Trace) -> None:
        log.open("/data/frames", flags="O_WRONLY|O_CREAT")
        for _ in range(25):
            log.pause(compute_us)
            log.write(size, io_us)
            if sync_us:
                log.call("fsync(3)", "0", sync_us)

    return write


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (turns(2 * MIB, 4000, 0, 4000), True),
        (turns(8 * MIB, 1000, 9000, 9000), True),
        (turns(2 * MIB, 800, 0, 4000), False),
        (turns(2 * MIB, 4000, 0, 16_000), False),
    ],
    ids=["slow device", "synced", "hidden by the cache", "seldom"],
)
def test_turns_that_wait_for_a_device_could_overlap(
    tmp_path: Path, write: Callable[[Trace], None], found: bool
) -> None:
    assert bool(of_rule(of_log(tmp_path, write), "io-not-overlapped")) == found
