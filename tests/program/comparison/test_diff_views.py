"""Tests iodock diff as text, page, JSON and CSV, and its command line."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from diff_stores import ENGLISH, HOSTILE, said, written
from in_process import iodock
from iodock.program.comparison import compare
from iodock.program.views.diff_csv import COLUMNS, diff_csv
from iodock.program.views.diff_html import diff_html
from iodock.program.views.diff_json import diff_json
from iodock.program.views.diff_text import diff_text, print_diff
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.language import language_in
from places import ROOT
from strace_log import Log
from synthetic import write_store


@pytest.mark.parametrize("form", ["text", "html", "json", "csv"])
def test_gains_and_losses_are_in_every_format(kyoto: tuple[str, str], form: str) -> None:
    found = compare([kyoto[0]], [kyoto[1]], every_file=True)
    shown = {
        "text": lambda: diff_text(found, ENGLISH, False),
        "html": lambda: diff_html(found, ENGLISH),
        "json": lambda: diff_json(found, ENGLISH),
        "csv": lambda: "".join(diff_csv(found)),
    }[form]()
    faster, slower = shown.index("/data/catalogue.csv"), shown.index("/data/update.log")
    assert faster != slower
    if form == "text":
        assert re.search(r"catalogue.csv\s+13.5 s\s+3.3 s\s+-10.2 s", shown)
        assert re.search(r"update.log\s+21.6 s\s+37.9 s\s+\+16.3 s", shown)


def test_hostile_names_are_plain_text_in_every_format(tmp_path: Path) -> None:
    first, second = Log(), Log()
    for number, name in enumerate(HOSTILE):
        written(first, name, 2, 1.0)
        written(second, name, 2, 2.0 + number)
    found = compare(
        [first.store(tmp_path / "a.iodock")], [second.store(tmp_path / "b.iodock")], every_file=True
    )
    names = {row.name for row in found.files}
    assert len(names) == len(HOSTILE) and "/d/\n\t" in names
    assert {row["file"] for row in json.loads(diff_json(found, ENGLISH))["slower"]["rows"]} == names
    table = list(csv.DictReader(io.StringIO("".join(diff_csv(found)))))
    assert {row["file"] for row in table} == names
    page = diff_html(found, ENGLISH)
    assert "<b>x" not in page and "&lt;b&gt;x&lt;/b&gt;&amp;amp;@BODY@" in page
    text = diff_text(found, ENGLISH, False)
    assert "/d/[bold]*?" in text and "/d/{n} {before}%s" in text and "/d/\\n\\t" in text


@pytest.mark.whole
@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_text_fits_the_terminal(
    kyoto: tuple[str, str], several: tuple[list[str], list[str]], tmp_path: Path, width: int
) -> None:
    long = Log()
    written(long, "/very/long/" + "folder/" * 30 + "日本語の名前.dat", 123_456 // 100, 3.3)
    other = long.store(tmp_path / "long.iodock")
    for stores in (([kyoto[0]], [kyoto[1]]), ([kyoto[0]], [other]), several):
        into = io.StringIO()
        print_diff(compare(*stores), Console(file=into, width=width, highlight=False), ENGLISH)
        assert max(cell_len(line.rstrip()) for line in into.getvalue().splitlines()) <= width


def test_two_groups_of_stores_can_be_compared(several: tuple[list[str], list[str]], tmp_path: Path) -> None:
    before, after = several
    done = iodock("diff", *before[:2], "--", *after[:2], "--format", "json", "--lang", "en")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [len(answer[side]) for side in ("before", "after")] == [2, 2]
    page = tmp_path / "diff.html"
    assert iodock("diff", before[0], after[0], "-o", page).returncode == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    table = iodock("diff", before[0], after[0], "--format", "csv").stdout.splitlines()
    assert table[0].split(",") == list(COLUMNS) and len(table) == 3


def test_every_key_of_the_json_is_documented(kyoto: tuple[str, str]) -> None:
    document = json.loads(diff_json(compare([kyoto[0]], [kyoto[1]], per="records=2,3"), ENGLISH))
    page = (ROOT / "docs" / "how-to" / "compare-two-runs.md").read_text()

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*(keys(one) for one in value.values()))
        return set().union(*(keys(one) for one in value)) if isinstance(value, list) else set()

    assert {key for key in keys(document) if f"`{key}`" not in page} == set()
    assert {
        column
        for column in COLUMNS
        if f"`{column}`" not in page and "_before" not in column and "_after" not in column
    } == set()


@pytest.mark.whole
@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_is_self_contained_and_fits_the_screen(
    kyoto: tuple[str, str], tmp_path: Path, width: int
) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    page_path = tmp_path / "diff.html"
    page_path.write_text(diff_html(compare([kyoto[0]], [kyoto[1]]), language_in("ja")))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        problems: list[str] = []
        requests: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(page_path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        bars = page.evaluate(
            "[...document.querySelectorAll('#files .is')].map(b => b.getBoundingClientRect().width)"
        )
        browser.close()
    assert problems == [] and requests == [page_path.as_uri()]
    assert min(bars) > 0 and max(bars) > 5 * min(bars), "3.3 s beside 37.9 s, on one scale"


def test_shortened_lists_keep_other_and_total(tmp_path: Path) -> None:
    first, second = Log(), Log()
    for number in range(12):
        name = f"/w/{'abcdefghijkl'[number] * 3}"
        written(first, name, 2, 1.0)
        written(second, name, 2, 2.0 + number)
    stores = [first.store(tmp_path / "a.iodock")], [second.store(tmp_path / "b.iodock")]
    found = compare(*stores, most_files=5, by_pattern=False)
    assert (len(found.slower.rows), found.slower.of) == (5, 12)
    assert found.slower.other is not None
    parts = [*found.slower.rows, found.slower.other]
    for measure in ("total_time_ns", "count", "written_bytes"):
        total = found.slower.total.changes[measure]
        assert sum(row.changes[measure].after or 0 for row in parts) == pytest.approx(total.after)
    assert found.slower.total.changes["total_time_ns"].difference == pytest.approx(12 * 1e9 + 66e9)
    assert "(5 of 12)" in diff_text(found, ENGLISH, False)


def test_empty_stores_can_be_compared(kyoto: tuple[str, str], tmp_path: Path) -> None:
    empty = str(write_store(tmp_path / "empty.iodock", [], [], []))
    for before, after in ((empty, empty), (empty, kyoto[0]), (kyoto[0], empty)):
        found = compare([before], [after], every_file=True)
        assert "empty.iodock contains no calls" in said(found, "end")
        for shown in (diff_text(found, ENGLISH, False), diff_html(found, ENGLISH), diff_json(found, ENGLISH)):
            assert shown
    with pytest.raises(RequestError, match=r"empty\.iodock"):
        compare([kyoto[0]], [empty], per="files")


@pytest.mark.parametrize("damage", ["manifest.json", "events", "files.parquet"])
def test_a_damaged_store_is_named(kyoto: tuple[str, str], tmp_path: Path, damage: str) -> None:
    broken = tmp_path / "broken.iodock"
    shutil.copytree(kyoto[0], broken)
    for path in [broken / damage] if damage != "events" else (broken / damage).iterdir():
        path.write_bytes(b"PAR1 nothing of use PAR1")
    with pytest.raises(IodockError, match=r"broken\.iodock") as error:
        compare([kyoto[0]], [str(broken)])
    assert error.value.hint
    done = iodock("diff", broken, kyoto[0])
    assert (done.returncode, done.stdout) == (1, "")
    assert "broken.iodock" in done.stderr and "hint: " in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("stores", [0, 1, 3])
def test_an_ambiguous_division_of_stores_is_refused(
    several: tuple[list[str], list[str]], stores: int
) -> None:
    done = iodock("diff", *several[0][:stores])
    assert (done.returncode, done.stdout) == (2, "")
    assert "hint: " in done.stderr or "Usage" in done.stderr


def test_both_sides_need_a_store(several: tuple[list[str], list[str]]) -> None:
    done = iodock("diff", several[0][0], "--")
    assert done.returncode == 2 and "before and after" in done.stderr
