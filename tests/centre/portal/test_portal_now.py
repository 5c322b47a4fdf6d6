"""Tests the page of the current state: since when it holds, the evidence, the jobs responsible, and who may
see it."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from iodock.centre.monitor.access import Role
from iodock.centre.portal.shown.page import Site
from iodock.centre.watch.verdict import Evidence, Suspect, Verdict
from iodock.centre.watch.watching import Spell, Watching
from portal_site import OWN_USER, Server, portal, with_tokens

SECOND = 1_000_000_000
HOSTILE = "<script>alert(1)</script>\u202e"
EVIDENCE = (
    Evidence("handled", 50.0, 1800.0, "1/s"), Evidence("waiting", 12_000.0, 1.0, "1"),
    Evidence("wait", 240.0, 1e-4, "s"), Evidence("cpu", 0.01, 0.06, "share"),
)  # fmt: skip


def stall(now: int) -> Verdict:
    suspects = (
        Suspect("800", 0.93, 0.9, (Evidence("opens", 280.0, 0.0, "1/s"),), "alice", HOSTILE, 12_096),
        Suspect("801", 0.2, 0.5, (), OWN_USER, "mine", 4),
        Suspect("802", 0.2, 0.5, ()),
    )
    return Verdict("lfs", "mds01", "metadata", "stall", now - 300 * SECOND, now, 0.9, 30, EVIDENCE, suspects)


class Fixed(Watching):
    """A monitor that returns the verdicts that the test sets."""

    said: tuple[Verdict, ...] = ()

    def look(self, now: int | None = None) -> tuple[Verdict, ...]:
        return self.said

    def history(self, least: object = None) -> tuple[Spell, ...]:
        return tuple(
            Spell(replace(one, since_ns=one.since_ns - 7200 * SECOND), one.since_ns) for one in self.said
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Fixed]]:
    folder = tmp_path_factory.mktemp("now")
    access, secrets = with_tokens(folder)
    with portal(folder / "store", access) as plain:
        watching = Fixed(plain.collector.store)
    with portal(folder / "other", access, Site(watching=watching)) as server:
        server.secrets = secrets
        yield server, watching


def rows(server: Server, table: str, role: str = "operator") -> list[dict[str, str]]:
    status, text, _ = server.get(f"/now?format=csv&table={table}", role)
    assert status == 200
    return list(csv.DictReader(io.StringIO(text)))


def test_the_page_shows_a_stall_with_evidence_and_job(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    watching.said = (stall(time.time_ns()),)
    text = server.get("/now", "operator")[1]
    assert "lfs has stopped responding" in text and "mds01" in text and "12.0 k" in text
    assert "requests handled: 50 /s (usually 1.80 k/s)" in text.replace("50/s", "50 /s")
    assert "job 800" in text and "alice" in text and "12,096 nodes" in text and "93 %" in text
    assert {row["what"] for row in rows(server, "evidence")} == {"handled", "waiting", "wait", "cpu"}
    assert [row["job"] for row in rows(server, "suspects")] == ["800", "801", "802"]
    (past,) = rows(server, "history")
    assert past["state"] == "stall" and past["seconds"] == "7200"


def test_the_page_advises_the_operator_and_the_owner(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    watching.said = (stall(time.time_ns()),)
    text = server.get("/now", "operator")[1]
    assert "Suspend the job, so that it sends no further requests" in text
    assert "waits for object servers" in text and "Open each file once" in text
    assert "nrs_tbf_rule" in text and "start j800 jobid={800 800:*}" in text
    # Users see neither what others' jobs did nor how an operator limits them.
    for_users = server.get("/now", Role.USER.value)[1]
    assert "Open each file once" not in for_users and "nrs_tbf_rule" not in for_users


def test_a_japanese_page_says_the_same(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    watching.said = (stall(time.time_ns()),)
    text = server.get("/now?lang=ja", "operator")[1]
    assert "lfs が応答していません" in text and "ジョブ 800" in text and "has stopped" not in text


def test_hostile_names_are_plain_text(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    watching.said = (stall(time.time_ns()),)
    text = server.get("/now", "operator")[1]
    assert "<script>alert" not in text and "\u202e" not in text and "&lt;script&gt;" in text


def test_the_longest_names_are_shortened(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    one = stall(time.time_ns())
    long = Suspect("9" * 10_000, 0.9, 0.9, (), "o" * 10_000, HOSTILE + "W" * 10_000, 3)
    watching.said = (replace(one, suspects=(long,)),)
    for page in ("/now", "/now?lang=ja", "/jobs"):
        text = server.get(page, "operator")[1]
        shown = re.sub(r'(href|title)="[^"]*"', "", text)
        assert not re.search("W{300}|9{300}|o{300}", shown) and "<script>alert" not in text
    # Downloads contain the complete names.
    assert rows(server, "suspects")[0]["job"] == "9" * 10_000


def test_all_requests_of_a_job_are_shown(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    one = stall(time.time_ns())
    whats = ("metadata", "opens", "creates", "object-creates", "moved", "requests")
    told = tuple(Evidence(what, 123_456.0, 7.0, "1/s") for what in whats)
    watching.said = (replace(one, suspects=(replace(one.suspects[0], evidence=told),)),)
    text = server.get("/now", "operator")[1]
    assert text.count("reads and writes: 123 k/s (usually 7/s)") == 1 and "(us…" not in text


def test_a_user_sees_only_the_own_jobs(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    watching.said = (stall(time.time_ns()),)
    text = server.get("/now", Role.USER.value)[1]
    assert "lfs has stopped responding" in text and "job 801" in text
    assert "alice" not in text and "800" not in text.replace("1,800", "") and "802" not in text
    assert [row["job"] for row in rows(server, "suspects", "user")] == ["801"]
    assert "server" not in rows(server, "servers", "user")[0]


def test_every_page_shows_the_notice_of_an_unwell_server(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    watching.said = (stall(time.time_ns()),)
    for page in ("/", "/jobs", "/events"):
        assert "lfs has stopped responding" in server.get(page, "operator")[1]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("healthy", "No server is in trouble."), ("busy", "No server is in trouble."),
        ("no-samples", "No data: no server sends samples."),
    ],
)  # fmt: skip
def test_silent_servers_are_not_called_healthy(site: tuple[Server, Fixed], state: str, said: str) -> None:
    server, watching = site
    watching.said = (replace(stall(time.time_ns()), state=state, evidence=(), suspects=()),)  # type: ignore[arg-type]
    text = server.get("/now", "operator")[1]
    assert said in text and ("No server is in trouble." in text) is (state != "no-samples")
    watching.said = ()
    assert "No file server has sent samples" in server.get("/now", "operator")[1]


def test_states_derived_from_clients_are_called_less_certain(site: tuple[Server, Fixed]) -> None:
    server, watching = site
    watching.said = (replace(stall(time.time_ns()), kind="client", suspects=()),)
    text = server.get("/now", "operator")[1]
    assert "less certain" in text and "No job stands out." in text


def test_unknown_parameters_are_refused(site: tuple[Server, Fixed]) -> None:
    assert site[0].get("/now?table=servers&x=1", "operator")[0] == 400
