"""Tests the page of agents: which agents send data, since when others are silent, and what they lost."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pytest

from batches import LEVEL, Entry, Event, Part, frame
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.limits import Refusal
from iodock.centre.monitor.sar import read
from iodock.centre.portal.shown.page import Site
from iodock.shared.settings import ServerStates
from places import FIXTURES
from portal_past import DAY, EVIL, HOUR
from portal_site import SECOND, Server, fill, portal, with_tokens

QUIET = {"minutes": 200 * SECOND, "hours": 3 * HOUR, "days": 2 * DAY, "weeks": 20 * DAY}
"""Machine -> time from its last reading to the start of the site, ns."""
WHY = "a name that it may not use"


def now() -> int:
    return time.time_ns() // SECOND * SECOND


@cache
def begun() -> int:
    """Returns the start of the site that several tests share. A constant would not do, because readings
    become outdated between import and the first test."""
    return now()


def tell(collector: Collector, host: str, until: int, readings: int = 2, dropped: int = 0) -> None:
    """Sends readings as the agent of HOST, one every 10 s, the last one at UNTIL."""
    for number in range(readings):
        at = until - (readings - 1 - number) * 10 * SECOND
        load = Entry("", {("load1_percent", LEVEL): 150}, evidence=0)
        part = Part(at, [load], "load", "", "load", full=number == 0)
        spool = host.encode()[:16].ljust(16, b"-")
        collector.push(frame(number + 1, [part], spool=spool, host=host, dropped=dropped))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("agents")
    access, secrets = with_tokens(folder)
    with portal(folder / "store", access) as server:
        server.secrets = secrets
        fill(server.collector)
        for host, ago in QUIET.items():
            tell(server.collector, host, begun() - ago)
        tell(server.collector, EVIL, begun())
        for _ in range(3):
            server.collector.refuse(Refusal("token nodes at 192.0.2.7", WHY), "r09")
        server.collector.refuse(Refusal("a stranger", "no batch"))
        server.collector.flush()
        yield server


def rows(
    site: Server, words: str = "", table: str = "agents", role: str = "operator"
) -> list[dict[str, str]]:
    status, text, _ = site.get(f"/agents?format=csv&table={table}{words}", role)
    assert status == 200, text
    return list(csv.DictReader(io.StringIO(text)))


def test_silent_agents_are_listed_first_with_their_last_reading(site: Server) -> None:
    found = rows(site)
    told = [(row["host"], row["state"], row["read_ts"]) for row in found[:3]]
    assert told == [(host, "quiet", str(begun() - QUIET[host])) for host in ("minutes", "hours", "days")]
    assert float(found[1]["quiet_s"]) == pytest.approx(3 * 3600, abs=300)
    heard = {row["host"]: row for row in found if row["state"] == "heard"}
    assert {"mds01", "oss01", "r01"} < set(heard) and not any(row["quiet_s"] for row in heard.values())
    assert (heard["oss01"]["file_system"], heard["r01"]["file_system"]) == ("lfs", "")


@pytest.mark.parametrize(
    ("words", "quiet"),
    [
        ("&range=30d", {"minutes", "hours", "days", "weeks"}),
        ("&range=1d", {"minutes", "hours"}),
        ("&range=15m", {"minutes"}),
        ("&range=1d&end={2}", {"hours"}),
        ("&range=1d&end={4}", set()),
    ],
)
def test_the_page_lists_agents_that_reported_in_the_time_range(
    site: Server, words: str, quiet: set[str]
) -> None:
    hours = [(begun() - number * HOUR) // SECOND for number in range(5)]
    assert {row["host"] for row in rows(site, words.format(*hours)) if row["state"] == "quiet"} == quiet


def test_the_last_reading_stays_exact_as_rows_are_summed_up(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        moment = now()
        begin = moment - 3 * HOUR
        tell(server.collector, "gone", begin, readings=200)
        tell(server.collector, "there", moment - 10 * SECOND, readings=200)
        server.collector.flush()
        server.collector.tend(moment + HOUR)
        assert server.collector.store.catalogue.of("targets", "ten_minutes")
        found = {row["host"]: row for row in rows(server, role="")}
        assert (found["gone"]["read_ts"], found["gone"]["state"]) == (str(begin), "quiet")
        assert (found["there"]["read_ts"], found["there"]["state"]) == (str(moment - 10 * SECOND), "heard")
        # Ten minutes ago, the collector received readings of both.
        for host, at in (("gone", begin - 605 * SECOND), ("there", moment - 605 * SECOND)):
            past = {row["host"]: row for row in rows(server, f"&range=1h&end={at // SECOND}", role="")}
            assert past[host]["state"] == "heard", host


def test_the_gap_of_a_returning_agent_is_shown(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        moment = now()
        tell(server.collector, "away", moment - 5 * HOUR)
        load = Entry("", {("load1_percent", LEVEL): 150}, evidence=0)
        back = Part(moment - 20 * SECOND, [load], "load", "", "load", full=True)
        server.collector.push(frame(3, [back], spool=b"away".ljust(16, b"-"), host="away"))
        server.collector.flush()
        (after,) = rows(server, role="")
        (before,) = rows(server, f"&end={(moment - HOUR) // SECOND}", role="")
        assert (after["state"], after["read_ts"]) == ("heard", str(moment - 20 * SECOND))
        assert (before["state"], before["read_ts"]) == ("quiet", str(moment - 5 * HOUR))


def test_agents_that_send_only_events_count_as_reporting(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        moment = now()
        event = Event(moment - 30 * SECOND, "link-down")
        server.collector.push(frame(1, [], spool=b"E" * 16, host="told", events=[event]))
        server.collector.flush()
        assert [(row["host"], row["state"]) for row in rows(server, role="")] == [("told", "heard")]


def test_imported_sysstat_data_does_not_count_as_an_agent(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        for recorded in read(FIXTURES / "monitor" / "sadf-12.6.1.json"):
            for one in recorded.frames:
                server.collector.push(one)
        server.collector.flush()
        end = recorded.end // SECOND + 60
        machines = server.get(f"/machines?format=csv&table=servers&range=1h&end={end}")[1]
        assert "oss07" in machines and rows(server, f"&range=1h&end={end}", role="") == []


def test_losses_are_counted_by_machine(site: Server, tmp_path: Path) -> None:
    refused = next(row for row in rows(site) if row["host"] == "r09")
    assert (refused["state"], refused["refused"], refused["read_ts"]) == ("refused", "3", "")
    told = {(row["host"], row["name"], row["count"]) for row in rows(site, table="losses")}
    # The losses include those of senders whose name is unknown.
    assert told == {("r09", "refused-samples", "3"), ("", "refused-samples", "1")}
    page = site.get("/agents", "operator")[1]
    assert "Everything that one agent sent in this time was refused." in page
    with portal(tmp_path) as server:
        moment = now()
        tell(server.collector, "full", moment - 20 * SECOND, dropped=4)
        server.collector.flush()
        (full,) = rows(server, role="")
        assert (full["dropped"], full["refused"], full["unread"]) == ("4", "0", "0") and full["loss_ts"]


def test_only_operators_see_the_page_of_agents(site: Server) -> None:
    assert site.get("/agents", "user")[0] == 404
    assert site.get("/agents", "")[0] == site.get("/agents", "agent")[0] == 401
    assert 'href="/agents"' in site.get("/", "operator")[1]
    assert "/agents" not in site.get("/", "user")[1]
    assert re.search(r'href="/agents" aria-current="page"', site.get("/agents", "operator")[1])


def test_the_page_counts_agents_and_links_to_machines(site: Server) -> None:
    page = site.get("/agents", "operator")[1]
    assert "3 of 8 agents are quiet." in page and "for more than 2 min" in page
    assert 'href="/machines?host=hours' in page and quote("<script>") in page and "<script>alert" not in page
    short = site.get("/agents?top=2", "operator")[1]
    assert "The first 2 of 8 machines." in short and "top=10000" in short and "oss01" not in short
    japanese = site.get("/agents?lang=ja", "operator")[1]
    assert "エージェント 8 台中 3 台" in japanese and "Quiet" not in japanese and ">quiet<" not in japanese


def test_the_page_of_agents_handles_all_well_and_no_agents(tmp_path: Path) -> None:
    with portal(tmp_path / "empty") as server:
        assert "No agent has pushed anything yet" in server.get("/agents")[1]
    with portal(tmp_path / "well") as server:
        fill(server.collector)
        page = server.get("/agents")[1]
        assert "All 3 agents are reporting." in page and "Nothing was lost in this time" in page


def test_with_a_long_interval_agents_are_called_silent_later(tmp_path: Path) -> None:
    slow = Site(limits=ServerStates(sample_s=300, silent_samples=3))
    with portal(tmp_path, site=slow) as server:
        moment = now()
        tell(server.collector, "slow", moment - 600 * SECOND)
        server.collector.flush()
        assert [row["state"] for row in rows(server, role="")] == ["heard"]
        assert "for more than 15 min" in server.get("/agents")[1]
