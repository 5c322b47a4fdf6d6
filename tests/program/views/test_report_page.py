"""Tests the report's document: safe with any names, small for any run, complete in both languages."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from iodock.program.views.report.page import embedded_json, render
from iodock.shared.labels import HEADINGS
from iodock.shared.language import LANGUAGES
from places import SOURCE
from report_samples import HOSTILE, SAMPLES

ASSETS = SOURCE / "shared/pages/assets"


class Outline(HTMLParser):
    """Collects tags, attributes and the text outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def outline(document: str) -> Outline:
    parsed = Outline()
    parsed.feed(document)
    return parsed


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", SAMPLES)
def test_reports_of_all_runs_contain_no_external_addresses(name: str, language: str) -> None:
    parsed = outline(render(SAMPLES[name](), language))
    assert parsed.tags.count("script") == 2 and parsed.tags.count("style") == 1
    assert not {"img", "link", "iframe", "object", "base", "form"} & set(parsed.tags)
    addresses = [value or "" for key, value in parsed.attributes if key in ("href", "src", "action")]
    assert addresses and all(address.startswith("#") for address in addresses)
    assert not [key for key, _ in parsed.attributes if key.startswith("on") or key == "style"]


def test_the_security_policy_allows_only_the_own_script_and_style() -> None:
    document = render(SAMPLES["hostile"](), "en")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', document)
    assert policy and policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]


def test_hostile_names_are_plain_text() -> None:
    document = render(SAMPLES["hostile"](), "en")
    for hostile in ("<script>alert", "<img src=x", "</title><script>", "<b>loss", "<u>.iodock"):
        assert hostile not in document
    data = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', document, re.DOTALL)
    assert data and json.loads(data[1])["page"]["names"] == HOSTILE


def test_embedded_json_cannot_end_its_script_element() -> None:
    written = embedded_json(["</script>", "<!--", "&lt;", "\u2028\u2029", "\ud800"])
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == ["</script>", "<!--", "&lt;", "\u2028\u2029", "?"]


def test_every_column_of_the_samples_has_a_label() -> None:
    for make in SAMPLES.values():
        data = make().data
        for table in (
            data["calls"],
            data["files"],
            data["processes"],
            data["failures"],
            *data["call_files"].values(),
        ):
            assert not set(table["columns"]) - set(HEADINGS)


def test_page_source_files_stay_below_400_lines() -> None:
    for path in ASSETS.rglob("*.*"):
        assert len(path.read_text().splitlines()) < 400, path


def test_unknown_languages_are_refused() -> None:
    with pytest.raises(ValueError, match="'xx' has no texts"):
        render(SAMPLES["empty"](), "xx")
