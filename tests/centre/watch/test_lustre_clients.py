"""Tests the states of Lustre servers as seen by clients. The readings have the agent's form and are made up
here."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from batches import COUNT, Entry, Part, frame
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.watch.observation import SECOND
from iodock.centre.watch.observing import Observer
from iodock.centre.watch.verdict import Verdict
from iodock.centre.watch.watching import Watching
from iodock.shared.settings import ServerStates

BYTES, TIME = 1, 2
STEP = 10 * SECOND
TARGET = "lfs-MDT0000"
CLIENTS = ("n1", "n2")
_LOOKED_AT = 15
"""Number of last samples that must agree: slightly more than are needed to know the usual values."""


@dataclass
class Clients:
    """Two clients with an agent; with `has_server`, also an agent on the metadata server."""

    folder: Path
    has_server: bool = False
    at: int = field(default_factory=lambda: (time.time_ns() - 3600 * SECOND) // STEP * STEP)
    number: int = 0
    requests: int = 0
    waited_us: int = 0

    def __post_init__(self) -> None:
        self.collector = Collector(self.folder)
        limits = ServerStates(scheduler="none", usual_hours=1, sample_s=10)
        self.watching = Watching(self.collector.store, limits=limits)

    def go_on(self, samples: int, requests: int, wait_us: int) -> list[Verdict]:
        """Pushes samples in which each client makes REQUESTS that each wait WAIT_US for an answer. Returns
        the verdicts."""
        verdicts: list[Verdict] = []
        for left in range(samples, 0, -1):
            self.number, self.at = self.number + 1, self.at + STEP
            self.requests += requests
            self.waited_us += requests * wait_us
            for client in CLIENTS:
                values = {("req_waittime", COUNT): self.requests, ("req_waittime", TIME): self.waited_us}
                self.push(client, values, "mdc_stats", f"{TARGET}-mdc-ffff8800")
            if self.has_server:
                self.push("mds01", {("statfs", COUNT): self.requests}, "mdt_job_stats", TARGET, "7")
            if left <= _LOOKED_AT:
                self.collector.flush()
                verdicts = list(self.watching.look(self.at + 2 * SECOND + SECOND // 2))
        return verdicts

    def push(
        self, host: str, values: dict[tuple[str, int], int], source: str, target: str, job: str = ""
    ) -> None:
        part = Part(
            self.at,
            [Entry(job, values, evidence=int(job != ""))],
            source,
            "lfs",
            target,
            full=self.number == 1,
        )
        spool = sha256(f"{host} {source} {target}".encode()).digest()[:16]
        self.collector.push(frame(self.number, [part], spool=spool, host=host))


def test_states_of_servers_without_an_agent_are_less_certain(tmp_path: Path) -> None:
    clients = Clients(tmp_path)
    (found,) = clients.go_on(100, requests=5000, wait_us=300)
    assert (found.server, found.file_system, found.kind, found.state) == (TARGET, "lfs", "client", "healthy")
    (found,) = clients.go_on(3, requests=20_000, wait_us=300_000)
    assert found.state == "overload" and found.confidence <= 0.5
    (found,) = clients.go_on(4, requests=5000, wait_us=300)
    assert found.state == "healthy"


def test_few_requests_that_take_minutes_are_a_stall(tmp_path: Path) -> None:
    clients = Clients(tmp_path)
    clients.go_on(100, requests=5000, wait_us=300)
    (found,) = clients.go_on(3, requests=2, wait_us=9_000_000)
    assert found.state == "stall" and found.confidence <= 0.5


def test_client_waiting_times_are_added_to_a_servers_samples(tmp_path: Path) -> None:
    clients = Clients(tmp_path, has_server=True)
    clients.go_on(4, requests=1000, wait_us=2500)
    observer = Observer(clients.collector.store, JobIds(), STEP)
    found = observer.round(clients.at + 2 * SECOND + SECOND // 2)
    assert {one.host for one in found.observations} == {"mds01"}
    # Two clients make 2,000 requests in ten seconds.
    assert found.news["mds01"].client_wait_s == pytest.approx(2.5e-3)
    assert found.news["mds01"].backlog == pytest.approx(0.5)


def test_waiting_times_for_an_object_server_belong_to_that_server(tmp_path: Path) -> None:
    clients = Clients(tmp_path)
    for _ in range(4):
        clients.go_on(1, requests=100, wait_us=2000)
        for number, target in enumerate(("lfs-OST0000", "lfs-OST0001")):
            clients.push("oss01", {("read_bytes", COUNT): clients.number}, "obdfilter_job_stats", target, "7")
            count = clients.number * 100 * (number + 1)
            values = {("req_waittime", COUNT): count, ("req_waittime", TIME): count * 40_000}
            clients.push("n1", values, "osc_stats", f"{target}-osc-ffff8800")
        clients.collector.flush()
    observer = Observer(clients.collector.store, JobIds(), STEP)
    found = observer.round(clients.at + 2 * SECOND + SECOND // 2)
    # The clients make 300 requests of 40 ms in ten seconds, on both targets.
    assert found.news["oss01"].client_wait_s == pytest.approx(0.04)
    assert found.news["oss01"].backlog == pytest.approx(1.2)
    assert {one.host for one in found.observations} == {"oss01", TARGET}


def test_jobs_are_derived_from_nodes_if_servers_do_not_count_them(tmp_path: Path) -> None:
    clients = Clients(tmp_path)
    for _ in range(4):
        clients.go_on(1, requests=100, wait_us=2000)
        for node, job in (("n1", "4711"), ("n9", "4712")):
            values = {("write_call", BYTES): clients.number * 1000}
            clients.push(node, values, "process_io", "", job)
        clients.collector.flush()
    observer = Observer(clients.collector.store, JobIds(), STEP)
    observer.round(clients.at + 2 * SECOND + SECOND // 2)
    # Node n9 has not mounted the file system.
    (one,) = observer.asked(TARGET, clients.at - 2 * STEP, clients.at)
    assert one.job == "4711" and one.node_bytes == pytest.approx(2000)


def test_a_past_time_range_has_each_server_once_with_client_waits(tmp_path: Path) -> None:
    clients = Clients(tmp_path, has_server=True)
    clients.go_on(4, requests=1000, wait_us=2500)
    observer = Observer(clients.collector.store, JobIds(), STEP)
    observer.prepare(clients.at)
    rounds = list(observer.stretch(clients.at - 3 * STEP, clients.at, "fine", clients.at - 3 * STEP))
    assert {one.host for found in rounds for one in found.observations} == {"mds01"}
    assert rounds[-1].news["mds01"].client_wait_s == pytest.approx(2.5e-3)
    assert observer.file_systems == {"mds01": "lfs"}
