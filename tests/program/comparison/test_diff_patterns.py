"""Tests iodock diff with many files: name patterns, and changes that are too small to be called slower."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from diff_stores import ENGLISH, HOSTILE, run, written
from in_process import iodock
from iodock.program.comparison import compare
from iodock.program.views.diff_html import diff_html
from iodock.program.views.diff_text import diff_text
from iodock.shared.language import language_in
from recorded import live, record
from strace_log import Log


def images(path: Path, each: float, slow: float = 0.0) -> str:
    """Imports a run that reads 40 files of 4 classes, one of which takes SLOW seconds more."""
    log = Log()
    for number in range(40):
        name = f"/d/imgs/class{number % 4}/{number}.npy"
        log.open(name)
        log.move("read", name, 2, 100, each + (slow if number == 7 else 0.0))
    written(log, "/d/out.log", 10, 1.0)
    log.compute(5.0)
    return log.store(path)


def test_many_files_of_a_pattern_share_a_row(tmp_path: Path) -> None:
    before, after = images(tmp_path / "a.iodock", 0.1), images(tmp_path / "b.iodock", 0.05)
    found = compare([before], [after])
    (row,) = found.faster.rows
    assert (row.name, row.matched, row.files) == ("/d/imgs/class*/*.npy", "pattern", (40, 40))
    assert row.changes["total_time_ns"].difference == pytest.approx(-2e9)
    assert (row.changes["count"].before, row.calls[0].name) == (120, "read")
    assert (found.faster.of, found.faster.files, found.slower.of, found.noise.files) == (1, 40, 0, 0)
    text = " ".join(diff_text(found, ENGLISH, False).split())
    assert "gained 2 s (files: 40)" in text and "/d/imgs/class*/*.npy (40 files) 4 s 2 s" in text
    assert "/d/imgs/class*/*.npy" in diff_html(found, ENGLISH)


@pytest.mark.whole
def test_files_are_listed_below_their_pattern(tmp_path: Path) -> None:
    before, after = images(tmp_path / "a.iodock", 0.1), images(tmp_path / "b.iodock", 0.05, slow=0.5)
    found = compare([before], [after], by_pattern=False)
    # The other 39 files became 2 s faster together, but each by less than the noise.
    assert (found.faster.of, found.slower.of, found.noise.files) == (0, 1, 39)
    assert found.slower.rows[0].name == "/d/imgs/class3/7.npy"
    done = iodock("diff", before, after, "--by", "file", "--quiet")
    assert "class3/7.npy" in done.stdout and "class*" not in done.stdout
    # Tables of all files list the files one by one.
    for by, count in ((), 41), (("--by", "pattern"), 2):
        done = iodock("diff", before, after, "--format", "csv", *by)
        assert len(list(csv.DictReader(io.StringIO(done.stdout)))) == count
    document = json.loads(iodock("diff", before, after, "--format", "json").stdout)
    (row,) = document["faster"]["rows"]
    assert (row["file"], row["files_before"], document["faster"]["files"]) == (
        "/d/imgs/class*/*.npy",
        40,
        40,
    )


def test_files_that_only_one_run_has_join_their_pattern(tmp_path: Path) -> None:
    before, after = Log(), Log()
    for log, count in ((before, 3), (after, 6)):
        for number in range(count):
            written(log, f"/w/part.{number}", 2, 1.0)
    found = compare([before.store(tmp_path / "a.iodock")], [after.store(tmp_path / "b.iodock")])
    assert [(row.name, row.files) for row in found.slower.rows] == [("/w/part.*", (3, 6))]
    assert found.slower.rows[0].changes["total_time_ns"].difference == pytest.approx(3e9)


def test_hostile_names_may_share_a_pattern(tmp_path: Path) -> None:
    first, second = Log(), Log()
    for log, took in ((first, 1.0), (second, 2.0)):
        for name in HOSTILE:
            for number in range(4):
                written(log, f"{name}{number}", 2, took)
    found = compare([first.store(tmp_path / "a.iodock")], [second.store(tmp_path / "b.iodock")])
    assert {row.files for row in found.slower.rows} == {(4, 4)}
    assert found.slower.of == len(HOSTILE)
    assert "/d/[[]bold][*][?]*" in {row.name for row in found.slower.rows}


@pytest.mark.parametrize(
    ("before_s", "after_s", "is_noise"),
    [
        # The difference is below or above 10 % of the file's time.
        (2.0, 2.19, True),
        (2.0, 2.3, False),
        # The difference is below or above 1 % of the run of 10 s.
        (0.01, 0.09, True),
        (0.01, 0.12, False),
    ],
)
def test_differences_within_the_noise_are_not_listed(
    tmp_path: Path, before_s: float, after_s: float, is_noise: bool
) -> None:
    stores = [run(tmp_path / f"{one}.iodock", out=one, same=1.0) for one in (before_s, after_s)]
    for sides, listed in ((stores, "slower"), (stores[::-1], "faster")):
        found = compare([sides[0]], [sides[1]])
        listing = found.slower if listed == "slower" else found.faster
        assert listing.of == (not is_noise)
        assert (found.noise.files, found.same_files) == (int(is_noise), 1)
        text = " ".join(diff_text(found, ENGLISH, False).split())
        assert ("Within noise: 1 file, " in text) == is_noise
        # The list is the same in every language and format.
        assert ("100 ms" in diff_html(found, language_in("ja"))) == is_noise


def test_one_second_exceeds_the_noise_in_a_long_run(tmp_path: Path) -> None:
    stores = [run(tmp_path / f"{one}.iodock", wall=5000.0, out=one) for one in (1.0, 2.5)]
    assert compare([stores[0]], [stores[1]]).slower.of == 1


def test_changes_of_calls_that_cancel_out_are_listed(tmp_path: Path) -> None:
    stores = []
    for name, read_s in (("a", 1.0), ("b", 3.0)):
        log = Log()
        written(log, "/d/both", 10, 4.0 - read_s)
        log.move("read", "/d/both", 10, 100, read_s + 0.001)
        stores.append(log.store(tmp_path / f"{name}.iodock"))
        log.compute(1.0)
    found = compare([stores[0]], [stores[1]])
    assert found.faster.of + found.slower.of + found.same_files == 1 and found.noise.files == 0


def test_numbers_of_calls_are_compared_without_noise(tmp_path: Path) -> None:
    stores = []
    for name, count in (("a", 100), ("b", 101)):
        log = Log(durations=False)
        written(log, "/d/out", count, 1.0)
        stores.append(log.store(tmp_path / f"{name}.iodock"))
    found = compare([stores[0]], [stores[1]])
    assert (found.slower.of, found.noise.files, found.noise.least_ns) == (1, 0, 0)


def test_two_equal_stores_have_no_noise(tmp_path: Path) -> None:
    store = images(tmp_path / "a.iodock", 0.1)
    found = compare([store], [store])
    assert (found.faster.of, found.slower.of, found.noise.files, found.same_files) == (0, 0, 0, 41)


@live
def test_microseconds_between_two_recordings_are_not_listed(tmp_path: Path) -> None:
    program = (
        "import time\n"
        "for one in range(40):\n    open(f'step_{one:03}.dat', 'wb').write(b'x' * 2000)\n"
        "time.sleep(1)\n"
    )
    (tmp_path / "steps.py").write_text(program)
    for name in ("a", "b"):
        done = record(tmp_path, "-o", f"{name}.iodock", "--", sys.executable, "-I", "-S", "steps.py")
        assert done.returncode == 0, done.stderr
    found = compare([str(tmp_path / "a.iodock")], [str(tmp_path / "b.iodock")])
    listed = found.faster.rows + found.slower.rows
    assert found.noise.least_ns >= 1e7
    assert all(abs(row.changes["total_time_ns"].difference or 0) >= 1e6 for row in listed)
    assert found.faster.files + found.slower.files + found.noise.files >= 40
