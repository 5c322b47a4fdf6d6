"""Tests a Prometheus as the store of the monitor's commands: pages, `top`, and problems of servers.

Prometheus 2.42 scraped the samples while a collector received the pushes of the same agents
(test_prometheus_real.py)."""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fake_prometheus import Fake, dead_port, serving
from in_process import iodock
from iodock.centre.monitor.access import Access, Role
from iodock.centre.monitor.questions import file_systems, losses
from iodock.centre.monitor.questions.ids import JobIds, job_ids
from iodock.centre.monitor.questions.spans import SECOND, span
from iodock.centre.portal.app import reading
from iodock.centre.prometheus import Client, Credentials, PrometheusStore, parsed
from iodock.shared.engine.need import OTHERS
from iodock.shared.errors import AnswerError, RequestError
from places import FIXTURES
from portal_site import serving as served
from portal_site import with_tokens
from prometheus_sums import SUMS

IODOCK = [sys.executable, "-m", "iodock", "monitor"]
SCRAPED = FIXTURES / "prometheus" / "2.42"
KEPT = json.loads(lzma.decompress((SCRAPED / "kept.json.xz").read_bytes()))
PLACE = {"host": "h", "instance": "h:1"}


@pytest.fixture
def fake() -> Iterator[Fake]:
    """Serves the scraped samples, with their times moved to the present."""
    answer = json.loads(lzma.decompress((SCRAPED / "scraped.json.xz").read_bytes()))
    later = time.time() - KEPT["end"] / SECOND
    series = [
        (one["metric"], [(round(moment + later, 3), value) for moment, value in one["values"]])
        for one in answer["data"]["result"]
    ]
    with serving(Fake(series)) as made:
        yield made


def store_of(fake: Fake, **options: Any) -> PrometheusStore:
    return PrometheusStore(Client(parsed(fake.address), **options))


def asked(store: PrometheusStore) -> list[dict[str, Any]]:
    now = time.time_ns()
    rows: list[dict[str, Any]] = store.table(
        SUMS, begin=now - 1200 * SECOND, end=now, resolution="fine"
    ).to_pylist()
    return rows


def test_sums_from_prometheus_equal_those_of_the_collector(fake: Fake) -> None:
    assert asked(store_of(fake)) == KEPT["rows"] != []


