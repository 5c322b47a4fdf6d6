"""Tests the collector's `/metrics`: its content, who may read it, and that Prometheus accepts it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from iodock.centre.monitor.access import Access
from iodock.centre.monitor.collector import Collector
from iodock.centre.portal.app import application, reading
from iodock.centre.portal.connections import OpenConnections
from iodock.centre.portal.door import TYPE
from iodock.centre.store import MonitorStore
from iodock.shared.settings import ConnectionLimits
from portal_site import STEPS, Server, fill, portal, serving, with_tokens

pytestmark = pytest.mark.whole

PROGRAM = os.environ.get("IODOCK_PROMETHEUS", "")
PATIENCE_S = 60.0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Server]:
    access, secrets = with_tokens(tmp_path)
    with portal(tmp_path / "store", access) as server:
        server.secrets = secrets
        fill(server.collector)
        yield server


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Returns the samples: (name, label values in the order of labels) -> value."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(site: Server) -> dict[tuple[str, ...], float]:
    status, text, headers = site.get("/metrics", "operator")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(text)


def test_only_operators_may_read_the_metrics(site: Server) -> None:
    assert [site.get("/metrics", role)[0] for role in ("", "agent", "user", "operator")] == [
        401,
        403,
        403,
        200,
    ]


def test_accepted_pushes_are_counted_with_their_time(site: Server) -> None:
    found = scraped(site)
    # Each of the three agents sends one batch more than there are steps.
    assert found["iodock_collector_batches_total",] == 3 * (STEPS + 1)
    assert found["iodock_collector_values_total",] > 3 * STEPS
    assert found["iodock_collector_bytes_total",] > 0
    assert found["iodock_agents",] == 3
    for host in ("oss01", "mds01", "r01"):
        assert abs(found["iodock_agent_last_batch_timestamp_seconds", host] - time.time()) < 60
    assert found["iodock_store_readable",] == 1 and found["iodock_store_bytes",] > 1000
    files = site.collector.store.catalogue.of("job_io", "fine")
    assert found["iodock_store_files", "fine", "job_io"] == len(files)
    assert found["iodock_store_rows", "fine", "job_io"] == sum(file.rows for file in files)
    assert found["process_cpu_seconds_total",] > 0 and found["process_resident_memory_bytes",] > 1e6


def test_refused_pushes_are_counted_by_reason_and_status(site: Server) -> None:
    typed = {"content_type": TYPE}
    assert site.ask("POST", "/api/v1/samples", "", b"x", **typed)[0] == 401
    assert site.ask("POST", "/api/v1/samples", "user", b"x", **typed)[0] == 403
    for _ in range(2):
        assert site.ask("POST", "/api/v1/samples", "agent", b"no batch", **typed)[0] == 400
    found = scraped(site)
    assert found["iodock_collector_pushes_total", "400"] == 2
    assert found["iodock_collector_pushes_total", "401"] == found["iodock_collector_pushes_total", "403"] == 1
    assert found["iodock_collector_refused_total", "not a good batch"] == 2


def test_losses_queries_and_connections_are_counted(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "store")
    collector._intake.lose("oss01", "dropped-batches", "", 7, "the spool was full")
    fill(collector)
    places = OpenConnections(ConnectionLimits(), open_files=4096)
    places.closed["limit"] += 3
    with serving(application(collector, Access(), places=places)) as url:
        server = Server(url, collector)
        assert server.get("/jobs")[0] == 200
        found = samples(server.get("/metrics")[1])
    assert found["iodock_losses_last_hour", "dropped-batches"] == 7
    assert found["iodock_connections_closed_total", "limit"] == 3 and ("iodock_connections",) in found
    assert sum(value for name, value in found.items() if name[0] == "iodock_store_query_seconds_count") > 0


def test_a_damaged_store_is_reported_with_the_other_metrics(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "store")
    fill(collector)
    (tmp_path / "store/catalogue.json").write_text("{")
    with serving(application(collector, Access())) as url:
        found = samples(Server(url, collector).get("/metrics")[1])
    assert found["iodock_store_readable",] == 0 and found["iodock_agents",] == 3


def test_hostile_host_names_cannot_leave_their_labels(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "store")
    collector.taken()
    collector._taken.agents['a"} 1\nb\\'] = 5_000_000_000
    with serving(application(collector, Access())) as url:
        found = samples(Server(url, collector).get("/metrics")[1])
    assert found["iodock_agent_last_batch_timestamp_seconds", 'a"} 1\nb\\'] == 5


def test_a_read_only_portal_has_metrics_too(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "store")
    with serving(reading(MonitorStore(tmp_path / "store"), Access())) as url:
        found = samples(Server(url, collector).get("/metrics")[1])
    assert ("process_cpu_seconds_total",) in found and ("iodock_agents",) not in found


@pytest.mark.skipif(not PROGRAM, reason="make test-prometheus has a Prometheus")
@pytest.mark.timeout(200)
def test_prometheus_reads_the_metrics_with_a_token(site: Server, tmp_path: Path) -> None:
    promtool = Path(PROGRAM).with_name("promtool")
    text = site.get("/metrics", "operator")[1]
    if promtool.exists():
        subprocess.run([promtool, "check", "metrics"], input=text.encode(), check=True)
    (tmp_path / "token").write_text(site.secrets["operator"])
    address = site.url.removeprefix("http://")
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
        f"  - job_name: collector\n    authorization: {{credentials_file: {tmp_path / 'token'}}}\n"
        f"    static_configs: [{{targets: ['{address}']}}]\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        PROGRAM,
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
    ]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log, stdout=log
        )
    try:
        ends, found = time.monotonic() + PATIENCE_S, []
        while not found and time.monotonic() < ends:
            time.sleep(0.5)
            found = asked(port, "iodock_collector_batches_total")
        assert found == [str(3 * (STEPS + 1))], (tmp_path / "log").read_text()[-2000:]
        assert asked(port, "up") == ["1"]
        assert asked(port, "count(iodock_agent_last_batch_timestamp_seconds)") == ["3"]
    finally:
        process.terminate()
        process.wait()


def asked(port: int, query: str) -> list[str]:
    """Returns the values in Prometheus' answer."""
    url = f"http://127.0.0.1:{port}/api/v1/query?query={query}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found: dict[str, Any] = json.loads(answer.read())
    except (urllib.error.URLError, OSError):
        return []
    return [one["value"][1] for one in found["data"]["result"]]
