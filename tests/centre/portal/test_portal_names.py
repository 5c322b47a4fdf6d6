"""Tests job names, earlier runs of a job, and whether a run is slower than usual."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator
from statistics import median

import pytest

from portal_past import DAY, EVIL, GB, Past
from portal_site import OTHER_ID, Server, portal, with_tokens


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("names")
    access, secrets = with_tokens(folder)
    with portal(folder / "store", access) as server:
        server.secrets = secrets
        past = Past(server.collector)
        for day, seconds in enumerate((600, 620, 590, 605, 610, 615), 1):
            past.run(f"10{day}", "ocean", 24.0 * day, seconds, GB + day)
            past.run(f"20{day}", "wide", 24.0 * day + 1, seconds * (0.3 + 0.35 * day), GB + day)
            past.run(f"60{day}", "plain", 24.0 * day + 3, seconds, GB + day)
            past.run(f"30{day}", "ocean", 24.0 * day + 2, 60, GB, OTHER_ID)
        past.run("110", "ocean", 23, 30, GB // 1000)
        past.run("100", "ocean", 3, 1500)
        past.run("111", "ocean", 2, 607)
        past.run("112", "ocean", 1.5, 1200, 2 * GB)
        past.run("200", "wide", 4, 1500)
        past.run("400", EVIL, 5, 100)
        past.run("401", "x" * 250, 6, 100)
        past.run("600", "plain", 8, 1500)
        past.run("500", "", 7, 100)
        past.run("700", "early", 9, 100)
        past.run("700", "latter", 8.9, 100)
        # The run is still active, and longer than all earlier runs.
        past.run("120", "ocean", 0.6, 1900)
        past.push()
        yield server


def table(site: Server, path: str, name: str = "", role: str = "operator") -> list[dict[str, str]]:
    joint = "&" if "?" in path else "?"
    status, text, _ = site.get(f"{path}{joint}format=csv&table={name}", role)
    assert status == 200, text
    return list(csv.DictReader(io.StringIO(text)))


def page(site: Server, job: str, role: str = "operator") -> str:
    status, text, _ = site.get(f"/jobs/{job}", role)
    assert status == 200, text
    return text


def verdict(site: Server, job: str) -> str:
    return page(site, job).split('id="verdict"><strong>')[1].split("</strong>")[0]


def test_the_table_of_jobs_shows_job_names(site: Server) -> None:
    found = {row["job"]: row["job_name"] for row in table(site, "/jobs?range=7d", "jobs")}
    assert (found["100"], found["200"], found["301"], found["500"]) == ("ocean", "wide", "ocean", "")
    for role, expected in (("operator", 6), ("user", 0)):
        rows = table(site, "/jobs?range=7d&q=OCEA", "jobs", role)
        assert {row["job_name"] for row in rows} == {"ocean"}
        assert len([row for row in rows if row["job"].startswith("30")]) == expected


def test_a_job_is_found_by_its_displayed_name(site: Server) -> None:
    found = {row["job"]: row["job_name"] for row in table(site, "/jobs?range=7d", "jobs")}
    assert found["700"] == "early"
    assert {row["job"] for row in table(site, "/jobs?range=7d&q=early", "jobs")} == {"700"}
    # Another machine reported the job later under a different name.
    assert table(site, "/jobs?range=7d&q=latter", "jobs") == []


def test_a_slow_run_is_reported_with_evidence(site: Server) -> None:
    assert verdict(site, "100") == "slower than usual"
    text = page(site, "100")
    assert (
        "This run took 25 min." in text
        and "6 earlier runs with about the same I/O volume took 10 min" in text
    )
    rows = {row["job"]: row for row in table(site, "/jobs/100", "runs")}
    # The table leaves out other users' runs with the same name. The verdict also ignores a run that moved
    # much less.
    assert set(rows) == {*(f"10{day}" for day in range(7)), "110", "111", "112", "120"}
    compared = {job for job, row in rows.items() if row["compared"] == "true"}
    assert compared == {f"10{day}" for day in range(1, 7)} and rows["100"]["role"] == "this job"
    assert (rows["101"]["seconds"], rows["101"]["read_bytes"], rows["101"]["state"]) == (
        "600", str(GB + 1), "over",
    )  # fmt: skip
    assert float(rows["101"]["read_rate"]) == pytest.approx((GB + 1) / 600, abs=1e-5)
    assert rows["120"]["state"] == "active"


def test_the_json_form_contains_the_verdict(site: Server) -> None:
    (row,) = json.loads(site.get("/jobs/100?format=json&table=verdict", "operator")[1])["rows"]
    times = (600, 620, 590, 605, 610, 615)
    assert (row["verdict"], row["runs"], row["seconds"]) == ("slower", 6, 1500)
    assert (row["usual_s"], row["job_name"]) == (median(times), "ocean")
    assert row["limit_s"] == pytest.approx(row["usual_s"] * 1.1)
    (few,) = table(site, "/jobs/102", "verdict")
    assert (few["verdict"], few["runs"], few["usual_s"]) == ("few", "4", "")


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("111", "as usual"),
        # The run takes twice the time for twice the bytes.
        ("112", "as usual"),
        # The earlier runs took anything from 6 to 24 minutes.
        ("200", "as usual"),
        ("102", "not enough runs"),
        ("400", "not enough runs"),
        ("120", "slower than usual"),
    ],
)  # fmt: skip
def test_each_verdict_follows_from_the_earlier_runs(site: Server, job: str, expected: str) -> None:
    assert verdict(site, job) == expected


def test_a_job_without_a_name_has_no_verdict(site: Server) -> None:
    assert 'id="verdict"' not in page(site, "500") and 'id="table-runs"' not in page(site, "500")


def test_a_user_compares_only_the_own_runs(site: Server) -> None:
    rows = table(site, "/jobs/100", "runs", "user")
    assert len(rows) == 11 and not [row for row in rows if row["job"].startswith("30")]
    assert site.get("/jobs/301", "user")[0] == 404


def test_jobs_without_a_user_in_the_id_get_the_reported_name(site: Server) -> None:
    found = {row["job"]: row["job_name"] for row in table(site, "/jobs?range=7d", "jobs")}
    assert found["600"] == found["601"] == "plain" and verdict(site, "600") == "slower than usual"
    # The owner is unknown, so only operators see these jobs.
    assert site.get("/jobs/600", "user")[0] == 404


def test_hostile_names_are_escaped(site: Server) -> None:
    for path in ("/jobs?range=1d", "/jobs/400", "/jobs?range=1d&q=%3Cscript"):
        status, text, _ = site.get(path, "operator")
        assert status == 200 and "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
        assert "\x1b" not in text
    (row,) = [row for row in table(site, "/jobs?range=1d", "jobs") if row["job"] == "400"]
    assert row["job_name"].startswith('"><script>') and "\\x0a" in row["job_name"]
    rows = json.loads(site.get("/jobs?range=1d&format=json", "operator")[1])["rows"]
    assert EVIL.split("\n")[0] in {str(row["job_name"]).split("\\x0a")[0] for row in rows}
    long = site.get("/jobs?range=1d", "operator")[1]
    assert "x" * 39 + "…</bdi>" in long


def test_verdicts_are_translated(site: Server) -> None:
    status, text, _ = site.get("/jobs/100?lang=ja", "operator")
    assert status == 200 and "slower than usual" not in text and "通常より遅い" in text


def test_upkeep_keeps_each_job_name_once(site: Server) -> None:
    before = table(site, "/jobs/100", "runs")
    site.collector.tend(time.time_ns() + 2 * DAY)
    assert [{**row, "state": "", "state_title": ""} for row in table(site, "/jobs/100", "runs")] == [
        {**row, "state": "", "state_title": ""} for row in before
    ]
