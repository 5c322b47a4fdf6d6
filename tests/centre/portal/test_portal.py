"""Tests the portal's pages: their content, and who may see it."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from iodock.centre.monitor.access import Access, TokenFile
from iodock.centre.portal.session import LASTS_S, Sessions
from portal_site import (
    EVERY_S,
    OPENED,
    OTHER,
    OTHER_ID,
    OWN,
    OWN_USER,
    READ,
    STEPS,
    WRITTEN,
    Server,
    fill,
    portal,
    with_tokens,
)  # fmt: skip

NOBODYS = "80070066"
"""A job that does not exist, with as many digits as the other user's job."""
PAGES = ("/", "/now", "/jobs", f"/jobs/{OWN}", "/heavy", "/events", "/use")
FOR_OPERATORS = ("/machines", "/agents")
"""Pages that do not exist for users."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serves a portal with tokens, two jobs, and a metadata server with 500 waiting requests."""
    folder = tmp_path_factory.mktemp("portal")
    access, secrets = with_tokens(folder)
    with portal(folder / "store", access) as server:
        server.secrets = secrets
        fill(server.collector, queue=500, wait_us=500_000)
        yield server


def rows(site: Server, path: str, role: str = "operator") -> list[dict[str, str]]:
    status, text, headers = site.get(path + ("&" if "?" in path else "?") + "format=csv", role)
    assert status == 200 and headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(text)))


def test_all_users_see_an_overloaded_file_system(site: Server) -> None:
    # This test comes first, because its readings become outdated.
    for role in ("operator", "user"):
        for page in ("/", "/jobs", f"/jobs/{OWN}"):
            text = site.get(page, role)[1]
            assert "lfs is overloaded" in text and "mds01" in text and "500" in text


@pytest.mark.parametrize("page", (*PAGES, *FOR_OPERATORS))
@pytest.mark.parametrize("role", ["operator", "user"])
def test_every_page_is_whole_html_and_needs_no_inline_code(site: Server, page: str, role: str) -> None:
    status, text, headers = site.get(page, role)
    assert status == (404 if role == "user" and page in FOR_OPERATORS else 200)
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
    # The page contains nothing that its content security policy forbids.
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|https?://(?!www\.w3\.org)", text)


@pytest.mark.parametrize("page", (*PAGES, *FOR_OPERATORS))
def test_unknown_users_and_agents_see_nothing(site: Server, page: str) -> None:
    for role in ("", "agent"):
        status, text, headers = site.get(page, role)
        assert status == 401 and headers["www-authenticate"] == "Bearer"
        assert 'name="token"' in text
        assert OWN not in text and "lfs" not in text
    assert site.get(page, "", Authorization="Bearer wrong")[0] == 401


def test_sums_equal_the_pushed_values(site: Server) -> None:
    found = {row["job"]: row for row in rows(site, "/jobs")}
    assert {job: int(row["read_bytes"]) for job, row in found.items()} == {
        OWN: 2 * STEPS * READ, OTHER: 10 * STEPS * READ,
    }  # fmt: skip
    assert int(found[OWN]["write_bytes"]) == 2 * STEPS * WRITTEN
    assert int(found[OWN]["metadata"]) == 2 * STEPS * OPENED
    assert (found[OWN]["user"], found[OTHER]["user"]) == (OWN_USER, OTHER_ID)
    assert (found[OWN]["hosts"], found[OWN]["seconds"], found[OWN]["exact"]) == (
        "2",
        str(STEPS * EVERY_S),
        "true",
    )
    assert float(found[OWN]["read_rate"]) == 2 * READ / EVERY_S


def test_the_page_of_a_job_has_all_its_tables(site: Server) -> None:
    path = f"/jobs/{OWN}?table="
    assert [(row["name"], row["read_bytes"]) for row in rows(site, path + "nodes")] == [
        ("r01", str(STEPS * READ)), ("r02", str(STEPS * READ)),
    ]  # fmt: skip
    targets = {row["name"]: (row["write_bytes"], row["metadata"]) for row in rows(site, path + "targets")}
    assert targets == {
        "lfs-OST0000": (str(2 * STEPS * WRITTEN), ""), "lfs-MDT0000": ("", str(2 * STEPS * OPENED)),
    }  # fmt: skip
    counts = {(row["name"], row["side"]): int(row["count"]) for row in rows(site, path + "operations")}
    assert counts["open", "metadata servers"] == 2 * STEPS * OPENED
    assert counts["writes", "object servers"] == 4 * STEPS
    text = site.get(f"/jobs/{OWN}", "operator")[1]
    assert f"{OTHER} ({OTHER_ID})" in text and "mds01 mdt" in text


