"""Tests the report in a real browser: keyboard, sorting, drill-down, print, narrow screens, no network
access."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iodock.program.views.report.page import Report, render
from report_samples import HOSTILE, SAMPLES

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


class Opened:
    """An opened page, its errors and its network requests."""

    def __init__(self, browser: Any, path: Path, width: int = 1280) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append("dialog: " + dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def column(self, table: str, index: int) -> list[str]:
        return [
            cell.inner_text().strip()
            for cell in self.page.query_selector_all(f"{table} tbody tr > :nth-child({index})")
        ]

    def focused(self) -> str:
        return str(self.page.evaluate("document.activeElement.textContent"))


def mapped() -> Report:
    """Returns the usual report, with a file that was read through a memory map."""
    touched = {
        "faults": 1_028,
        "major_faults": 1,
        "touched_bytes": 4 << 20,
        "touched_share": 0.07,
        "ranges": 1,
    }
    one_file = {"file": "/data/mapped.bin", "pages": 1_024, "pattern": "sequential"} | touched
    return dataclasses.replace(SAMPLES["ordinary"](), maps=(one_file,))


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages: list[Opened] = []

    def open_sample(name: str, language: str = "en", width: int = 1280) -> Opened:
        path = tmp_path / f"{name}.html"
        report = mapped() if name == "mapped" else SAMPLES[name]()
        path.write_text(render(report, language), encoding="utf-8")
        pages.append(Opened(browser, path, width))
        return pages[-1]

    yield open_sample
    for shown in pages:
        shown.page.close()
        assert shown.problems == []
        assert [url for url in shown.requests if not url.startswith("file:")] == []


@pytest.mark.whole
@pytest.mark.parametrize("name", SAMPLES)
def test_reports_of_all_kinds_of_runs_open_without_browser_errors(opened: Any, name: str) -> None:
    shown = opened(name, "ja")
    assert shown.page.locator("h2:visible").count() >= 8
    assert "undefined" not in shown.page.inner_text("body") and "NaN" not in shown.page.inner_text("body")


@pytest.mark.whole
@pytest.mark.parametrize("name", SAMPLES)
def test_the_report_fits_a_narrow_screen(opened: Any, name: str) -> None:
    page = opened(name, "en", 380).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_column_headings_sort_and_announce_the_order(opened: Any) -> None:
    shown = opened("ordinary")
    header = shown.page.locator("#calls-body thead th", has_text="calls").first
    assert shown.page.locator("#calls-body th[aria-sort=descending]").inner_text().strip() == "time"
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    counts = [int(text.replace(",", "")) for text in shown.column("#calls-body", 3)]
    assert counts == sorted(counts, reverse=True)
    header.locator("button").press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    counts = [int(text.replace(",", "")) for text in shown.column("#calls-body", 3)]
    assert counts == sorted(counts)


@pytest.mark.whole
def test_unknown_values_sort_last_in_both_orders(opened: Any) -> None:
    shown = opened("ordinary")
    header = shown.page.locator("#calls-body thead th", has_text="written").locator("button")
    for _ in range(2):
        header.click()
        assert shown.column("#calls-body", 9)[0] == "2.79 GiB"


def wait_until(page: Any, condition: str) -> None:
    """Waits until CONDITION is true. Playwright's own waiting evaluates text inside the page, which the
    page's policy forbids."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never so: {condition}")


@pytest.mark.whole
def test_the_keyboard_leads_from_a_call_to_its_file(opened: Any) -> None:
    shown = opened("ordinary")
    page = shown.page
    page.keyboard.press("Tab")
    assert shown.focused() == "Skip to the content"
    page.locator("#calls-body button.open").first.focus()
    page.keyboard.press("End")
    assert shown.focused() == "mmap"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert shown.focused() == "read"
    page.keyboard.press("Enter")
    wait_until(page, "document.activeElement.textContent === 'Files used by read'")
    page.locator("#call-panel tbody button.open").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert shown.focused() == "/etc/solver.conf"
    assert page.evaluate("location.hash") == "#/file/1"
    page.go_back()
    wait_until(page, "location.hash === '#/call/read'")


@pytest.mark.whole
def test_a_table_has_a_single_tab_stop(opened: Any) -> None:
    page = opened("ordinary").page
    assert page.locator("#files-body tbody [tabindex='0']").count() == 1


@pytest.mark.whole
def test_the_keyboard_reads_values_from_charts(opened: Any) -> None:
    page = opened("ordinary").page
    chart = page.locator("#file-panel svg.chart").first
    chart.focus()
    page.keyboard.press("ArrowRight")
    output = page.locator("#file-panel output").first
    assert output.inner_text() == "0 B: 12 reads, 0 writes"
    page.keyboard.press("End")
    assert "reads" in output.inner_text()
    page.keyboard.press("Escape")
    assert "The most frequent accesses have a size of" in output.inner_text()


@pytest.mark.whole
def test_search_finds_files_and_counts_them(opened: Any) -> None:
    shown = opened("large")
    shown.page.fill("#file-search", "FA0001")
    assert shown.page.inner_text(".search-status") == "10 of 300 listed files"
    assert all("FA0001" in name for name in shown.column("#files-body", 1))
    shown.page.press("#file-search", "ArrowDown")
    assert "FA0001" in shown.focused()


