"""Tests the rule `directory-scan-storm`: when it gives a finding, its count and cost, and when it gives
none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from iodock.program.findings import Diagnosis
from metadata_log import FIRST, Trace, of_log


@pytest.mark.parametrize(
    ("root", "times", "found"), [("/data", 6, True), ("/data", 3, False), ("/sys/devices", 6, False)]
)
def test_repeated_listings_of_a_directory_tree_are_found(
    tmp_path: Path, root: str, times: int, found: bool
) -> None:
    def write(log: Trace) -> None:
        for _ in range(times):
            for number in range(30):
                log.open(f"{root}/d{number}", flags="O_RDONLY|O_DIRECTORY", took_us=20)
                log.call("getdents64(3, 0x7f /* 90 entries */, 32768)", "2880", 100)
                log.call("getdents64(3, 0x7f /* 0 entries */, 32768)", "0", 5)
                log.close()

    assert bool(of_rule(of_log(tmp_path, write), "directory-scan-storm")) == found


def test_tools_may_list_a_tree_several_times(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        log.call('execve("/usr/bin/git", ["git", "gc"], 0x7f /* 9 vars */)')
        for _ in range(6):
            for number in range(30):
                log.open(f"/data/d{number}", flags="O_RDONLY|O_DIRECTORY", took_us=20)
                log.call("getdents64(3, 0x7f /* 90 entries */, 32768)", "2880", 100)
                log.close()

    assert not of_rule(of_log(tmp_path, write), "directory-scan-storm")


def listed_by_many(folder: Path, listings: int) -> Diagnosis:
    """Diagnoses 60 short processes of one program that each list the same folder."""
    log = Trace()
    for number in range(60):
        pid = FIRST + 1 + number
        log.start(pid, "/usr/bin/tally")
        for _ in range(listings):
            log.open("/data/in", flags="O_RDONLY|O_DIRECTORY", took_us=50, pid=pid)
            for result in ("32768",) * 59 + ("0",):
                log.call("getdents64(3, 0x7f /* 900 entries */, 32768)", result, 90, pid)
            log.close(pid=pid)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid]
    return diagnosed(log.imported(folder))


def test_short_processes_that_list_the_same_folder_are_found(tmp_path: Path) -> None:
    assert blamed(listed_by_many(tmp_path, 1)) == ["directory-scan-storm"]


def listed_in_sub_shells(folder: Path, listed: str) -> Diagnosis:
    """Diagnoses a shell that runs `n=$(ls LISTED

    wc -l)` sixty times."""
    log = Trace()
    log.call('execve("/usr/bin/dash", ["dash"], 0x7f /* 9 vars */)')
    for number in range(60):
        shell, ls = FIRST + 1 + 2 * number, FIRST + 2 + 2 * number
        log.start(shell)
        log.start(ls, "/usr/bin/ls", parent=shell)
        log.open(listed, flags="O_RDONLY|O_DIRECTORY", took_us=50, pid=ls)
        log.call("getdents64(3, 0x7f /* 900 entries */, 32768)", "32768", 3000, ls)
        log.call("getdents64(3, 0x7f /* 0 entries */, 32768)", "0", 5, ls)
        log.close(pid=ls)
        log.pause(2000, ls)
        log.end(ls)
        log.clocks[shell] = log.clocks[ls]
        log.end(shell)
        log.clocks[FIRST] = log.clocks[shell]
    return diagnosed(log.imported(folder))


def test_repeated_listings_by_commands_of_subshells_are_found(tmp_path: Path) -> None:
    diagnosis = listed_in_sub_shells(tmp_path, "/data/in")
    (found,) = of_rule(diagnosis, "directory-scan-storm")
    assert found.evidence["scans"] == 60
    assert found.cost_seconds == pytest.approx(59 * 0.003055, rel=0.01)
    assert of_rule(diagnosis, "process-storm")


def test_commands_may_list_the_folder_of_their_modules(tmp_path: Path) -> None:
    diagnosis = listed_in_sub_shells(tmp_path, "/data/tools/lib/site-packages")
    assert not of_rule(diagnosis, "directory-scan-storm")