def test_curves_of_a_file_system_add_up_to_its_sums(site: Server) -> None:
    found = rows(site, "/?table=over_time")
    assert sum(float(row["read_bytes"]) for row in found) == pytest.approx(12 * STEPS * READ)
    assert sum(float(row["metadata"]) for row in found) == pytest.approx(12 * STEPS * OPENED)
    assert {row["file_system"] for row in found} == {"lfs"}


@pytest.mark.parametrize("length", ["15m", "6h", "1d", "7d", "30d"])
def test_sums_and_machines_are_shown_for_any_time_range(site: Server, length: str) -> None:
    found = {row["job"]: int(row["read_bytes"]) for row in rows(site, f"/jobs?range={length}")}
    assert found == {OWN: 2 * STEPS * READ, OTHER: 10 * STEPS * READ}
    over_time = rows(site, f"/?range={length}&table=over_time")
    assert sum(float(row["read_bytes"]) for row in over_time) == pytest.approx(12 * STEPS * READ)
    hosts = {row["host"]: row["file_system"] for row in rows(site, f"/?range={length}&table=servers")}
    assert hosts == {"mds01": "lfs", "oss01": "lfs", "r01": ""}
    page = site.get(f"/jobs/{OWN}?range={length}", "operator")[1]
    assert "mds01 mdt" in page and "processes on nodes" in site.get(f"/jobs?range={length}", "operator")[1]


def test_counts_of_nodes_are_not_added_to_those_of_servers(site: Server) -> None:
    found = rows(site, "/jobs?at=processes")
    assert [(row["job"], row["user"], row["read_bytes"]) for row in found] == [
        ("", OWN_USER, str(STEPS * 5000))
    ]
    assert rows(site, "/jobs")[0].keys() == found[0].keys()


def test_json_has_the_rows_of_the_csv(site: Server) -> None:
    status, text, headers = site.get("/jobs?format=json", "operator")
    answer = json.loads(text)
    assert status == 200 and headers["content-type"] == "application/json"
    assert answer["end_ts"] - answer["begin_ts"] >= 900e9
    assert [list(row) for row in answer["rows"]] == [list(row) for row in rows(site, "/jobs")]
    assert answer["rows"][0]["read_bytes"] == 10 * STEPS * READ


def test_users_see_their_own_jobs_only(site: Server) -> None:
    assert [row["job"] for row in rows(site, "/jobs", "user")] == [OWN]
    assert [row["job"] for row in rows(site, f"/jobs?user={OTHER_ID}", "user")] == []
    assert [row["job"] for row in rows(site, f"/jobs?q={OTHER}", "user")] == []
    assert [row["user"] for row in rows(site, "/use", "user")] == [OWN_USER]
    for page in (*PAGES, f"/jobs?q={OTHER}", "/jobs?sort=user", f"/jobs/{OWN}?range=30d"):
        # The form contains the requested values themselves.
        text = site.get(page, "user")[1].replace(f'value="{OTHER}"', "").replace(f"q={OTHER}", "")
        assert not re.search(rf"\b{OTHER}\b|{OTHER_ID}|r03", text), page
    assert "another user&#39;s job" in site.get(f"/jobs/{OWN}", "user")[1]


def test_another_users_job_is_answered_like_a_missing_one(site: Server) -> None:
    for query in ("", "?range=1h", "?format=csv", "?format=json&table=nodes"):
        theirs, nobodys = (site.get(f"/jobs/{job}{query}", "user") for job in (OTHER, NOBODYS))
        assert theirs[0] == nobodys[0] == 404
        assert theirs[1].replace(OTHER, "JOB") == nobodys[1].replace(NOBODYS, "JOB")
        assert {**theirs[2], "date": "", "content-length": ""} == {
            **nobodys[2],
            "date": "",
            "content-length": "",
        }
    assert site.get(f"/jobs/{OTHER}", "operator")[0] == 200
    assert site.get(f"/jobs/{OTHER}:{OTHER_ID}:r03", "user")[0] == 404


