"""Tests a flame graph as SVG: widths are shares of the store's sums; zoom, search and keys work in a
browser."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from in_process import printed, shown
from iodock.program.capture import import_logs
from stacked import stacked_store

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stacked_store(tmp_path_factory.mktemp("stacked"))


def drawn(store: Path, folder: Path, *options: str) -> list[ElementTree.Element]:
    printed("export", store, "-o", folder / "run.svg", *options)
    root = ElementTree.parse(folder / "run.svg").getroot()
    return [one for one in root if (one.get("class") or "").startswith("frame ")]


def share(frame: ElementTree.Element, name: str = "width") -> float:
    return float((frame.get(name) or "").removesuffix("%")) / 100


@pytest.mark.parametrize("weight", ["calls", "time", "bytes"])
def test_the_width_of_a_box_is_its_share(store: Path, tmp_path: Path, weight: str) -> None:
    rows = shown(store, "summary", "--by", "call")["rows"]
    sums = {
        row["call"]: {
            "calls": row["count"],
            "time": row["total_time_ns"],
            "bytes": (row["read_bytes"] or 0) + (row["written_bytes"] or 0),
        }[weight]
        for row in rows
    }
    frames = drawn(store, tmp_path, "--weigh", weight)
    assert int(frames[0].get("data-weight") or 0) == sum(sums.values())
    widths = [share(one) for one in frames if one.get("data-name") == "write"]
    assert sum(widths) == pytest.approx(sums["write"] / sum(sums.values()), abs=1e-6)
    for one in frames:
        assert -1e-6 <= share(one, "x") <= share(one, "x") + share(one) <= 1 + 1e-6


def test_hostile_names_are_plain_text(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('1 openat(AT_FDCWD, "/d/<b>&\\"\\1", O_RDONLY) = 3\n')
    store = import_logs([str(tmp_path / "log")], tmp_path / "run.iodock").store
    assert '/d/<b>&"\ufffd' in [one.get("data-name") for one in drawn(store, tmp_path)]


def test_an_empty_selection_is_drawn(store: Path, tmp_path: Path) -> None:
    (whole,) = drawn(store, tmp_path, "--call", "fsync")
    assert whole.get("data-weight") == "0"


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_page(viewport={"width": 390, "height": 800})
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_zoom_search_and_keys_work(store: Path, tmp_path: Path, page: Page) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    drawn(store, tmp_path, "--weigh", "calls", "--lang", "ja")
    page.goto(f"file://{tmp_path / 'run.svg'}")

    def width(name: str) -> float:
        box = page.locator(f'.frame[data-name="{name}"] rect').first.bounding_box()
        return box["width"] if box else 0.0

    before = width("write_step solver.c:412")
    page.locator('.frame[data-name="main solver.c:500"]').first.focus()
    page.keyboard.press("Enter")
    assert width("main solver.c:500") == pytest.approx(390, abs=2)
    assert width("write_step solver.c:412") == 0
    assert width("solver") == pytest.approx(390, abs=2)
    page.keyboard.press("Escape")
    assert width("write_step solver.c:412") == pytest.approx(before, abs=1)
    page.on("dialog", lambda dialog: dialog.accept("SOLVER.C:412"))
    page.keyboard.press("/")
    assert page.locator(".frame.found").count() == 1
    rows = shown(store, "summary", "--by", "function")["rows"]
    calls = {row["function"]: row["count"] for row in rows}
    part = 100 * calls["write_step"] / sum(calls.values())
    assert page.locator("#found").text_content() == f"SOLVER.C:412: {part:.1f} %"
    assert not errors
