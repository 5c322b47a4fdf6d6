"""Tests the page on which an operator confirms an action on a job."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest

from fake_schedulers import FakeJob, FakeScheduler
from iodock.centre.monitor.access import Role, Visitor
from iodock.centre.portal.shown.actions import answer
from iodock.centre.portal.shown.page import NotThere
from iodock.centre.portal.shown.page import Site as PortalSite
from made_verdicts import ASKS, JOB, Site, suspect
from portal_site import Server, portal, with_tokens

EVIL = "<script>alert(1)</script>\r\nX: y\u202e"


@dataclass
class Asked:
    server: Server
    site: Site

    def form(self, role: str, path: str = "/actions") -> str:
        """Returns the token that the forms on this role's page contain."""
        found = re.search(r'name="form" value="([0-9a-f]{64})"', self.server.get(path, role)[1])
        assert found
        return found[1]

    def work(self) -> None:
        """Runs the collector's work at the current time."""
        self.site.wait((time.time_ns() - self.site.now) / 1e9)
        self.site.work()

    def post(self, path: str, role: str, form: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        return self.server.ask("POST", path, role, urlencode({"form": form}).encode(), **headers)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    site = Site(tmp_path / "response", ASKS, now=time.time_ns() - 700_000_000_000)
    site.quiet()
    site.intervals(6, suspects=(suspect(name=EVIL, nodes=40),))
    access, secrets = with_tokens(tmp_path)
    with portal(tmp_path / "store", access, PortalSite(responder=site.responder)) as server:
        server.secrets.update(secrets)
        yield Asked(server, site)
    site.responder.close()


def test_an_operator_sees_a_proposed_action_and_confirms_it(asked: Asked) -> None:
    status, text, _ = asked.server.get("/actions", "operator")
    assert status == 200 and f"Suspend job {JOB}?" in text
    assert (
        "90 % of the requests to it came from this job, confidence 95 %. The job opens 12,000 files" in text
    )
    assert f"scontrol suspend {JOB}" in text and "nrs_tbf_rule=" in text
    status, _, headers = asked.post("/actions/1/confirm", "operator", asked.form("operator"))
    assert (status, headers["location"]) == (303, "/actions")
    asked.work()
    assert asked.site.statuses == ["done"]
    assert asked.site.logged("confirmed")[0]["by"] == "operator operator"
    assert asked.post("/actions/1/undo", "operator", asked.form("operator"))[0] == 303
    asked.work()
    assert asked.site.statuses == ["undone"]


def test_a_proposed_action_can_be_declined(asked: Asked) -> None:
    assert asked.post("/actions/1/decline", "operator", asked.form("operator"))[0] == 303
    assert asked.site.statuses == ["declined"]
    assert f"Suspend job {JOB}?" not in asked.server.get("/actions", "operator")[1]


def test_the_page_of_actions_is_in_japanese(asked: Asked) -> None:
    text = asked.server.get("/actions?lang=ja", "operator")[1]
    assert f"ジョブ {JOB} を一時停止する" in text and "メタデータサーバ" in text
    assert 'action="/actions/1/confirm?lang=ja"' in text


@pytest.mark.parametrize("role", ["user", "agent", ""])
def test_only_operators_see_and_confirm_actions(asked: Asked, role: str) -> None:
    status, text, _ = asked.server.get("/actions", role)
    assert status == (404 if role == "user" else 401) and JOB not in text
    for form in (asked.form("operator"), ""):
        assert asked.post("/actions/1/confirm", role, form)[0] == (403 if role == "user" else 401)
    assert asked.site.statuses == ["asked"]
    if role:
        assert "/actions" not in asked.server.get("/", role)[1]


def test_a_form_of_another_site_or_session_has_no_effect(asked: Asked) -> None:
    own, cookie = asked.form("operator"), asked.server.log_in("operator")
    assert asked.post("/actions/1/confirm", "operator", "")[0] == 403
    assert (
        asked.post("/actions/1/confirm", "operator", own[:-1] + "0123456789abcdef"[own[-1] == "0"])[0] == 403
    )
    assert asked.post("/actions/1/confirm", "operator", own, origin="https://evil.example")[0] == 403
    # The same operator has another token in a browser session.
    assert asked.post("/actions/1/confirm", "", own, cookie=cookie.split(";")[0])[0] == 403
    assert asked.server.get("/actions/1/confirm", "operator")[0] == 405
    assert asked.site.statuses == ["asked"]


def test_the_form_of_the_own_session_confirms_in_a_browser(asked: Asked) -> None:
    cookie = asked.server.log_in("operator").split(";")[0]
    text = asked.server.get("/actions", "", cookie=cookie)[1]
    form = re.search(r'name="form" value="([0-9a-f]{64})"', text)
    assert form and asked.post("/actions/1/confirm", "", form[1], cookie=cookie)[0] == 303
    assert asked.site.statuses == ["wanted"]


def test_hostile_job_names_are_plain_text(asked: Asked) -> None:
    text = asked.server.get("/actions", "operator")[1]
    assert "<script>alert" not in text and "\u202e" not in text and "\\u202e" in text


@pytest.mark.parametrize("path", ["/actions/99/confirm", "/actions/1/undo"])
def test_impossible_actions_give_an_error(asked: Asked, path: str) -> None:
    status, text, _ = asked.post(path, "operator", asked.form("operator"))
    assert status == 400 and "see the list of actions" in text
    assert asked.post("/actions/1/reboot", "operator", asked.form("operator"))[0] == 404


def test_without_login_actions_can_not_be_confirmed(tmp_path: Path) -> None:
    site = Site(tmp_path / "response", ASKS, now=time.time_ns() - 700_000_000_000)
    site.quiet()
    site.intervals(6)
    with portal(tmp_path / "store", None, PortalSite(responder=site.responder)) as server:
        form = Asked(server, site).form("")
        status, text, _ = Asked(server, site).post("/actions/1/confirm", "", form)
        assert status == 400 and "not identified here" in text
    assert site.statuses == ["asked"]
    site.responder.close()


def test_downloads_contain_the_completed_actions(asked: Asked) -> None:
    text = asked.server.get("/actions?format=csv&table=actions", "operator")[1]
    assert text.splitlines()[1].split(",")[2:5] == [JOB, "alice", "suspend"]
    text = asked.server.get("/actions?format=csv&table=episodes", "operator")[1]
    assert "mds01" in text


def test_without_a_responder_the_page_does_not_exist(tmp_path: Path) -> None:
    with portal(tmp_path / "store") as server:
        assert server.get("/actions")[0] == 404 and "/actions" not in server.get("/")[1]


def test_a_suspended_job_can_be_released_on_the_page(tmp_path: Path) -> None:
    site = Site(tmp_path / "response", scheduler=FakeScheduler("slurm", {JOB: FakeJob()}))
    site.quiet()
    site.intervals(6)
    access, secrets = with_tokens(tmp_path)
    with portal(tmp_path / "store", access, PortalSite(responder=site.responder)) as server:
        server.secrets.update(secrets)
        text = server.get("/actions", "operator")[1]
        assert "Undo now" in text and "iodock, according to the settings" in text
    site.responder.close()


def test_prometheus_reads_episodes_and_notices(asked: Asked) -> None:
    text = asked.server.get("/metrics", "operator")[1]
    assert 'iodock_episodes{file_system="lfs",state="overload"} 1.0' in text
    assert 'iodock_notices_total{channel="mail",result="sent"} 3.0' in text
    assert "iodock_notices_waiting 0.0" in text


def test_an_answer_of_a_user_without_rights_is_ignored(asked: Asked) -> None:
    with pytest.raises(NotThere):
        answer(asked.site.responder, False, Visitor(Role.USER, "alice"), 1, "confirm")
    assert asked.site.statuses == ["asked"]