@pytest.mark.whole
def test_long_time_ranges_are_queried_in_parts(fake: Fake) -> None:
    asked(store_of(fake))
    longest = max((fake.replied(one["path"], one)[1] for one in list(fake.asked)), key=len)
    fake.asked.clear()
    assert asked(store_of(fake, longest_bytes=len(longest) * 2 // 3)) == KEPT["rows"]
    assert len(fake.asked) > 3
    samples = sum(len(one["values"]) for one in json.loads(longest)["data"]["result"])
    fake.most_samples = samples * 2 // 3
    assert asked(store_of(fake)) == KEPT["rows"]


def test_too_many_series_are_reported(fake: Fake) -> None:
    fake.most_samples = 10
    with pytest.raises(AnswerError, match="too many series"):
        asked(store_of(fake))


@pytest.fixture
def page(fake: Fake) -> Iterator[str]:
    with served(reading(store_of(fake), Access())) as url:
        yield url


def got(url: str, token: str = "") -> str:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def test_pages_name_the_data_that_prometheus_lacks(page: str) -> None:
    found = json.loads(got(f"{page}/jobs?format=json&table=jobs&top=1000"))["rows"]
    moved: dict[str, int] = {}
    for row in KEPT["rows"]:
        number = row["job"].split(":")[0] if row["job"][0].isdigit() else row["job"]
        moved[number] = moved.get(number, 0) + row["read_bytes"] + row["write_bytes"]
    assert {row["job"]: row["read_bytes"] + row["write_bytes"] for row in found} == pytest.approx(moved)
    assert "Read from Prometheus" in got(f"{page}/jobs")


@pytest.mark.whole
def test_every_page_names_its_data_source(page: str) -> None:
    job = KEPT["rows"][0]["job"].split(":")[0]
    for path in ("/", "/events", "/use", f"/jobs/{job}"):
        assert "Read from Prometheus" in got(page + path)
    assert "Prometheus から" in got(f"{page}/jobs?lang=ja")


def test_the_page_of_a_job_queries_only_that_job(fake: Fake, page: str) -> None:
    number = KEPT["rows"][0]["job"].split(":")[0]
    fake.asked.clear()
    shown = json.loads(got(f"{page}/jobs/{number}?format=json&table=totals"))["rows"]
    assert shown[0]["read_bytes"] + shown[0]["metadata"] > 0
    counters = [one["query"] for one in fake.asked if 'known_by!=""' in one["query"]]
    assert sum(f'job=~"(?s:{number}' in query for query in counters) >= 4
    with pytest.raises(urllib.error.HTTPError, match="404"):
        got(f"{page}/jobs/999999")


def _span_s(query: Mapping[str, str]) -> float:
    return float(query["end"]) - float(query["start"]) if "end" in query else 0.0


@pytest.mark.whole
def test_pages_of_weeks_query_few_readings(fake: Fake, page: str) -> None:
    for path in ("/?range=30d", "/jobs?range=7d", "/use"):
        fake.asked.clear()
        got(page + path)
        # States of servers are computed for the last hours only, so longer queries must have coarse steps.
        long = [one for one in fake.asked if _span_s(one) > 7 * 3600]
        assert all(int(one.get("step", 600)) >= 600 for one in long)
        assert all(re.search(r"\[(\d+)s\]", one["query"]) for one in fake.asked)


def test_agents_cannot_push_to_a_portal_on_prometheus(page: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{page}/api/v1/samples", data=b"x", timeout=30)


def test_only_the_operator_sees_errors_of_prometheus(tmp_path: Path) -> None:
    access, secrets = with_tokens(tmp_path)
    with served(
        reading(PrometheusStore(Client(parsed(f"prometheus://127.0.0.1:{dead_port()}"))), access)
    ) as url:
        for role, is_told in ((Role.OPERATOR, True), (Role.USER, False)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                got(f"{url}/jobs", secrets[role.value])
            assert refused.value.code == 503
            assert ("does not answer" in refused.value.read().decode()) is is_told


def matrix(result: str, more: str = "") -> bytes:
    text = '{"status":"success",%s"data":{"resultType":"matrix","result":[%s]}}'
    return (text % (more, result)).encode()


NO_ANSWER = "does not answer like a Prometheus"
ODD = {
    "text": (200, b"<html>hello</html>", NO_ANSWER),
    "nothing": (200, b"", NO_ANSWER),
    "other": (200, b'{"status":"success"}', NO_ANSWER),
    "scalar": (200, matrix("").replace(b"matrix", b"scalar"), NO_ANSWER),
    "values": (200, matrix('{"metric":{},"values":[[1,"NaN"]]}'), NO_ANSWER),
    "labels": (200, matrix('{"metric":7,"values":[[1,"1"]]}'), NO_ANSWER),
    "bytes": (200, b'\xff\xfe{"status"', NO_ANSWER),
    "part": (200, matrix("", '"isPartial":true,'), "in part"),
    "warned": (200, matrix("", '"warnings":["a store is away"],'), "a store is away"),
    "refused": (401, b"Unauthorized\n", "requires authentication"),
    "elsewhere": (404, b"404 page not found\n", "does not answer like Prometheus"),
    "moved": (302, b"", "does not answer like Prometheus"),
    "broken": (500, b'{"status":"error","errorType":"internal","error":"no \\u001b[2J luck"}', "luck"),
}


@pytest.mark.parametrize("name", ODD)
def test_invalid_answers_are_reported(fake: Fake, name: str) -> None:
    status, body, why = ODD[name]
    fake.answer = (status, body)
    with pytest.raises(AnswerError, match=why) as told:
        asked(store_of(fake))
    assert str(told.value).isprintable()
    assert fake.address in str(told.value)


def test_silent_and_closing_servers_are_reported(fake: Fake) -> None:
    fake.waits = threading.Event()
    with pytest.raises(AnswerError, match="has not answered after"):
        asked(store_of(fake, patience_s=0.5))
    fake.waits.set()
    fake.whole = False
    with pytest.raises(AnswerError, match="does not answer"):
        asked(store_of(fake))


def test_servers_losses_and_sums_of_other_jobs_are_read(fake: Fake) -> None:
    now = time.time_ns()
    within = span(now - 900 * SECOND, now)
    found = file_systems.servers(store_of(fake), within).to_pylist()
    assert {row["file_system"] for row in found} == {"lfs"}
    assert len(found) == 3
    assert losses.losses(store_of(fake), now - 3600 * SECOND, now).num_rows == 0
    moment = time.time() - 30
    for name, labels, value in (
        ("agent_source_done", {"source": "lustre-stats"}, "0"),
        ("agent_source_refused_files", {"source": "process-io"}, "12"),
        ("mdt_job_stats_unreadable_lines", {"target": "lfs-MDT0000"}, "3"),
    ):
        fake.series.append(({"__name__": f"iodock_{name}", **PLACE, **labels}, [(moment, value)]))
    told = losses.losses(store_of(fake), now - 3600 * SECOND, now).to_pylist()
    assert {(row["host"], row["name"], row["source"], row["target"], row["count"]) for row in told} == {
        ("h", "no-answer", "lustre-stats", "", 1), ("h", "refused-files", "process-io", "", 12),
        ("h", "unreadable-lines", "mdt_job_stats", "lfs-MDT0000", 3),
    }  # fmt: skip


def top(*words: str) -> subprocess.CompletedProcess[str]:
    return iodock("monitor", "top", "--once", *words)


def test_top_reads_from_prometheus(fake: Fake) -> None:
    told = top("--store", fake.address, "--over", "10m", "--format", "json", "--top", "1000")
    assert told.returncode == 0, told.stderr
    assert "note: Read from Prometheus" in told.stderr
    written = sum(row["write_rate"] for row in json.loads(told.stdout)["rows"]) * 600
    assert written == pytest.approx(sum(row["write_bytes"] for row in KEPT["rows"]))
    gone = top("--store", f"prometheus://127.0.0.1:{dead_port()}")
    assert gone.returncode == 1
    assert "does not answer" in gone.stderr
    assert "Traceback" not in gone.stderr


def test_the_password_file_is_read_again_after_a_change(fake: Fake, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("first\n")
    secret.chmod(0o600)
    asked(store_of(fake, credentials=Credentials(token=secret)))
    assert {one.get("Authorization") for one in fake.headers} == {"Bearer first"}
    fake.headers.clear()
    asked(store_of(fake, credentials=Credentials(user="me", password=secret)))
    assert {one.get("Authorization") for one in fake.headers} == {"Basic bWU6Zmlyc3Q="}
    secret.chmod(0o644)
    told = top("--store", fake.address, "--store-token", str(secret))
    assert (told.returncode, "other users may read it" in told.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--store", "prometheus://"], "not an address of a Prometheus"),
        (["--store", "prometheus://h:99999"], "Port out of range"),
        (["--store", "prometheus://h/?a=b"], "not an address of a Prometheus"),
        (["--store", "prometheus://me:secret@h"], "has a user or password in it"),
        (["--store", "http://h:9090"], "neither a folder nor a Prometheus"),
        (["--store", ".", "--store-user", "me"], "is a folder"),
        (["--store", "prometheus://h", "--store-user", "me"], "belong together"),
        (["--store", "prometheus://h", "--store-ca", "/dev/null"], r"is for prometheus\+https"),
        (["--store", "prometheus+https://h", "--store-ca", "/dev/null"], "/dev/null"),
    ],
)
def test_unsupported_queries_are_reported(words: list[str], why: str) -> None:
    # Both commands query in the same way, so each tests half of the cases.
    command = ["top", "--once"] if len(words) == 2 else ["serve", "--listen", "127.0.0.1:0"]
    told = iodock("monitor", *command, *words)
    assert told.returncode == 2, told.stderr
    assert re.search(why, told.stderr)
    assert "secret" not in told.stderr


def test_a_secret_is_not_sent_unencrypted(tmp_path: Path) -> None:
    for url in ("prometheus://192.0.2.1", "prometheus://example"):
        with pytest.raises(RequestError, match="sent unencrypted"):
            Credentials(token=tmp_path / "token").check(parsed(url))
    assert str(parsed("prometheus+https://h/a/")) == "prometheus+https://h:443/a"
    assert parsed("prometheus://[::1]:9090").is_private


@pytest.mark.parametrize("form", [None, "%j:%u:%H", "%u.%j", "%j"])
@pytest.mark.parametrize("number", ["77", "a.b+(c)[d]", 'x"y\\z', "two words"])
def test_query_patterns_match_all_ids_of_a_job(form: str | None, number: str) -> None:
    ids: JobIds = job_ids(form)
    made = {None: f"{number}:1:h", "%j:%u:%H": f"{number}:1:h", "%u.%j": f"1.{number}", "%j": number}[form]
    pattern = re.compile(ids.pattern(number))
    assert pattern.fullmatch(made)
    assert pattern.fullmatch(number)
    assert not pattern.fullmatch("another:1:h")


def test_the_sum_of_other_jobs_has_a_page(fake: Fake) -> None:
    now = time.time()
    labels = {**PLACE, "file_system": "lfs", "target": "lfs-OST0000", "job": "iodock"}
    name = "iodock_obdfilter_job_stats_other"
    fake.series = [
        ({"__name__": f"{name}_owners", **labels}, [(now - 60, "5"), (now - 45, "5")]),
        ({"__name__": f"{name}_bytes", **labels, "operation": "write_bytes"},
         [(now - 60, "10"), (now - 45, "17")]),
    ]  # fmt: skip
    with served(reading(store_of(fake), Access())) as url:
        found = json.loads(got(f"{url}/jobs?format=json"))["rows"]
        assert [(row["job"], row["write_bytes"], row["exact"]) for row in found] == [(OTHERS, 7, False)]
        assert "≥" in got(f"{url}/jobs/{OTHERS}")
