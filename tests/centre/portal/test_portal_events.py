"""Tests events in the portal: filters, access, marks on charts, notices, probes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from batches import Event, frame
from iodock.centre.monitor.event_kinds import OVER, SEVERITY_TITLES, TITLES
from iodock.centre.monitor.questions.events import SEVERITIES
from iodock.centre.monitor.rolling import DAY, tidy
from places import ROOT
from portal_events import NOW, events, probe, push
from portal_site import OWN, SECOND, Server, fill, portal, with_tokens

KINDS = ROOT / "crates/iodock-agent/src/events/kinds.rs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("events")
    access, secrets = with_tokens(folder)
    with portal(folder / "store", access) as server:
        server.secrets = secrets
        fill(server.collector)
        push(server, events())
        probe(server, 3)
        yield server


def rows(site: Server, path: str, role: str = "operator") -> list[dict[str, str]]:
    status, text, _ = site.get(path + ("&" if "?" in path else "?") + "format=csv", role)
    assert status == 200
    return list(csv.DictReader(io.StringIO(text)))


def kinds(site: Server, path: str, role: str = "operator") -> list[str]:
    return [row["kind"] for row in rows(site, path, role)]


def test_operators_see_all_events_newest_first(site: Server) -> None:
    found = rows(site, "/events")
    assert [row["kind"] for row in found] == [
        "io-error", "site-own", "path-back", "path-lost", "rebuild-begun", "array-degraded",
    ]  # fmt: skip
    first = found[0]
    assert (first["host"], first["file_system"], first["target"]) == ("oss01", "lfs", "sda")
    assert (first["count"], first["ts"]) == ("100000", str(NOW - 70 * SECOND))
    assert first["text"] == "I/O error, dev sda, sector 5" and first["severity"] == "error"
    answer = json.loads(site.get("/events?format=json", "operator")[1])
    assert answer["rows"][0]["last_ts"] == NOW - 20 * SECOND
    page = site.get("/events", "operator")[1]
    assert "&lt;img src=x" in page and "<img src=x" not in page and "100,000" in page


def test_filters_select_events(site: Server) -> None:
    assert kinds(site, "/events?host=mds01") == ["path-back", "path-lost"]
    assert kinds(site, "/events?kind=io-error") == ["io-error"]
    assert kinds(site, "/events?severity=error") == ["io-error", "array-degraded"]
    assert kinds(site, "/events?severity=warning&host=mds01") == ["path-lost"]
    assert "site-own" not in kinds(site, "/events?fs=lfs") and len(kinds(site, "/events?fs=lfs")) == 5
    assert kinds(site, "/events?q=SECTOR") == ["io-error"]
    assert kinds(site, "/events?host=it%27s") == []
    assert kinds(site, "/events?kind=disk-reset") == []
    for unknown in ("foo", "%27%3B--", "IO-ERROR"):
        status, page, _ = site.get(f"/events?kind={unknown}", "operator")
        assert status == 400 and "io-error" in page
    assert kinds(site, "/events?end=2026-01-01T00:00") == []
    status, page, _ = site.get("/events?severity=fatal", "operator")
    assert status == 400 and "note, warning, error" in page
    # The chosen filters appear in the form and in the links.
    page = site.get("/events?host=mds01&severity=warning", "operator")[1]
    assert 'value="mds01"' in page and re.search(r'<option value="warning" selected>', page)
    assert "host=mds01&amp;severity=warning" in page


def test_users_see_events_of_file_systems_but_not_of_machines(site: Server) -> None:
    found = rows(site, "/events", "user")
    assert [row["kind"] for row in found] == [
        "io-error", "path-back", "path-lost", "rebuild-begun", "array-degraded",
    ]  # fmt: skip
    assert not {"host", "target", "text", "source"} & set(found[0])
    status, page, _ = site.get("/events", "user")
    assert status == 200 and "sector" not in page and "mds01" not in page and "table-losses" not in page
    # A user cannot find an event by searching for a word in its message, either.
    for word in ("q=sector", "host=r01"):
        assert site.get(f"/events?{word}", "user")[0] == 400


@pytest.mark.parametrize("role", ["operator", "user"])
def test_all_users_see_a_degraded_file_system(site: Server, role: str) -> None:
    for path in ("/", "/jobs", f"/jobs/{OWN}", "/events"):
        page = site.get(path, role)[1]
        assert page.count("lfs is degraded") == 2, path
        assert "array degraded, since" in page and "rebuild in progress, since" in page
        assert "path lost, since" not in page
    assert "縮退状態" in site.get("/?lang=ja", role)[1]


def test_a_notice_ends_with_its_event_or_when_the_machine_is_silent(tmp_path: Path) -> None:
    old = NOW - 2 * 3600 * SECOND
    begun = [
        Event(NOW - 9 * SECOND, "array-degraded", 2, file_system="new"),
        Event(NOW - 8 * SECOND, "path-lost", 1, "multipath", "new", "a"),
        Event(NOW - 7 * SECOND, "all-paths-lost", 2, "multipath", "new", "a"),
    ]
    over = [
        Event(NOW - 2 * SECOND, "array-whole", 0, file_system="new"),
        Event(NOW - 1 * SECOND, "target-gone", 1, "multipath", "new", "a"),
        # No source reports the end of these events: one is from a log, and one from a probe that no longer
        # runs.
        Event(NOW - 1 * SECOND, "path-lost", 1, "kernel-log", "new", "8:16"),
        Event(NOW - 1 * SECOND, "probe-failed", 2, "probe", "new", "/new"),
    ]
    with portal(tmp_path / "begun") as server:
        push(server, {"gone": [Event(old, "array-degraded", 2, file_system="old")], "oss09": begun})
        page = server.get("/")[1]
        assert "old is degraded" not in page and page.count("new is degraded") == 2
        assert "all paths lost, since" in page and not re.search(r"\bpath lost, since", page)
    with portal(tmp_path / "over") as server:
        push(server, {"oss09": [*begun, *over]})
        assert "is degraded" not in server.get("/")[1]


def test_events_are_marked_on_the_charts_of_their_file_system(site: Server) -> None:
    for path in ("/", f"/jobs/{OWN}?range=1h"):
        page = site.get(path, "operator")[1]
        titles = set(re.findall(r'class="mark (\w+)" d="M[0-9.]+ 0V100"><title>([^<]+)</title>', page))
        assert ("error", "array degraded") in titles and ("warning", "rebuild in progress") in titles
        assert not any(label == "path restored" for _, label in titles)
        assert "4 events" in page
    assert "sector" not in site.get("/", "user")[1]


def test_probe_results_are_drawn_with_their_limit(site: Server) -> None:
    page = site.get("/", "operator")[1]
    assert "Response time of probes" in page and "/lfs/probe (r01)" in page and 'class="line limit"' in page
    assert "r01" not in site.get("/", "user")[1].split("Response time of probes")[1].split("</figure>")[0]
    readout = re.search(r'Response time of probes.*?data-readout="([^"]+)"', page, re.DOTALL)
    assert readout and ";4 ms&" in readout[1] and ";4 s&" in readout[1]


def test_files_of_events_are_merged_and_kept(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        for number in range(3):
            push(server, {"a": [Event(NOW - number * SECOND, "link-down")]}, spool=number)
        collector = server.collector
        assert len(collector.store.catalogue.of("events", "fine")) == 3
        tidy(collector.store, collector.writer, NOW + 2 * DAY)
        assert len(collector.store.catalogue.of("events", "fine")) == 1
        found = collector.store.table("FROM events", begin=0, end=1 << 62, resolution="fine")
        assert found.num_rows == 3 and found.column("severity").to_pylist() == ["warning"] * 3


def test_an_event_received_repeatedly_counts_once(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        sent = frame(1, [], events=[Event(NOW, "link-down")])
        server.collector.push(sent)
        server.collector.push(sent)
        server.collector.flush()
        assert len(rows(server, "/events", "")) == 1


def test_all_event_kinds_of_the_agent_have_titles() -> None:
    source = KINDS.read_text(encoding="utf-8")
    told = set(re.findall(r'kind\(\s*"([a-z-]+)"', source))
    assert told == set(TITLES)
    assert set(OVER) | set(OVER.values()) <= told and tuple(SEVERITY_TITLES) == SEVERITIES
