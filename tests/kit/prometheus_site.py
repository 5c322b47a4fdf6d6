"""Runs a simulated centre whose agents are scraped by a real Prometheus and also push to a collector."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from iodock.centre.prometheus import Client, PrometheusStore, parsed
from iodock.centre.store import MonitorStore
from iodock.simulation.centre import Centre
from iodock.simulation.scenarios import named
from iodock.simulation.tree import Tree

EVERY_S = 1.0
"""Interval of the agents' readings and of Prometheus' scrapes."""
PATIENCE_S = 90.0
_SCRAPED = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: iodock
    honor_labels: true
    static_configs: [{targets: [%s]}]
"""


class Site:
    """A simulated centre with agents, a Prometheus and a collector. The simulated time advances only on
    request."""

    def __init__(
        self, folder: Path, agent: Path, prometheus: Path, jobs: int = 8, listed: int = 1000
    ) -> None:
        """LISTED: number of jobs that an agent lists at `/metrics` for each target."""
        self.folder, self.agent, self.prometheus, self.listed = folder, agent, prometheus, listed
        self.centre = Centre(named("healthy"), seed=5, begin_ns=time.time_ns(), servers=3, jobs=jobs)
        self.tree = Tree(folder / "lustre", self.centre)
        self.tree.write()
        self.names = [server.name for server in self.centre.servers]
        self.ports = {name: _free_port() for name in ("prometheus", "collector", *self.names)}
        self.running: list[subprocess.Popen[bytes]] = []

    @property
    def kept(self) -> MonitorStore:
        return MonitorStore(self.folder / "store")

    @property
    def scraped(self) -> PrometheusStore:
        return PrometheusStore(Client(parsed(self.address)))

    @property
    def address(self) -> str:
        return f"prometheus://127.0.0.1:{self.ports['prometheus']}"

    def start(self) -> None:
        """Starts agents, Prometheus and collector. Returns once both have read every agent."""
        collector = f"127.0.0.1:{self.ports['collector']}"
        self._run([sys.executable, "-m", "iodock", "monitor", "serve", "--listen", collector,
                   "--store", self.folder / "store"], "collector")  # fmt: skip
        for name in self.names:
            self._run([self.agent, "run", "--root", self.tree.root / name, "--interval", str(EVERY_S),
                       "--jobs", str(self.listed), "--listen", f"127.0.0.1:{self.ports[name]}",
                       "--push", f"http://{collector}",
                       "--spool", self.folder / f"spool-{name}"], name)  # fmt: skip
        targets = ", ".join(f'"127.0.0.1:{self.ports[name]}"' for name in self.names)
        (self.folder / "prometheus.yml").write_text(_SCRAPED % targets)
        self._run([self.prometheus, f"--config.file={self.folder}/prometheus.yml",
                   f"--storage.tsdb.path={self.folder}/tsdb",
                   f"--web.listen-address=127.0.0.1:{self.ports['prometheus']}"], "prometheus")  # fmt: skip
        until("Prometheus has scraped all agents twice", self._has_scraped)
        until("the collector knows all agents", self._has_pushed)

    def _run(self, command: list[object], name: str) -> None:
        words = [str(word) for word in command]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running.append(
                subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
            )

    def _has_scraped(self) -> bool:
        # Prometheus needs two readings of each agent, because one reading shows no growth.
        found = self.asked('count_over_time(iodock_agent_source_done{source="process-io"}[5m]) >= 2')
        return len(found) == len(self.names)

    def _has_pushed(self) -> bool:
        # The first batch contains the full state, and the second shows that the collector stored the first.
        found = self.batches()
        return len(found) == len(self.names) and min(found.values()) >= 2

    def batches(self) -> dict[str, int]:
        """Returns the last batch of each machine that the collector has written to files. Agents send a batch
        for each reading, even without growth."""
        try:
            found = json.loads((self.folder / "store" / "catalogue.json").read_text())
        except FileNotFoundError:
            return {}
        return {spool.partition(" ")[2]: last for spool, last in found["applied"].items()}

    def made_batches(self) -> dict[str, int]:
        """Returns the number of the last batch that each agent had made when Prometheus last scraped it."""
        made: dict[str, int] = {}
        for name in ("iodock_agent_batches_kept_total", "iodock_agent_batches_waiting"):
            for one in self.asked(name):
                made[one["metric"]["host"]] = made.get(one["metric"]["host"], 0) + int(one["value"][1])
        return made

    def asked(self, query: str) -> list[dict[str, Any]]:
        """Returns the result of an instant query; empty while Prometheus does not answer."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.ports["prometheus"], timeout=10)
            connection.request("GET", f"/api/v1/query?query={quote(query)}")
            answer = connection.getresponse()
            body = json.loads(answer.read()) if answer.status == 200 else {"data": {"result": []}}
        except (OSError, ValueError):
            return []
        result: list[dict[str, Any]] = body["data"]["result"]
        return result

    def live(self, seconds: float) -> None:
        """Advances the simulated time together with the real time for SECONDS."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(0.5)
            late = (time.time_ns() - self.centre.now_ns) / 1e9
            if late > 0:
                self.centre.advance(late)
            self.tree.write()

    def end(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def until(what: str, is_so: Callable[[], bool]) -> None:
    """Waits until IS_SO returns true. The limit is long, because the machine may be slow."""
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends, f"not after {PATIENCE_S:.0f} s: {what}"
        time.sleep(0.5)


@contextmanager
def site(folder: Path, agent: Path, prometheus: Path, **sizes: int) -> Iterator[Site]:
    """Yields a running site and ends it afterwards."""
    made = Site(folder, agent, prometheus, **sizes)
    try:
        made.start()
        yield made
    finally:
        made.end()
