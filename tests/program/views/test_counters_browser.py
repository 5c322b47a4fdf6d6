"""Tests the page of counters in a real browser: no errors, no network access, nothing wider than the
screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iodock.program.capture import import_logs
from iodock.program.diagnosis import diagnose
from iodock.program.store import Store
from iodock.program.views.counters import counters_html
from iodock.shared.settings import Settings
from places import FIXTURES

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.mark.parametrize("log", ["imbalanced-io", "mpi-io-test-x86_64-3.5.0"])
def test_the_counter_report_opens_wide_and_narrow_in_both_languages(
    browser: Any, tmp_path: Path, log: str
) -> None:
    store = import_logs([str(FIXTURES / "darshan" / f"{log}.darshan")], tmp_path / "job.iodock").store
    for language in ("en", "ja"):
        path = tmp_path / f"{language}.html"
        with Store.open(store) as opened:
            path.write_text(counters_html(opened, language, diagnose(opened, Settings())), encoding="utf-8")
        for width in (1280, 390):
            page = browser.new_page(viewport={"width": width, "height": 900})
            problems: list[str] = []
            requests: list[str] = []
            page.on("console", lambda message, seen=problems: seen.append(message.text))
            page.on("pageerror", lambda error, seen=problems: seen.append(str(error)))
            page.on("request", lambda request, seen=requests: seen.append(request.url))
            page.goto(path.as_uri())
            assert page.locator("h2:visible").count() == 8
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert (
                page.locator("svg.pair rect").first.evaluate("rect => rect.getBoundingClientRect().width") > 1
            )
            text = page.inner_text("body")
            assert "None" not in text and "nan" not in text
            assert problems == []
            assert requests == [path.as_uri()]
            page.close()