def test_users_see_the_file_system_as_a_whole_but_no_machines(site: Server) -> None:
    operators, users = (site.get("/", role)[1] for role in ("operator", "user"))
    assert "table-servers" in operators and "table-servers" not in users
    assert (
        "table-groups" in site.get("/use", "operator")[1]
        and "table-groups" not in site.get("/use", "user")[1]
    )
    assert site.get("/?format=csv&table=servers", "user")[0] == 400
    assert [row["read_bytes"] for row in rows(site, "/?table=over_time", "user")]


def test_month_by_user_and_group(site: Server) -> None:
    users = {row["user"]: row for row in rows(site, "/use")}
    assert int(users[OWN_USER]["write_bytes"]) == 2 * STEPS * WRITTEN and users[OWN_USER]["jobs"] == "1"
    groups = {row["group"]: row for row in rows(site, "/use?table=groups")}
    assert groups["root"]["write_bytes"] == users[OWN_USER]["write_bytes"]
    assert groups[""]["write_bytes"] == str(10 * STEPS * WRITTEN)
    assert rows(site, "/use?month=2001-01") == []


def test_a_session_cookie_gives_the_same_access_as_a_token(site: Server) -> None:
    cookie = site.log_in("user")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; ")) and "Secure" not in cookie
    assert site.get(f"/jobs/{OWN}", Cookie=cookie.split(";")[0])[0] == 200
    assert site.get(f"/jobs/{OTHER}", Cookie=cookie.split(";")[0])[0] == 404
    status, _, headers = site.ask("POST", "/logout", "", b"", Cookie=cookie)
    assert status == 303 and "Max-Age=0" in headers["set-cookie"]
    behind_https = site.ask(
        "POST", "/login", "", b"token=" + site.secrets["user"].encode(), X_Forwarded_Proto="https"
    )
    assert "Secure" in behind_https[2]["set-cookie"].split("; ")


def test_a_session_cookie_differs_from_the_token_and_ends_at_logout(site: Server) -> None:
    cookie, other = (site.log_in("operator").split(";")[0] for _ in range(2))
    assert cookie != other and site.secrets["operator"] not in cookie
    assert site.get("/jobs", Cookie=cookie)[0] == 200
    assert site.ask("POST", "/logout", "", b"", Cookie=cookie)[0] == 303
    # A copy of the cookie no longer works; a session in another browser continues.
    assert site.get("/jobs", Cookie=cookie)[0] == 401
    assert site.get("/jobs", Cookie=other)[0] == 200
    for made_up in ("", "x", site.secrets["operator"]):
        assert site.get("/jobs", Cookie=f"iodock_session={made_up}")[0] == 401


def test_a_session_ends_when_its_token_is_revoked(tmp_path: Path) -> None:
    _, secrets = with_tokens(tmp_path)
    path = tmp_path / "tokens.toml"
    errors: list[str] = []
    file = TokenFile(path, lambda error: errors.append(str(error)))
    with portal(tmp_path / "store", Access(file.tokens, file=file)) as server:
        server.secrets = secrets
        cookies = {role: server.log_in(role).split(";")[0] for role in ("user", "operator")}
        blocks = path.read_text().split("[[token]]")
        path.write_text("[[token]]".join(one for one in blocks if 'role = "operator"' not in one))
        assert server.get("/", Cookie=cookies["operator"])[0] == 401
        assert server.get("/", "operator")[0] == 401
        assert server.get("/", Cookie=cookies["user"])[0] == 200
        # While an administrator edits the file of tokens, users stay logged in.
        assert errors == []
        path.write_text("[[tok")
        assert server.get("/", Cookie=cookies["user"])[0] == 200
        # One message says that removed tokens may still work.
        assert len(errors) == 1 and "tokens.toml" in errors[0]


