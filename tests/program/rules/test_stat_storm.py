"""Tests the rule `stat-storm`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from metadata_faults import made
from metadata_log import Trace, of_log


@pytest.mark.parametrize(("folders", "found"), [(1, True), (1200, False)])
def test_repeated_readlinks_count_as_stats(tmp_path: Path, folders: int, found: bool) -> None:
    def write(log: Trace) -> None:
        for number in range(1200):
            name = f"/data/a{number % folders}"
            log.call(f'readlink("{name}", 0x7f, 1023)', "-1 EINVAL (Invalid argument)", 20)

    assert bool(of_rule(of_log(tmp_path, write), "stat-storm")) == found


@pytest.mark.parametrize(("program", "found"), [("/opt/bin/solver", True), ("/usr/bin/cc1", False)])
def test_compilers_may_query_the_paths_of_included_files(tmp_path: Path, program: str, found: bool) -> None:
    def write(log: Trace) -> None:
        log.call(f'execve("{program}", ["{program}"], 0x7f /* 9 vars */)')
        log.call('newfstatat(AT_FDCWD, "/data/include", {st_mode=S_IFDIR|0755, st_size=9, ...}, 0)', "0", 20)
        for _ in range(1200):
            log.call('readlink("/data/include", 0x7f, 1023)', "-1 EINVAL (Invalid argument)", 20)

    assert bool(of_rule(of_log(tmp_path, write), "stat-storm")) == found


def test_folders_that_python_searches_at_imports_are_not_reported(tmp_path: Path) -> None:
    def imports(log: Trace) -> None:
        for number in range(500):
            for folder in ("/home/me/project", "/opt/conda/lib/python3.11"):
                log.call(f'stat("{folder}", {{st_mode=S_IFDIR|0755, st_size=5, ...}})', "0", 300)
            log.open(f"/opt/conda/lib/python3.11/m{number}.pyc")
            log.close()

    assert not of_rule(diagnosed(made(imports, tmp_path)), "stat-storm")


def test_a_folder_that_python_queries_in_a_loop_is_reported(tmp_path: Path) -> None:
    def polls(log: Trace) -> None:
        for number in range(1001):
            for folder in ("/home/me/out", "/opt/conda/lib/python3.11")[: 1 if number else 2]:
                log.call(f'stat("{folder}", {{st_mode=S_IFDIR|0755, st_size=5, ...}})', "0", 300)

    (found,) = of_rule(diagnosed(made(polls, tmp_path)), "stat-storm")
    assert found.files == ("/home/me/out",)


@pytest.mark.parametrize(("took_us", "severity"), [(1, Severity.NOTE), (10, Severity.LOW)])
def test_a_cost_of_a_millisecond_gives_a_note(tmp_path: Path, took_us: int, severity: Severity) -> None:
    """Both costs are two hundredths of the run, but a saving below `least_seconds` gives only a note."""
    log = Trace()
    for number in range(1200):
        name = f"/data/in{number % 2}"
        log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size=5, ...}})', "0", took_us)
    (found,) = of_rule(diagnosed(log.imported(tmp_path, took_us * 60_000)), "stat-storm")
    assert found.severity is severity
