"""Tests that many files with similar names take one line: in tables, among the largest costs, in findings and
in the report."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.diagnosis import diagnose
from iodock.program.relations.globs import glob_expression
from iodock.program.store import Store
from iodock.program.views.checkup import checkup_of, print_checkup
from iodock.program.views.report import report_html
from iodock.program.views.verdict import cost_figures
from recorded import live, record
from strace_log import Log

LETTERS = ("ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr")
STEPS = [f"/run/out_{step:04}.dat" for step in range(5)]
CASES = {
    "numbered steps": (STEPS, {"/run/out_*.dat": 5}),
    "classes": (
        [f"/d7/imgs/class{one:02}/{name}.npy" for one in range(3) for name in (1, 20)],
        {"/d7/imgs/class*/*.npy": 6},
    ),
    "one class": (
        [f"/d7/imgs/class03/img{one}.npy" for one in range(4)],
        {"/d7/imgs/class03/img*.npy": 4},
    ),
    "one name in many folders": (
        [f"/runs/case{one}/step1.out" for one in range(4)],
        {"/runs/case*/step1.out": 4},
    ),
    "hashes": ([f"/cas/{one}f{one}3e.blob" for one in LETTERS], {"/cas/*.blob": 9}),
    "words": ([f"/p1/{one}.py" for one in LETTERS], {"/p1/*.py": 9}),
    "chunks": ([f"/x.zarr/0.{a}.{b}" for a in range(2) for b in range(2)], {"/x.zarr/*.*.*": 4}),
    "ranks": ([f"/o/out.{rank}.12" for rank in range(4)], {"/o/out.*.*": 4}),
    "stars and brackets": (
        [f"/d/a*[{one}]?.dat" for one in range(4)],
        {"/d/a[*][[]*][?].dat": 4},
    ),
    "letters of the world": ([f"/データ/結果_{one}.dat" for one in range(4)], {"/データ/結果_*.dat": 4}),
    "too few": (STEPS[:3], dict.fromkeys(STEPS[:3], 1)),
    "other endings": (["/a/1.x", "/a/2.y", "/a/3.z", "/a/4.w"], dict.fromkeys(["/a/1.x", "/a/4.w"], 1)),
    "says nothing": ([f"/{one}" for one in range(5)], dict.fromkeys(["/0", "/4"], 1)),
}


def store_of(names: Iterable[str], into: Path) -> str:
    log = Log()
    for name in names:
        log.open("".join(f"\\{byte:o}" if byte > 126 else chr(byte) for byte in name.encode()), 0.001)
        log.move("read", next(reversed(log.files)), 2, 100, 0.002)
    return log.store(into)


def lines_of(store: Store, **arguments: Any) -> dict[str, int]:
    summary = find("summary")
    answer = summary.run(store, request(summary, {"by": ("pattern",), **arguments}))
    return {row["pattern"]: row["file_count"] for row in answer.table.to_pylist()}


@pytest.mark.parametrize("case", CASES)
def test_similar_names_become_patterns(case: str, tmp_path: Path) -> None:
    names, wanted = CASES[case]
    with Store.open(store_of(names, tmp_path / "run.iodock")) as store:
        lines = lines_of(store)
        assert {name: lines[name] for name in wanted} == wanted
        assert sum(lines.values()) == len(names)
        for pattern, count in wanted.items():
            # The pattern of several files is a glob that matches their names.
            if count > 1:
                assert all(re.fullmatch(glob_expression(pattern), name) for name in names)
                assert lines_of(store, file=(pattern,)) == {pattern: count}


def test_names_that_are_not_utf8_become_patterns_too(tmp_path: Path) -> None:
    log = Log()
    for one in range(4):
        log.open(f"/d/\\377\\n{one}", 0.001)
    with Store.open(log.store(tmp_path / "run.iodock")) as store:
        ((pattern, count),) = lines_of(store).items()
        assert count == 4 and pattern.endswith("*")


def test_findings_and_check_up_name_the_pattern(tmp_path: Path) -> None:
    names = [f"/d/imgs/class{one % 20:02}/{one}.npy" for one in range(1200)]
    with Store.open(store_of(names, tmp_path / "run.iodock")) as store:
        checkup = checkup_of(store)
        first = checkup.overview.costs[0]
        assert (first.file, first.files) == ("/d/imgs/class*/*.npy", 1200)
        (flood,) = [one for one in diagnose(store).findings if one.rule == "tiny-file-flood"]
        assert (flood.files, flood.file_count) == (("/d/imgs/class*/*.npy",), 1200)
        assert [(line.name, line.files) for line in checkup.files.lines] == [("/d/imgs/class*/*.npy", 1200)]
        from iodock.shared.language import language_in

        assert cost_figures(first, checkup.overview, language_in("en")).startswith("1,200 files, ")
        for width in (80, 120):
            stream = io.StringIO()
            print_checkup(checkup, Console(file=stream, width=width), "en")
            assert "/d/imgs/class*/*.npy (1,200 files)" in stream.getvalue()


def test_files_by_time_have_a_line_for_each_pattern(tmp_path: Path) -> None:
    log = Log()
    for one in range(5):
        log.open(f"/run/out_{one}.dat", 0.1)
    log.open("/run/mesh.h5", 0.3)
    log.compute(0.3)
    with Store.open(log.store(tmp_path / "run.iodock")) as store:
        stream = io.StringIO()
        print_checkup(checkup_of(store, diagnosed=False), Console(file=stream, width=80), "en")
    text = stream.getvalue()
    assert re.search(r"^/run/out_\*\.dat +5 +500 ms +5 +0 +-$", text, re.MULTILINE)
    assert re.search(r"^/run/mesh\.h5 +1 +300 ms +1 +0 +-$", text, re.MULTILINE)


def test_the_report_has_patterns_with_their_files(tmp_path: Path) -> None:
    with Store.open(store_of([*STEPS, "/run/mesh.h5"], tmp_path / "run.iodock")) as store:
        document = report_html(store)
    data = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', document, re.DOTALL)
    assert data
    page = json.loads(data[1])["page"]
    assert page["patterns"]["columns"][:3] == ["file", "file_count", "count"]
    rows = {page["names"][row[0]]: row[1:3] for row in page["patterns"]["rows"]}
    assert rows == {"/run/out_*.dat": [5, 15], "/run/mesh.h5": [1, 3]}
    assert {page["names"][row[0]] for row in page["files"]["rows"]} == {*STEPS, "/run/mesh.h5"}
    # Charts show files, not patterns.
    assert {page["names"][int(number)] for number in page["details"]} == {*STEPS, "/run/mesh.h5"}


def test_the_report_has_no_patterns_for_unrelated_names(tmp_path: Path) -> None:
    with Store.open(store_of(STEPS[:2], tmp_path / "run.iodock")) as store:
        assert '"patterns":null' in report_html(store).replace(": ", ":")


@live
def test_step_files_of_a_recorded_program_share_a_pattern(tmp_path: Path) -> None:
    program = "for one in range(30):\n    open(f'step_{one:04}.dat', 'wb').write(b'x' * 2000)\n"
    (tmp_path / "steps.py").write_text(program)
    assert record(tmp_path, "--", sys.executable, "-I", "-S", "steps.py").returncode == 0
    with Store.open(tmp_path / "run.iodock") as store:
        found = lines_of(store)
    assert found[str(tmp_path / "step_*.dat")] == 30