@pytest.mark.whole
def test_shortened_lists_mention_the_omitted_rows(opened: Any) -> None:
    page = opened("large").page
    assert "15 of 318,169 files shown" in page.inner_text("#files-body caption")
    assert "not listed" in page.inner_text("#files-body tfoot") and "total" in page.inner_text(
        "#files-body tfoot"
    )
    page.click("#files-body button.more")
    assert page.locator("#files-body tbody tr").count() == 300


@pytest.mark.whole
def test_a_file_without_details_refers_to_the_command(opened: Any) -> None:
    page = opened("large").page
    page.evaluate("location.hash = '#/file/200'")
    page.wait_for_selector("#file-panel pre")
    assert "iodock show timeline solver.iodock --file /lustre/project/data/FA00200" in page.inner_text(
        "#file-panel pre"
    )


@pytest.mark.whole
@pytest.mark.parametrize(
    "address",
    ["#/file/999999", "#/file/-1", "#/call/nothing", "#/call/%E0%A4", "#/file/1e9", "#/call/__proto__"],
)
def test_arbitrary_page_fragments_do_no_harm(opened: Any, address: str) -> None:
    page = opened("ordinary").page
    page.evaluate("address => { location.hash = address; }", address)
    page.wait_for_timeout(50)
    assert page.locator("#call-panel").count() == 1


@pytest.mark.whole
def test_hostile_names_are_shown_literally(opened: Any) -> None:
    page = opened("hostile").page
    listed = page.inner_text("#files-body tbody")
    assert "<script>alert(1)</script>" in listed and "\\u2028" in listed and "\\x1b[31m" in listed
    assert page.locator("main script, main img").count() == 0
    titles = page.locator("#files-body tbody bdi.name").evaluate_all(
        "nodes => nodes.map((node) => node.title)"
    )
    assert HOSTILE[6] in titles and len(titles) == len(HOSTILE)


@pytest.mark.whole
def test_numbers_show_their_exact_value_on_request(opened: Any) -> None:
    page = opened("ordinary").page
    assert page.locator("#calls-body tbody td.number [title='14,300,000,000 B']").inner_text() == "13.3 GiB"


@pytest.mark.whole
def test_a_printed_report_shows_the_costliest_files_in_full(opened: Any) -> None:
    page = opened("ordinary").page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#print-panels svg.chart:visible").count() == 6
    assert page.locator("nav.sections:visible, .search:visible, #file-panel:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


CONTRAST = """() => {
  const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
  const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (node) => {
    for (let n = node; n; n = n.parentElement) {
      const c = parse(getComputedStyle(n).backgroundColor);
      if (c[3] > 0) return c;
    }
    return [255, 255, 255, 1];
  };
  const speaks = (node) => Array.from(node.childNodes).some((c) => c.nodeType === 3 && c.data.trim());
  const found = [];
  for (const node of document.querySelectorAll('body *')) {
    if (!speaks(node) || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const ink = parse(node instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(node.outerHTML.slice(0, 90));
  }
  return found;
}"""


@pytest.mark.whole
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_sufficient_contrast(opened: Any, scheme: str) -> None:
    page = opened("ordinary").page
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate(CONTRAST) == []


HEADINGS = """() => Array.from(document.querySelectorAll('thead tr')).flatMap((row) => {
  if (!row.checkVisibility()) return [];
  const places = Array.from(row.cells).filter((cell) => cell.checkVisibility()).map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const [left, right] = [range.getBoundingClientRect().left, range.getBoundingClientRect().right];
    const button = cell.querySelector('button');
    const style = button ? getComputedStyle(button) : { paddingLeft: 0, paddingRight: 0 };
    return [left + parseFloat(style.paddingLeft), right - parseFloat(style.paddingRight)];
  });
  return places.slice(1).map(([left], index) => left - places[index][1]);
})"""


@pytest.mark.whole
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("width", [390, 1280])
def test_headings_are_distinct_from_table_rows(opened: Any, language: str, width: int) -> None:
    gaps = opened("mapped", language, width).page.evaluate(HEADINGS)
    assert len(gaps) > 20 and min(gaps) >= 6


@pytest.mark.whole
def test_a_phone_shows_each_word_of_the_navigation(opened: Any) -> None:
    page = opened("ordinary", "ja", 390).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    places = page.locator("nav.sections a").evaluate_all(
        "links => links.map((link) => link.getBoundingClientRect().right)"
    )
    assert len(places) >= 8 and max(places) <= 390


@pytest.mark.whole
def test_a_phone_leaves_out_the_least_important_columns(opened: Any) -> None:
    narrow = opened("ordinary", "ja", 390).page
    assert narrow.locator("#calls-body thead th:visible").all_inner_texts() == [
        "システムコール", "実行回数", "時間", "読み込み", "書き込み",
    ]  # fmt: skip
    assert narrow.locator("#calls-body .narrow-only:visible").inner_text() == "画面が狭いため 6 列を省略"
    wide = opened("ordinary", "ja", 1280).page
    assert wide.locator("#calls-body thead th:visible").count() == 11
    assert wide.locator(".narrow-only:visible").count() == 0


@pytest.mark.whole
def test_a_printed_report_has_sums_last_and_no_page_with_only_a_footer(opened: Any) -> None:
    page = opened("ordinary").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('tfoot')).display") == "table-row-group"
    assert page.evaluate("getComputedStyle(document.querySelector('footer')).breakBefore") == "avoid"
    heights = page.locator("#print-panels svg.chart").evaluate_all(
        "charts => charts.map((chart) => chart.getBoundingClientRect().height)"
    )
    # The three charts of a file fit on one printed page.
    assert max(heights) <= 180
