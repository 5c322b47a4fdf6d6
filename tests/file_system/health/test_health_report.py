"""Tests the page of a check-up: graphs with numbered remarks, in both languages, safe and self-contained."""

from __future__ import annotations

import base64
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iodock.file_system.health.measurements import Cell, Measurements, Unit
from iodock.file_system.health.remarks import find
from iodock.file_system.views import health_pdf
from iodock.file_system.views.health_report import render
from iodock.file_system.views.measurement_curves import figures
from iodock.file_system.views.measurement_lines import specification, svg
from iodock.shared.charts.draw import svg_of
from iodock.shared.language import language_in
from synthetic_curves import MIB, SIZES, Made, made

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ENGLISH = language_in("en")


@pytest.fixture(scope="module")
def checkup() -> Measurements:
    shape = dict(zip(SIZES, (0.05, 0.3, 0.95, 1, 1), strict=True))
    result = made(
        [
            Made("write", lambda p, s: 20 * MIB * min(p, 50) * shape[s], sizes=SIZES),
            Made("file-create", lambda p, s: 1e3 * min(p, 10), sizes=(None,), test="metadata"),
            Made("directory-stat", lambda p, s: 1e4 if p < 100 else 4e3, sizes=(None,), test="metadata"),
        ],
        0.02,
        3,
    )
    protocol = replace(result.protocol, target='/scratch/<b>"&scratch', notes=("<script>alert(1)</script>",))
    measured = replace(result, protocol=protocol)
    return replace(measured, remarks=find(measured))


def rows_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the data of all lines and marks of a graph."""
    return [row for rows in spec["datasets"].values() for row in rows]


def test_graphs_have_the_form_of_published_check_ups(checkup: Measurements) -> None:
    titles = [figure.title for figure in figures(checkup.cells, checkup.remarks, ENGLISH)]
    assert titles == [
        "large transfer, write",
        "large transfer, write, by I/O size",
        "metadata access, files",
        "metadata access, directories",
    ]


def test_numbered_marks_are_at_the_points_of_their_remarks(checkup: Measurements) -> None:
    by_processes, by_size, files, directories = figures(checkup.cells, checkup.remarks, ENGLISH)
    for figure, place in ((by_processes, "50"), (by_size, "1 MiB"), (files, "10"), (directories, "50")):
        marked = {row["place"] for row in rows_of(specification(figure, ENGLISH)) if row["numbers"]}
        assert marked == {place}, figure.title
        assert len(figure.remarks) == 1


def test_every_value_is_in_the_graph(checkup: Measurements) -> None:
    drawn = figures(checkup.cells, (), ENGLISH)[0]
    values = {row["value"] for row in rows_of(specification(drawn, ENGLISH))}
    assert values == {cell.value for cell in checkup.cells if cell.operation == "write"}
    assert "256 MiB" in svg(drawn, ENGLISH)


def test_combinations_of_nodes_and_processes_have_their_own_points() -> None:
    """mdtest ran 8 processes on 1, 2, 4 and 8 nodes, as on the SR16000."""
    cells = [
        Cell("mdtest", "file-create", None, 8, nodes, 5e3 * nodes, Unit.OPERATIONS_PER_S, 5, 0.1)
        for nodes in (1, 2, 4, 8)
    ]
    cells += [replace(cells[0], processes=64, value=4e3)]
    drawn = figures(cells, (), ENGLISH)[0]
    spec = specification(drawn, ENGLISH)
    places = list(dict.fromkeys(row["place"] for row in rows_of(spec)))
    assert sorted(places) == ["1 x 64", "1 x 8", "2 x 4", "4 x 2", "8 x 1"]
    assert spec["layer"][0]["encoding"]["x"]["sort"] == ["1 x 8", "1 x 64", "2 x 4", "4 x 2", "8 x 1"]


def test_the_page_is_complete_and_loads_no_other_resource(checkup: Measurements) -> None:
    page = render(checkup, ENGLISH)
    assert "<script" not in page and not re.search(r'(src|href)="(?!data:|#)', page)
    assert "&lt;script&gt;alert(1)" in page and "/scratch/&lt;b&gt;" in page
    assert page.count("<tr>") == len(checkup.cells) + 1
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert len(pictures) == 4
    assert all(base64.b64decode(one).startswith(b"<svg") for one in pictures)
    for remark in checkup.remarks:
        assert str(remark.message.values.get("processes", "")) in page


def test_the_pdf_has_every_graph_with_its_lines(checkup: Measurements) -> None:
    spec = health_pdf.sheet(checkup, ENGLISH)
    drawn = svg_of(spec)
    lines = re.findall(r'mark-line role-mark[^"]*"[^>]*>\s*<path[^>]* d="M[^"]*L', drawn)
    # The graphs have lines for five sizes, six numbers of processes, one file operation and one directory
    # operation.
    assert len(lines) == 5 + 6 + 1 + 1
    assert "1. large transfer, write, 4 KiB to 256 MiB: levels off at 50 processes" in drawn
    assert health_pdf.render(checkup, ENGLISH).startswith(b"%PDF")
    empty = replace(checkup, cells=(), remarks=())
    assert health_pdf.render(empty, ENGLISH).startswith(b"%PDF")


def test_the_page_is_in_japanese(checkup: Measurements) -> None:
    page = render(checkup, language_in("ja"))
    for words in ("ファイルシステム健康診断", "所見", "頭打ち", "大規模データ転送、書き込み、I/O サイズ別"):
        assert words in page


def test_a_result_without_graphs_explains_why() -> None:
    single = made([Made("write", lambda p, s: MIB, (4,))], 0.1, 1)
    page = render(replace(single, remarks=()), ENGLISH)
    assert "a graph needs several numbers of processes" in page
    assert "No remarks" in page


@pytest.mark.whole
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_page_opens_without_browser_errors(checkup: Measurements, tmp_path: Path, language: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    path = tmp_path / "page.html"
    path.write_text(render(checkup, language_in(language)), encoding="utf-8")
    problems: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for width in (1280, 380):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("console", lambda message: problems.append(message.text))
            page.on(
                "request", lambda request: problems.append(request.url) if request.url[:4] == "http" else None
            )
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            # A picture that the page's policy forbids has no size.
            assert all(page.evaluate("[...document.images].map(one => one.naturalWidth > 300)"))
        browser.close()
    assert problems == []
