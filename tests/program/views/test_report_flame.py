"""Tests the report's flame graph, which needs stacks: weights, zoom, search and keys in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from in_process import printed, shown
from iodock.program.store import Store
from iodock.program.views.report.flame import flame_data
from stacked import stacked_store

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stacked_store(tmp_path_factory.mktemp("stacked"))


def test_boxes_have_the_sums_of_their_calls(store: Path) -> None:
    with Store.open(store) as opened:
        data = flame_data(opened, 3_000)
    assert data is not None
    assert data["weights"] == ["time", "bytes", "calls"]
    rows = shown(store, "flame", "--weigh", "calls")["rows"]
    named = {data["frames"][box[1]][1]: box[4] for box in data["boxes"] if box[0] <= 2}
    assert named["solver"] == rows[0]["count"]
    assert named["main solver.c:77"] == rows[1]["count"]


def test_a_limited_number_of_boxes_keeps_the_widest(store: Path) -> None:
    with Store.open(store) as opened:
        data = flame_data(opened, 4)
    assert data is not None
    assert [data["frames"][box[1]][1] for box in data["boxes"]][:2] == ["", "solver"]
    assert len(data["boxes"]) <= 4


def test_without_stacks_the_report_has_no_flame_graph(tmp_path: Path) -> None:
    store = stacked_store(tmp_path, stacks=False)
    page = printed("report", store, "-o", "-")
    assert 'id="flame"' not in page
    assert 'href="#flame"' not in page


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_page(viewport={"width": 390, "height": 800})
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_weights_zoom_search_and_keys_work(store: Path, tmp_path: Path, page: Page) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text))
    printed("report", store, "-o", tmp_path / "run.html")
    page.goto(f"file://{tmp_path / 'run.html'}")
    page.wait_for_selector("html[data-ready]")

    def width(name: str) -> float:
        box = page.locator(f'#flame .frame[data-name="{name}"] rect').first.bounding_box()
        return box["width"] if box else 0.0

    whole = width("All")
    assert width("main solver.c:500") == pytest.approx(whole * 2.7 / 270.17, abs=1)
    page.get_by_role("button", name="bytes", exact=True).and_(page.locator("#flame button")).click()
    assert width("sendfile") == pytest.approx(whole * 10_000 / 14_800, abs=1)
    page.locator("#flame button", has_text="calls").click()
    page.locator('#flame .frame[data-name="solver"]').focus()
    page.keyboard.press("ArrowDown")
    focused = "document.activeElement.dataset.name"
    assert page.evaluate(focused) == "(stack unknown)"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "main solver.c:500"
    assert "main solver.c:500: 3, " in (page.locator("#flame .readout").text_content() or "")
    page.keyboard.press("Enter")
    assert width("main solver.c:500") == pytest.approx(whole, abs=1)
    assert width("write_step solver.c:412") == 0
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == "solver"
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("SOLVER.C:412")
    assert page.locator("#flame .frame.found").count() == 1
    assert page.locator("#flame .readout").text_content() == "SOLVER.C:412: 98.0 %"
    assert not problems
