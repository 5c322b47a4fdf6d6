"""Tests the rule `failed-open-storm`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from iodock.program.findings import Severity
from iodock.shared.settings import Settings
from metadata_faults import ENOENT, made, searches_a_little
from metadata_log import FIRST, Trace, of_log

NO_LINK = "-1 EINVAL (Invalid argument)"
MISSING = "-1 ENOENT (No such file or directory)"
FOLDERS = 150


def on_the_way(come: bool, opens: bool) -> Callable[[Trace], None]:
    """Returns a program in which each look-up tries all folders of a path, as Tcl, Java and realpath() do."""

    def write(log: Trace) -> None:
        for number in range(1200):
            for folder in ("/data", "/data/run", "/data/run/texts"):
                log.call(f'readlink("{folder}", 0x7f, 1023)', NO_LINK, 30)
            name = f"/data/run/texts/{number % 400}.ja"
            if opens and come:
                log.open(name, took_us=20)
                log.read(100, 20)
                log.close(10)
            elif opens:
                log.open_missing(name, 40)

    return write


@pytest.mark.parametrize(
    ("come", "opens", "rules"),
    [(False, True, ["failed-open-storm"]), (True, True, []), (False, False, ["stat-storm"])],
    ids=["in vain", "found", "no file meant"],
)
def test_path_lookups_count_as_queries_of_the_file(
    tmp_path: Path, come: bool, opens: bool, rules: list[str]
) -> None:
    found = blamed(of_log(tmp_path, on_the_way(come, opens), wall_us=2_000_000))
    assert [one for one in found if one in ("stat-storm", "failed-open-storm")] == rules


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
        ([f"/data/done.{n}" for n in range(40)], 30, True, "stat-storm"),
        (["/data/STOP"], 1200, False, "stat-storm"),
        ([f"/data/mark{n}" for n in range(10)], 120, False, "stat-storm"),
    ],
    ids=["many names", "what comes in the end", "one name", "some names"],
)
def test_queries_of_many_missing_names_do_not_count_as_waiting(
    tmp_path: Path, names: list[str], times: int, come: bool, rule: str
) -> None:
    assert blamed(of_log(tmp_path, asks(names, times, come))) == [rule]


@pytest.mark.parametrize(("times", "found"), [(300, True), (200, False)], ids=["more", "as a start needs"])
def test_a_limited_number_of_searches_per_process_is_not_reported(
    tmp_path: Path, times: int, found: bool
) -> None:
    def write(log: Trace) -> None:
        for pid in range(FIRST + 1, FIRST + 5):
            log.start(pid)
            for number in range(times):
                log.open_missing(f"/data/part{pid}-{number}", 20, pid)
            log.end(pid)

    assert bool(of_rule(of_log(tmp_path, write), "failed-open-storm")) == found


def test_failed_opens_are_found_without_durations(tmp_path: Path) -> None:
    """The log has one process, as a table of totals does, and 318 of 1,590 opens fail on the same missing
    file."""
    log = Trace()
    for number in range(1590):
        if number % 5:
            log.open(f"/data/in{number}")
            log.close()
        else:
            log.open_missing("/etc/ld.config", 0)
    (found,) = of_rule(diagnosed(log.imported(tmp_path, durations=False)), "failed-open-storm")
    assert found.files == ("/etc/ld.config",)
    assert found.evidence["count"] == 318
    assert found.severity is Severity.LOW


def test_a_database_may_query_its_journal_repeatedly(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/run.db")
    for _ in range(3000):
        log.call('stat("/data/run.db-wal", 0x7f)', ENOENT, 50)
        log.call('stat("/data/run.db", {st_mode=S_IFREG|0644, st_size=5, ...})', "0", 50)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_thresholds_can_be_configured(tmp_path: Path) -> None:
    path = made(searches_a_little, tmp_path)
    settings = Settings(rules={"failed-open-storm": {"least_count": 100}})
    assert of_rule(diagnosed(path, settings), "failed-open-storm")


@pytest.mark.parametrize(
    "program", ["/usr/bin/git", "/usr/bin/tar", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/usr/bin/find"]
)
def test_tools_that_traverse_directories_are_not_reported(program: str, tmp_path: Path) -> None:
    log = Trace()
    log.call(f'execve("{program}", ["{program}"], 0x7f /* 9 vars */)')
    for number in range(1000):
        name = f"/data/tree/part{number}.txt"
        log.call(f'lstat("{name}", {{st_mode=S_IFREG|0644, st_size=90, ...}})', "0", 100)
        log.open_missing(f"{name}.attributes", 100)
        log.open(name, took_us=200)
        log.read(90, 10)
        log.close(50)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def loads(log: Trace, pid: int, names: list[str], took_us: int) -> None:
    """Adds the calls of a loader that tries each library in each folder until it finds it."""
    for name in names:
        for number in range(FOLDERS):
            log.open_missing(f"/apps/p{number}/lib/{name}", took_us, pid=pid)
        log.open(f"/lib/x86_64-linux-gnu/{name}", flags="O_RDONLY|O_CLOEXEC", pid=pid)
        log.close(pid=pid)


def runs(program: str, times: int, names: list[str], folder: Path, took_us: int = 20) -> Path:
    log = Trace()
    for number in range(times):
        pid = FIRST + 1 + number
        log.start(pid, program)
        loads(log, pid, names, took_us)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid]
    return log.imported(folder, wall_us=1)


@pytest.mark.parametrize("program", ["/bin/ls", "/usr/bin/gcc", "/home/me/tiny"])
def test_a_long_library_search_path_is_found_in_any_program(tmp_path: Path, program: str) -> None:
    names = ["libselinux.so.1", "libc.so.6"]
    diagnosis = diagnosed(runs(program, 6, names, tmp_path))
    (found,) = of_rule(diagnosis, "failed-open-storm")
    assert diagnosis.worth_changing == (found,)
    values = found.message.values
    assert (values["variable"], values["folders"], values["never"]) == ("LD_LIBRARY_PATH", FOLDERS, FOLDERS)
    assert values["count"] == 6 * len(names) * FOLDERS
    assert found.files[0].startswith("/apps/p")
    assert found.advice[0].message.values == {"variable": "LD_LIBRARY_PATH"}


def test_a_long_search_path_is_reported_with_the_process_storm(tmp_path: Path) -> None:
    diagnosis = diagnosed(runs("/home/me/tiny", 60, ["libm.so.6"], tmp_path))
    assert {"failed-open-storm", "process-storm"} <= {one.rule for one in diagnosis.worth_changing}


@pytest.mark.parametrize("name", ["libmesh.so", "mesh.h", "README"])
def test_searches_of_a_tool_for_its_own_files_are_not_reported(tmp_path: Path, name: str) -> None:
    assert not of_rule(diagnosed(runs("/usr/bin/ld", 6, [name], tmp_path)), "failed-open-storm")
