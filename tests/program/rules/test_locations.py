"""Tests the source lines of a finding's calls: in the data, as text, and removed together with other
names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from in_process import printed
from iodock.program.capture import import_logs
from iodock.program.diagnosis import diagnose
from iodock.program.store import Store

LIBC = " > /usr/lib/libc.so.6(__write+0x14) [0xf78d4]\n"
STEP = LIBC + " > /home/u/solver(write_step+0x20) [0x1176] /home/u/src/solver.c:412\n"
LAST = LIBC + " > /home/u/solver(main+0x20) [0x1276] /home/u/src/solver.c:500\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imports a log of strace -kk in which one line writes 99 of 100 small pieces."""
    folder, calls = tmp_path_factory.mktemp("located"), 4000
    lines = ['7 1700000001.000000 openat(AT_FDCWD, "/data/out", O_WRONLY|O_CREAT, 0644) = 4 <0.000010>\n']
    for number in range(calls):
        lines.append(f'7 {1_700_000_001.001 + number * 0.001:.6f} write(4, "x"..., 16) = 16 <0.000900>\n')
        lines.append(LAST if number % 100 == 99 else STEP)
    (folder / "log").write_text("".join(lines))
    return import_logs([str(folder / "log")], folder / "run.iodock").store


def test_the_first_location_is_the_line_with_most_calls(store: Path) -> None:
    found = json.loads(printed("diagnose", store, "--format", "json"))["findings"]
    (small,) = [one for one in found if one["rule"] == "small-requests"]
    step, last = small["locations"]
    assert (step["place"], step["function"], step["module"]) == (
        "solver.c:412",
        "write_step",
        "/home/u/solver",
    )
    assert (step["file"], step["line"], step["calls"]) == ("/home/u/src/solver.c", 412, 3960)
    assert step["share"] == pytest.approx(0.99)
    assert (last["place"], last["calls"]) == ("solver.c:500", 40)
    assert step["called_from"] is None and last["called_from"] is None


def test_the_source_line_is_printed_below_its_finding(store: Path) -> None:
    assert "at solver.c:412 in write_step (99 % of these calls)" in " ".join(
        printed("diagnose", store).split()
    )
    assert "write_step の solver.c:412" in "".join(printed("diagnose", store, "--lang", "ja").split("\n"))


@pytest.mark.parametrize(("rare", "shown"), [(10, False), (60, True)])
def test_lines_with_fewer_than_one_in_a_hundred_calls_are_only_in_the_data(
    tmp_path: Path, rare: int, shown: bool
) -> None:
    lines = ['7 1700000001.000000 openat(AT_FDCWD, "/data/out", O_WRONLY|O_CREAT, 0644) = 4 <0.000010>\n']
    for number in range(3000):
        lines.append(f'7 {1_700_000_001.001 + number * 0.001:.6f} write(4, "x"..., 16) = 16 <0.000900>\n')
        lines.append(LAST if number < rare else STEP)
    (tmp_path / "log").write_text("".join(lines))
    store = import_logs([str(tmp_path / "log")], tmp_path / "run.iodock").store
    assert ("solver.c:500" in printed("diagnose", store)) is shown
    assert "solver.c:500" in printed("diagnose", store, "--format", "json")


@pytest.mark.parametrize(("own", "first"), [(10, "__write"), (500, "solver.c:412")])
def test_own_lines_come_first_unless_they_make_few_of_the_calls(tmp_path: Path, own: int, first: str) -> None:
    lines = ['7 1700000001.000000 openat(AT_FDCWD, "/data/out", O_WRONLY|O_CREAT, 0644) = 4 <0.000010>\n']
    for number in range(3000):
        lines.append(f'7 {1_700_000_001.001 + number * 0.001:.6f} write(4, "x"..., 16) = 16 <0.000900>\n')
        lines.append(STEP if number < own else LIBC + " > /usr/lib/libtool.so.1(work+0x9) [0x4d4]\n")
    (tmp_path / "log").write_text("".join(lines))
    store = import_logs([str(tmp_path / "log")], tmp_path / "run.iodock").store
    found = json.loads(printed("diagnose", store, "--format", "json"))["findings"]
    places = [
        one["place"] for one in next(one for one in found if one["rule"] == "small-requests")["locations"]
    ]
    assert places[0] == first and len(places) == 2


def test_a_function_that_a_library_calls_has_no_caller(tmp_path: Path) -> None:
    """`qsort` in libc calls the program's `compare`. The frame behind libc, which called `qsort`, is not the
    caller of `compare`."""
    program, sort = (
        " > /home/u/solver({}) [{}] /home/u/src/{}\n",
        " > /usr/lib/libc.so.6(qsort+0x9) [0x4d4]\n",
    )
    compare, step = (
        program.format("compare+0x2", "0x1176", "a.c:3"),
        program.format("step+0x2", "0x1276", "a.c:9"),
    )
    lines = ['7 1700000001.000000 openat(AT_FDCWD, "/data/out", O_WRONLY|O_CREAT, 0644) = 4 <0.000010>\n']
    for number in range(3000):
        lines.append(f'7 {1_700_000_001.001 + number * 0.001:.6f} write(4, "x"..., 16) = 16 <0.000900>\n')
        lines.append(LIBC + compare + (step if number % 3 else sort + step))
    (tmp_path / "log").write_text("".join(lines))
    store = import_logs([str(tmp_path / "log")], tmp_path / "run.iodock").store
    found = json.loads(printed("diagnose", store, "--format", "json"))["findings"]
    (place,) = next(one for one in found if one["rule"] == "small-requests")["locations"]
    assert (place["place"], place["calls"]) == ("a.c:3", 3000)
    assert place["called_from"] == {
        "place": "a.c:9",
        "function": "step",
        "file": "/home/u/src/a.c",
        "line": 9,
        "share": pytest.approx(2 / 3),
    }
    text = " ".join(printed("diagnose", store).split())
    assert "at a.c:3 in compare, most often called from a.c:9 in step (100 % of these calls)" in text


def test_an_anonymous_copy_has_no_source_lines(store: Path) -> None:
    with Store.open(store) as opened:
        found = diagnose(opened)
    assert any(one.locations for one in found.findings)
    changed = found.with_texts(lambda text: "x", "other")
    assert not any(one.locations for one in changed.findings)


def test_a_store_without_stacks_has_no_locations(store: Path, tmp_path: Path) -> None:
    log = (store.parent / "log").read_text().replace(STEP, "").replace(LAST, "")
    (tmp_path / "log").write_text(log)
    with Store.open(import_logs([str(tmp_path / "log")], tmp_path / "run.iodock").store) as plain:
        findings = diagnose(plain).findings
    assert findings and not any(one.locations for one in findings)
