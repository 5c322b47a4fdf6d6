"""Tests the page of one machine: one with an agent, and one recorded by sysstat."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from batches import Event, frame
from iodock.centre.monitor.sar import read
from places import FIXTURES
from portal_machine import READ, WRITTEN, run_machine
from portal_site import OTHER, OWN, SECOND, STEPS, Server, fill, portal, with_tokens

RECORDED = FIXTURES / "monitor" / "sadf-12.6.1.json"
HOSTILE = "\"><script>alert(1)</script>' OR 1=1 --"
"""The disk's activity in a step of 10 s: it is busy for a quarter of it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("machine")
    access, secrets = with_tokens(folder)
    with portal(folder / "store", access) as server:
        server.secrets = secrets
        fill(server.collector)
        run_machine(server.collector, "oss01", b"D" * 16)
        run_machine(server.collector, HOSTILE, b"H" * 16)
        now = time.time_ns()
        event = Event(now - 90 * SECOND, "array-degraded", 2)
        other = Event(now - 80 * SECOND, "link-down", 1)
        server.collector.push(frame(100, [], spool=b"D" * 16, host="oss01", events=[event]))
        server.collector.push(frame(1, [], spool=b"E" * 16, host="mds01", events=[other]))
        for recorded in read(RECORDED):
            for one in recorded.frames:
                server.collector.push(one)
        server.collector.flush()
        yield server


def table(site: Server, path: str, name: str) -> list[dict[str, str]]:
    status, text, _ = site.get(f"{path}&format=csv&table={name}", "operator")
    assert status == 200, text
    return list(csv.DictReader(io.StringIO(text)))


def recorded() -> tuple[list[dict[str, Any]], str]:
    """Returns readings of sysstat, and the page's address for that time."""
    readings = json.loads(RECORDED.read_text())["sysstat"]["hosts"][0]["statistics"]
    (frames,) = read(RECORDED)
    return readings, f"/machines?host=oss07&range=15m&end={frames.end // SECOND + 60}"


def test_the_page_lists_the_disks_of_the_machine(site: Server) -> None:
    found = {row["target"]: row for row in table(site, "/machines?host=oss01", "disks")}
    assert set(found) == {"sda"}
    disk = found["sda"]
    assert (int(disk["read_bytes"]), int(disk["write_bytes"])) == (STEPS * READ, STEPS * WRITTEN)
    assert int(disk["operations"]) == STEPS * 50
    assert float(disk["busy"]) == pytest.approx(0.25, rel=0.15)
    steps = table(site, "/machines?host=oss01", "disks_over_time")
    assert sum(float(row["read_bytes"]) for row in steps) == pytest.approx(STEPS * READ)


def test_the_page_shows_load_and_pressure_over_time(site: Server) -> None:
    rows = table(site, "/machines?host=oss01", "load_over_time")
    assert {row["load"] for row in rows if row["what"] == "load"} == {"1.5"}
    some = sum(float(row["some_us"]) for row in rows if row["what"] == "io")
    assert some == pytest.approx(STEPS * 5_000_000)


@pytest.mark.parametrize(
    ("host", "jobs"),
    [("oss01", {OWN, OTHER}), ("r01", {OWN}), ("r03", {OTHER}), ("r99", set())],
)
def test_the_page_lists_jobs_that_ran_on_or_used_the_machine(site: Server, host: str, jobs: set[str]) -> None:
    assert {row["job"] for row in table(site, f"/machines?host={host}", "jobs")} == jobs


def test_jobs_of_a_month_come_from_summaries(site: Server) -> None:
    site.collector.tend(time.time_ns() + 3700 * SECOND)
    assert (site.collector.store.folder / "summaries").exists()
    for host, jobs in (("r03", {OTHER}), ("oss01", {OWN, OTHER})):
        assert {row["job"] for row in table(site, f"/machines?host={host}&range=30d", "jobs")} == jobs


def test_the_page_lists_only_events_of_the_machine(site: Server) -> None:
    assert [row["kind"] for row in table(site, "/machines?host=oss01", "events")] == ["array-degraded"]
    status, text, _ = site.get("/machines?host=oss01", "operator")
    assert status == 200 and text.count('class="mark error"') == 6


def test_a_machine_with_imported_sysstat_data_is_shown(site: Server) -> None:
    readings, address = recorded()
    disks = {row["target"]: row for row in table(site, address, "disks")}
    written = sum(disk["wkB"] for one in readings for disk in one["disk"] if disk["disk-device"] == "vda")
    assert float(disks["vda"]["write_bytes"]) == pytest.approx(written * 1024, abs=1)
    loads = [row for row in table(site, address, "load_over_time") if row["what"] == "load"]
    greatest = max(one["queue"]["ldavg-1"] for one in readings)
    assert max(float(row["greatest"]) for row in loads) == pytest.approx(greatest)
    status, text, _ = site.get(address, "operator")
    assert status == 200 and "Load: tasks that run or wait" in text


def test_users_cannot_see_machines(site: Server) -> None:
    for path in ("/machines", "/machines?host=oss01", "/machines?host=nothing"):
        assert site.get(path, "user")[0] == 404
        assert site.get(path, "")[0] == site.get(path, "agent")[0] == 401
    for path in ("/", "/events", f"/jobs/{OWN}"):
        assert "/machines" not in site.get(path, "user")[1]


@pytest.mark.parametrize("path", ["/", "/events", f"/jobs/{OWN}", "/machines"])
def test_host_names_link_to_their_machine(site: Server, path: str) -> None:
    host = "r01" if "jobs" in path else "oss01"
    assert f'href="/machines?host={host}' in site.get(path, "operator")[1]


def test_links_keep_the_time_range(site: Server) -> None:
    text = site.get("/events?range=1d&lang=ja", "operator")[1]
    assert "/machines?host=oss01&amp;range=1d&amp;lang=ja" in text


def test_hostile_host_names_are_plain_text(site: Server) -> None:
    status, text, _ = site.get(f"/machines?host={quote(HOSTILE)}", "operator")
    assert status == 200 and "<script>alert" not in text and "sda" in text
    assert "<script>alert" not in site.get("/machines", "operator")[1]


def test_an_unknown_machine_is_shown_as_silent(site: Server) -> None:
    status, text, _ = site.get("/machines?host=r99", "operator")
    assert status == 200 and "There are no readings of this machine" in text
    assert site.get("/machines?host=r99&range=2y", "operator")[0] == 400
