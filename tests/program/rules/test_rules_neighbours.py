"""Faults that look like another: which of two rules speaks, and that the other leaves it."""

from __future__ import annotations

import itertools
import string
from pathlib import Path

import pytest

from iodock.program.findings import Diagnosis, Severity
from metadata_log import FIRST, Trace, diagnosed, of_rule


def blamed(diagnosis: Diagnosis) -> list[str]:
    return [one.rule for one in diagnosis.worth_changing]


def files_named(folder: Path, names: list[str]) -> Diagnosis:
    log = Trace()
    for name in names:
        log.open(f"/data/pieces/{name}", took_us=300, flags="O_WRONLY|O_CREAT|O_EXCL")
        log.write(100, 10)
        log.close(50)
    return diagnosed(log.imported(folder))


LETTERS = ["x" + "".join(three) for three in itertools.product(string.ascii_lowercase, repeat=3)]


def test_files_that_are_numbered_by_letters_are_a_flood(tmp_path: Path) -> None:
    assert blamed(files_named(tmp_path, LETTERS[:600])) == ["tiny-file-flood"]


def test_files_with_names_of_their_own_are_no_flood(tmp_path: Path) -> None:
    own = [name * (1 + number % 3) for number, name in enumerate(LETTERS[:600])]
    assert "tiny-file-flood" not in blamed(files_named(tmp_path, own))


def listed_by_many(folder: Path, listings: int) -> Diagnosis:
    """60 short processes of one program that each list the same folder."""
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


def test_short_processes_that_list_the_same_folder_scan_it(tmp_path: Path) -> None:
    assert blamed(listed_by_many(tmp_path, 1)) == ["directory-scan-storm"]


def test_short_processes_that_list_nothing_are_a_storm(tmp_path: Path) -> None:
    log = Trace()
    for number in range(60):
        pid = FIRST + 1 + number
        log.start(pid, "/usr/bin/tally")
        log.open("/data/in.cfg", flags="O_RDONLY", took_us=5000, pid=pid)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid]
    assert blamed(diagnosed(log.imported(tmp_path))) == ["process-storm"]


def opened_anew(folder: Path, opens: int, written: int) -> Diagnosis:
    """Two hundred files: each OPENS times emptied (long), written and changed in mode, owner and name."""
    log = Trace()
    for number in range(200):
        for _ in range(opens):
            log.open(f"/data/state{number}", took_us=2000 // opens, flags="O_WRONLY|O_CREAT|O_TRUNC")
            log.write(written, 20)
            for _ in range(8):
                log.call("fchmod(3, 0644)", "0", 1)
            log.close(1)
    return diagnosed(log.imported(folder))


@pytest.mark.parametrize(
    ("opens", "written", "found"), [(2, 1 << 17, False), (2, 4096, True), (1, 1 << 17, True)]
)
def test_opens_that_empty_a_large_file_are_no_metadata(
    tmp_path: Path, opens: int, written: int, found: bool
) -> None:
    assert bool(of_rule(opened_anew(tmp_path, opens, written), "metadata-heavy")) == found


def test_what_is_written_again_and_read_back_is_read_after_write(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/state", flags="O_RDWR|O_CREAT")
    for _ in range(400):
        log.call('pwrite64(3, ""..., 65536, 0)', "65536", 500)
        log.call('pread64(3, ""..., 65536, 0)', "65536", 300)
    rules = blamed(diagnosed(log.imported(tmp_path)))
    assert rules[0] == "read-after-write" and "redundant-writes" not in rules


@pytest.mark.parametrize(("took_us", "severity"), [(1, Severity.NOTE), (10, Severity.LOW)])
def test_what_costs_a_millisecond_is_a_note(tmp_path: Path, took_us: int, severity: Severity) -> None:
    """Both are two hundredths of the run, but nobody gains from less than `least_seconds`."""
    log = Trace()
    for number in range(1200):
        name = f"/data/in{number % 2}"
        log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size=5, ...}})', "0", took_us)
    (found,) = of_rule(diagnosed(log.imported(tmp_path, took_us * 60_000)), "stat-storm")
    assert found.severity is severity
