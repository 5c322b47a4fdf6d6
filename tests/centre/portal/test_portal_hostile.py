"""Tests the portal with hostile job ids and addresses."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from portal_site import OWN, Server, fill, portal

HOSTILE = (
    "<script>alert(1)</script>",
    "'; DROP TABLE job_io; --", '" onmouseover="alert(1)', "../../etc/passwd", "..", ".",
    "100%", "%2e%2e%2f", "a b\tc", "line\nbreak", "{{ 1013*1013 }}",
    "${1013*1013}", "=cmd|' /C calc'!A0", "\\x41",
    "?format=csv#x",
    "日本語", "\u202eevil", "x" * 10_000, "1:2", "::", "9:9:9:9", "e.1", "-",
    "&amp;", "a/b/c", "//evil.example/",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with portal(tmp_path_factory.mktemp("hostile")) as server:
        fill(server.collector, extra=list(HOSTILE))
        yield server


def test_hostile_ids_are_shown_as_text(site: Server) -> None:
    status, text, _ = site.get("/jobs?top=1000")
    assert status == 200
    assert "<script>alert" not in text and 'onmouseover="' not in text and "1026169" not in text
    listed = list(csv.DictReader(io.StringIO(site.get("/jobs?top=1000&format=csv")[1])))
    assert len(listed) == len(HOSTILE) + 2
    assert not any(row["job"].startswith(("=", "+", "-", "@")) for row in listed)


def test_invisible_characters_are_shown_as_escapes(site: Server) -> None:
    unseen = "\u202e\u2066\u200b\u200f\ufeff"
    pages = [site.get("/jobs?top=1000")[1], site.get("/jobs?q=" + quote(unseen))[1]]
    pages.append(site.get("/jobs/" + quote("\u202eevil", safe=""))[1])
    assert not any(letter in page for page in pages for letter in unseen)
    assert "\\u202eevil" in pages[0] and "\\u202eevil" in pages[2]


SHOWN = {
    "/": {"range": "1h", "end": ""},
    "/jobs": {"range": "1h", "end": "", "at": "servers", "user": "x", "fs": "lfs", "q": "x", "sort": "job",
              "order": "up", "top": "3"},
    "/heavy": {"range": "1d", "end": "", "user": "x", "fs": "lfs", "q": "x", "sort": "job", "order": "up",
               "top": "3"},
    f"/jobs/{OWN}": {"range": "1h", "end": "", "at": "servers"},
    f"/jobs/?id={OWN}": {"range": "1h", "end": "", "at": "servers"},
    "/events": {"range": "1h", "end": "", "host": "x", "kind": "io-error", "severity": "note", "fs": "x",
                "q": "x"},
    "/machines": {"range": "1h", "end": "", "host": "oss01"},
    "/machines?host=oss01": {"range": "1h", "end": "", "at": "servers", "sort": "job", "order": "up"},
    "/use": {"month": "2026-11", "at": "servers"},
    "/agents": {"range": "1h", "end": "", "top": "3"},
}  # fmt: skip
"""Address -> parameters, each with a value that is valid on all pages that use it."""
WORDS = {"id": "7", "host": "x", "month": "2026-11"} | {
    word: value for used in SHOWN.values() for word, value in used.items()
}


@pytest.mark.parametrize("address", SHOWN)
@pytest.mark.parametrize("word", WORDS)
def test_unknown_parameters_of_a_page_are_refused(site: Server, address: str, word: str) -> None:
    if f"{word}=" in address:
        return
    joint = "&" if "?" in address else "?"
    status, text, _ = site.get(f"{address}{joint}{word}={WORDS[word]}")
    assert status == (200 if word in SHOWN[address] else 400), word
    assert (f"{word}: this page has no such parameter" in text) == (status == 400)
    assert site.get(f"{address}{joint}lang=ja")[0] == 200
    # Only downloads have a parameter `table`.
    assert site.get(f"{address}{joint}table=jobs")[0] == 400


@pytest.mark.whole
def test_every_link_of_a_page_works(site: Server) -> None:
    left, seen = list(SHOWN), set()
    while left and len(seen) < 150:
        address = left.pop(0)
        if address in seen:
            continue
        seen.add(address)
        status, text, _ = site.get(address)
        assert status in (200, 404), address[:200]
        found = [unescape(link) for link in re.findall(r'href="(/[^"#]*)"', text)]
        left += [link for link in found if len(link) < 300 and not link.startswith("/static")]
        for form in re.findall(r"<form[^>]*method=\"get\".*?</form>", text, re.DOTALL):
            names = re.findall(r'name="(\w+)"', form)
            action = re.search(r'action="([^"]*)"', form)
            sent = "&".join(f"{name}={WORDS.get(name, '')}" for name in names if name != "lang")
            assert action and site.get(f"{unescape(action[1])}?{sent}")[0] in (200, 404), (address, sent)
    assert len(seen) == 150


@pytest.mark.whole
def test_every_hostile_job_id_has_its_own_page(site: Server) -> None:
    text = site.get("/jobs?top=1000")[1]
    links = [unescape(link) for link in re.findall(r'<a class="name" href="([^"]*)"', text)]
    assert len(links) == len(HOSTILE) + 2
    for link in links:
        # No browser interprets any of these links as an address of another site.
        assert re.match(r"/jobs/([A-Za-z0-9_@,%+=:\[\]~-]|\?id=)", link) and "/.." not in link, link
        status, page, _ = site.get(link)
        assert status == 200, link[:200]
        assert "<script>alert" not in page and 'onmouseover="' not in page


@pytest.mark.parametrize("job", [*HOSTILE, "\x00", "\r\nSet-Cookie: a=b", "7" * 30_000])
def test_a_page_is_shown_for_any_text_as_a_job_id(site: Server, job: str) -> None:
    for path in (f"/jobs/{quote(job, safe='')}", f"/jobs/?id={quote(job, safe='')}"):
        status, text, headers = site.get(path)
        assert status in (200, 404), path[:100]
        assert "Traceback" not in text and "set-cookie" not in headers


@pytest.mark.parametrize(
    "query",
    [
        "range=7x", "range=%00", "end=tomorrow", "end=99999999999999",
        "end=0001-01-01T00:00", "end=2026-13-01T00:00", "end=2026-05-28T20:00zzz", "end=2026-05-28T20:00:99",
        "end=2026-05-28T20:00:", "end=2026-5-28T20:00",
        "sort=drop", "order=sideways", "top=0", "top=-1", "top=1e9", "top=%D9%A1", "at=nowhere", "format=exe",
        "lang=xx", "format=csv&table=nothing", "q=" + "x" * 20_001, "sort=job%27--",
        "colour=red", "Range=1h", "range=1h&range=6h", "top=5&drop=1", "%E2%80%AErange=1h",
    ],
)  # fmt: skip
def test_invalid_requests_get_an_error_page(site: Server, query: str) -> None:
    status, text, headers = site.get("/jobs?" + query)
    assert status == 400 and "content-security-policy" in headers
    assert "<h1>" in text and "Traceback" not in text and len(text) < 4000


@pytest.mark.parametrize("month", ["2026", "2026-13", "1999-01", "x", "2026-1", "\u0662026-01", "2026-01-01"])
def test_invalid_months_are_refused(site: Server, month: str) -> None:
    assert site.get("/use?month=" + quote(month))[0] == 400


@pytest.mark.parametrize(
    "query", ["q=%27%22%25_%5C", "user=%27+OR+1%3D1--", "fs=lfs%27", "q=%00", "q=%FF%FE"]
)
def test_unusual_filter_texts_are_used_literally(site: Server, query: str) -> None:
    status, text, _ = site.get("/jobs?" + query)
    assert status == 200 and OWN not in re.findall(
        r"\d+", text.split("<tbody>")[-1] if "<tbody>" in text else ""
    )


def test_unknown_addresses_get_an_error_page(site: Server) -> None:
    for path in ("/nothing", "/jobs/../..", "/%", "//evil.example/", "/.env", "/api/v2"):
        status, text, _ = site.get(path)
        assert status in (400, 404) and "Traceback" not in text, path
    assert site.ask("POST", "/jobs")[0] == 405
    assert site.ask("DELETE", "/")[0] == 405


def test_the_title_is_short_for_any_length_of_job_id(site: Server, tmp_path: Path) -> None:
    text = site.get("/jobs/?id=" + "x" * 10_000)[1]
    title = re.search(r"<title>([^<]*)</title>", text)
    assert title and len(title[1]) < 80
