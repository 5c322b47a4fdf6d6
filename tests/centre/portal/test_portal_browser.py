"""Tests the portal in a real browser: sorting, live refresh, narrow screens, dark mode, the form for
tokens."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal_events import events, probe, push
from portal_machine import run_machine
from portal_past import EVIL, Past
from portal_site import OTHER, OWN, Server, fill, portal, with_tokens

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
PAGES = (
    "/", "/now", "/jobs", f"/jobs/{OWN}", "/jobs/100", "/heavy", "/events", "/use", "/agents", "/machines",
    "/machines?host=oss01", "/machines?host=mds01",
)  # fmt: skip
HOSTILE = ["<img src=x onerror=alert(1)>", '"><script>alert(1)</script>', "9" * 10_000]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with portal(tmp_path_factory.mktemp("browser")) as server:
        fill(server.collector, extra=HOSTILE, queue=500, wait_us=500_000)
        push(server, events())
        probe(server, 3)
        run_machine(server.collector, "oss01", b"D" * 16)
        past = Past(server.collector)
        for day, seconds in enumerate((600, 620, 590, 605, 610, 615), 1):
            past.run(f"10{day}", "ocean", 24.0 * day, seconds)
        past.run("100", "ocean", 3, 1500)
        past.run("400", EVIL, 5, 100)
        past.push()
        yield server


@pytest.fixture
def opened(browser: Any, site: Server) -> Iterator[Any]:
    contexts, problems, addresses = [], [], []

    def open_page(path: str, width: int = 1280, **options: str) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        # The browser reports violations of the content security policy on the console.
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append("dialog: " + dialog.message))
        page.on("request", lambda request: addresses.append(request.url))
        page.goto(site.url + path)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
    assert [address for address in addresses if not address.startswith(site.url)] == []


def column(page: Any, number: int) -> list[str]:
    cells = page.query_selector_all(f"#table-jobs tbody tr > :nth-child({number})")
    return [cell.inner_text().strip() for cell in cells]


@pytest.mark.whole
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("width", "scheme", "locale"), [(1280, "light", "en"), (390, "dark", "ja")])
def test_every_page_fits_the_screen_without_browser_errors(
    opened: Any, path: str, width: int, scheme: str, locale: str
) -> None:
    page = opened(path, width, color_scheme=scheme, locale=locale)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.lang") == locale
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert "undefined" not in page.inner_text("body") and "NaN" not in page.inner_text("body")


@pytest.mark.whole
def test_a_long_event_wraps_on_a_narrow_screen(opened: Any) -> None:
    page = opened("/", 390, locale="ja")
    page.evaluate(
        "document.querySelector('.events .severity').append('サーバがクライアントを追い出した'.repeat(5))"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_click_on_a_heading_sorts_without_leaving_the_page(opened: Any) -> None:
    page = opened("/jobs")
    page.evaluate("window.stays = true")
    assert column(page, 1)[0] == OTHER
    page.click("#table-jobs th a:text-is('job')")
    page.wait_for_selector("th[aria-sort=ascending]")
    ascending = column(page, 1)
    page.click("#table-jobs th a:text-is('job')")
    page.wait_for_selector("th[aria-sort=descending]")
    assert column(page, 1) == ascending[::-1] and OWN in ascending
    assert page.evaluate("window.stays") and "sort=job" in page.url
    page.go_back()
    page.wait_for_selector("th[aria-sort=ascending]")


@pytest.mark.whole
def test_a_form_filters_events(opened: Any) -> None:
    page = opened("/events")
    page.select_option("select[name=severity]", "error")
    page.click("form.filters button")
    page.wait_for_selector("html[data-ready] option[value=error][selected]", state="attached")
    shown = page.query_selector_all("#table-events .severity")
    assert len(shown) == 2 and {one.inner_text() for one in shown} == {"error"}
    assert "severity=error" in page.url


@pytest.mark.whole
def test_a_click_changes_the_time_range(opened: Any) -> None:
    page = opened("/")
    before = page.inner_text(".span")
    page.click(".ranges a:text-is('6 hours')")
    page.wait_for_selector(".ranges a[aria-current]:text-is('6 hours')")
    assert page.inner_text(".span") != before and "range=6h" in page.url


@pytest.mark.whole
def test_new_readings_appear_automatically_unless_paused(opened: Any, browser: Any, tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        context = browser.new_context()
        page = context.new_page()
        # The script shortens the page's refresh interval of ten seconds to 50 ms.
        page.add_init_script(
            "const every = window.setInterval; window.setInterval = (what) => every(what, 50)"
        )
        page.goto(server.url + "/jobs")
        assert "No agent has pushed anything yet" in page.inner_text("#live")
        page.click("#pause")
        fill(server.collector)
        page.wait_for_timeout(300)
        assert "No agent" in page.inner_text("#live") and page.inner_text("#refresh-state") == "Paused."
        page.click("#pause")
        page.wait_for_selector(f"#table-jobs bdi:text-is('{OWN}')")
        context.close()


@pytest.mark.whole
def test_all_charts_of_a_job_show_the_value_under_the_pointer(opened: Any) -> None:
    page = opened(f"/jobs/{OWN}")
    drawings = page.query_selector_all(".drawing")
    widths = {(round(box["x"]), round(box["width"])) for box in (one.bounding_box() for one in drawings)}
    assert len(drawings) >= 6 and len(widths) == 1, "one time axis"
    drawings[0].hover()
    said = [one.inner_text() for one in page.query_selector_all(".chart output")]
    assert "391 KiB/s" in said and "195 KiB/s" in said and "500" in said
    page.hover("h1")
    assert not any(one.inner_text() for one in page.query_selector_all(".chart output"))


@pytest.mark.whole
def test_hostile_job_ids_have_no_effect(opened: Any) -> None:
    page = opened("/jobs")
    shown = column(page, 1)
    assert {HOSTILE[0], HOSTILE[1]} <= set(shown)
    page.click(f"#table-jobs bdi:text-is('{HOSTILE[0]}')")
    page.wait_for_selector("h1:has-text('<img')")


@pytest.mark.whole
def test_a_slow_run_is_shown_and_links_to_earlier_runs(opened: Any) -> None:
    page = opened("/jobs/100")
    assert page.inner_text("#verdict strong") == "slower than usual"
    page.click("#table-runs tbody bdi:text-is('102')")
    page.wait_for_selector("h1:has-text('102')")
    assert page.inner_text("#verdict strong") == "not enough runs"


@pytest.mark.whole
def test_hostile_job_names_have_no_effect(opened: Any) -> None:
    page = opened("/jobs?range=1d")
    shown = [one.get_attribute("title") or "" for one in page.query_selector_all("#table-jobs td.name bdi")]
    assert any(one.startswith('"><script>alert(1)') for one in shown)
    page = opened("/jobs/400")
    assert page.inner_text(".job-name").startswith('"><script>alert(1)')


@pytest.mark.whole
def test_a_click_on_a_host_name_opens_its_page(opened: Any) -> None:
    page = opened("/")
    page.click("#table-servers tbody bdi:text-is('oss01')")
    page.wait_for_selector("h1:has-text('Machine oss01')")
    assert page.inner_text("#table-disks tbody th") == "sda"
    charts = page.query_selector_all(".chart-title")
    assert len(charts) == 6 and len(page.query_selector_all(".drawing")) == 6
    page.click("#table-jobs tbody bdi:text-is('700')")
    page.wait_for_selector("h1:has-text('700')")


@pytest.mark.whole
def test_a_token_is_shown_once_and_can_be_revoked(browser: Any, tmp_path: Path) -> None:
    access, secrets = with_tokens(tmp_path)
    with portal(tmp_path / "store", access) as server:
        fill(server.collector)
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.url + "/jobs")
        page.fill("input[name=token]", "wrong")
        page.click("main button")
        page.wait_for_selector(".notice")
        page.fill("input[name=token]", secrets["user"])
        page.click("main button")
        page.wait_for_selector("nav a[aria-current]")
        assert "root" in page.inner_text(".who") and page.evaluate("document.cookie") == ""
        page.goto(server.url + "/jobs")
        assert column(page, 1) == [OWN]
        page.click(".who button")
        page.wait_for_selector("input[name=token]")
        page.goto(server.url + "/jobs")
        assert page.query_selector("input[name=token]") and OWN not in page.inner_text("body")
        context.close()