def test_a_session_ends_after_its_lifetime(tmp_path: Path) -> None:
    access, secrets = with_tokens(tmp_path)
    now = [0.0]
    sessions = Sessions(access, lambda: now[0])
    scope = {"type": "http", "method": "GET", "path": "/", "scheme": "http", "query_string": b"",
             "server": ("x", 80), "client": ("192.0.2.1", 1)}  # fmt: skip
    response = Response()
    assert sessions.begin(response, secrets["operator"], Request({**scope, "headers": []}))
    cookie = response.headers["set-cookie"].split(";")[0].encode()
    asks = Request({**scope, "headers": [(b"cookie", cookie)]})
    assert sessions.visitor(asks) is not None
    now[0] = LASTS_S + 1.0
    assert sessions.visitor(asks) is None


def test_an_invalid_token_sets_no_cookie(site: Server) -> None:
    agent = b"token=" + site.secrets["agent"].encode()
    for body in (b"token=wrong", b"", b"\xff\xfe%%%", b"token=" + b"x" * 9000, agent):
        status, text, headers = site.ask("POST", "/login", "", body)
        assert status == 401 and "set-cookie" not in headers and "Traceback" not in text
    good = b"token=" + site.secrets["operator"].encode()
    # A page of another site must not be able to log a user in.
    assert site.ask("POST", "/login", "", good, Origin="http://evil.example")[0] == 401
    assert site.get("/login", "user")[0] == 303 and site.get("/login")[0] == 401
    # A cookie is valid for pages only, not for pushing.
    pushed = site.ask("POST", "/api/v1/samples", "", b"x", Cookie=f"iodock_session={site.secrets['agent']}")
    assert pushed[0] == 401


def test_user_headers_are_accepted_only_from_the_proxy(tmp_path: Path) -> None:
    access = Access(proxies=frozenset({"127.0.0.1"}), operators=frozenset({"boss"}))
    with portal(tmp_path / "one", access) as server:
        fill(server.collector)
        assert server.get("/jobs")[0] == 401
        assert server.get(f"/jobs/{OTHER}", X_Remote_User="boss")[0] == 200
        assert server.get(f"/jobs/{OTHER}", X_Remote_User=OWN_USER)[0] == 404
        assert server.get(f"/jobs/{OWN}", X_Remote_User=OWN_USER)[0] == 200
        # A login name that equals another user's number gives no access to that user's jobs.
        assert server.get(f"/jobs/{OTHER}", X_Remote_User=OTHER_ID)[0] == 404
    with portal(tmp_path / "two", Access(proxies=frozenset({"192.0.2.9"}))) as server:
        assert server.get("/jobs", X_Remote_User="boss")[0] == 401


def test_the_page_of_an_empty_store_names_the_next_step(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        for page in ("/", "/jobs", "/use"):
            status, text, _ = server.get(page)
            assert status == 200 and "No agent has pushed anything yet" in text
        assert server.get("/jobs/1")[0] == 404
        assert server.get("/jobs?format=csv")[1].count("\n") == 1


def test_the_browser_or_the_address_chooses_japanese(site: Server) -> None:
    by_browser = site.get("/jobs", "operator", Accept_Language="fr, ja-JP;q=0.9, en;q=0.5")[1]
    by_address = site.get("/jobs?lang=ja", "operator")[1]
    for text in (by_browser, by_address):
        assert '<html lang="ja">' in text and "ジョブ" in text
    assert f"/jobs/{OWN}?lang=ja" in by_address
    assert '<html lang="en">' in site.get("/jobs", "operator", Accept_Language="de,;q=x,ja;q=0")[1]


def test_only_known_static_files_are_served(site: Server) -> None:
    names = re.findall(r'"(/static/[^"]+)"', site.get("/", "operator")[1])
    assert len(names) == 3
    for name in names:
        status, _, headers = site.get(name)
        assert status == 200 and headers["x-content-type-options"] == "nosniff"
    for name in ("nothing", "../pages.py", "..%2fpages.py", "portal.css%00"):
        assert site.get(f"/static/{name}")[0] == 404


def test_an_unreadable_store_gives_an_error_page(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        fill(server.collector)
        assert server.get("/jobs")[0] == 200
        time.sleep(0.01)
        (tmp_path / "catalogue.json").write_text("not json")
        status, text, _ = server.get("/jobs")
        assert status == 503 and str(tmp_path) not in text and "Traceback" not in text
