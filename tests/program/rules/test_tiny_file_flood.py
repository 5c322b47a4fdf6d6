"""Tests the rule `tiny-file-flood`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

import itertools
import string
from pathlib import Path
from typing import Any

import pytest

from diagnosing import blamed, diagnosed, of_rule
from iodock.program.findings import Diagnosis
from iodock.program.store import Store
from metadata_log import FIRST, Trace, finding_of, of_log

LETTERS = ["x" + "".join(three) for three in itertools.product(string.ascii_lowercase, repeat=3)]
FILES, EPOCHS, SIZE = 600, 4, 3200


@pytest.mark.parametrize(("folder", "found"), [("case{0}", True), ("{1}", False)])
def test_numbered_folders_count_as_numbered_files(tmp_path: Path, folder: str, found: bool) -> None:
    def write(log: Trace) -> None:
        for number in range(600):
            letters = "".join(chr(ord("a") + number // 26**place % 26) for place in range(3))
            name = f"/data/{folder.format(number, letters)}/result.txt"
            log.open(name, flags="O_WRONLY|O_CREAT", took_us=100)
            log.write(60, 10)
            log.close()

    assert bool(of_rule(of_log(tmp_path, write), "tiny-file-flood")) == found


@pytest.mark.parametrize(("read_us", "found"), [(300, True), (3, False)], ids=["cold", "from memory"])
def test_each_uncached_tiny_file_waits_for_its_device(tmp_path: Path, read_us: int, found: bool) -> None:
    def write(log: Trace) -> None:
        for number in range(1500):
            log.open(f"/data/part-{number:05}.rst", flags="O_RDONLY", took_us=2)
            log.read(9000, read_us)
            log.close(1)
            log.pause(500)

    diagnosis = of_log(tmp_path, write)
    assert ("tiny-file-flood" in blamed(diagnosis)) == found
    (finding,) = of_rule(diagnosis, "tiny-file-flood")
    # In one file, the same bytes would take 45 µs at the rate of the device.
    expected = 1500 * (3 + max(0, read_us - 45)) * 1e-6
    assert finding.cost_seconds == pytest.approx(expected, rel=0.02)


def files_named(folder: Path, names: list[str]) -> Diagnosis:
    log = Trace()
    for name in names:
        log.open(f"/data/pieces/{name}", took_us=300, flags="O_WRONLY|O_CREAT|O_EXCL")
        log.write(100, 10)
        log.close(50)
    return diagnosed(log.imported(folder))


def test_files_numbered_with_letters_are_a_flood(tmp_path: Path) -> None:
    assert blamed(files_named(tmp_path, LETTERS[:600])) == ["tiny-file-flood"]


def test_files_with_unrelated_names_are_not_a_flood(tmp_path: Path) -> None:
    own = [name * (1 + number % 3) for number, name in enumerate(LETTERS[:600])]
    assert "tiny-file-flood" not in blamed(files_named(tmp_path, own))


def loads_each_epoch(log: Trace) -> None:
    """Adds reads of many files in every epoch, as `numpy.load` does: the whole file, then all but the
    header."""
    for _ in range(EPOCHS):
        for number in range(FILES):
            log.open(f"/data/img{number:04d}.npy", took_us=50, flags="O_RDONLY")
            log.call(f"fstat(3, {{st_mode=S_IFREG|0644, st_size={SIZE}, ...}})", "0", 5)
            log.read(SIZE, 5)
            log.call("lseek(3, 128, SEEK_SET)", "128", 1)
            log.read(SIZE - 128, 5)
            log.close(20)


def asked(path: Path, sql: str) -> dict[str, Any]:
    with Store.open(path) as store:
        return store.rows(sql)[0]


def test_tiny_files_are_reported_with_opens_and_size(tmp_path: Path) -> None:
    found, path = finding_of(loads_each_epoch, "tiny-file-flood", tmp_path)
    truth = asked(
        path,
        """SELECT count(DISTINCT file) AS files, count(*) FILTER (WHERE family = 'open') AS opens,
  count(*) FILTER (WHERE class = 'metadata') AS calls FROM call_ends WHERE file LIKE '/data/%'""",
    )
    assert truth["opens"] == FILES * EPOCHS
    assert found.message.values == pytest.approx({**truth, "mean_bytes": SIZE})


@pytest.mark.parametrize(
    ("each", "size", "found"),
    [(600, 60, True), (150, 60, False), (600, 100_000, False)],
    ids=["each rank writes many", "ranks are many", "large files"],
)
def test_tiny_files_of_several_ranks_are_found(tmp_path: Path, each: int, size: int, found: bool) -> None:
    log = Trace(clocks={FIRST + number: 0 for number in range(4)})
    for number in range(4):
        pid = FIRST + number
        for step in range(each):
            log.open(f"/data/cell{step:04d}.{number}", flags="O_WRONLY|O_CREAT", took_us=200, pid=pid)
            log.write(size, 20, pid=pid)
            log.close(100, pid=pid)
        log.end(pid)
    diagnosis = diagnosed(log.imported(tmp_path, ranks=4))
    assert bool(of_rule(diagnosis, "tiny-file-flood")) == found
    assert of_rule(diagnosis, "file-per-process")
