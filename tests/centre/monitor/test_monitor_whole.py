"""Tests simulated servers with real agents and the real collector, which are killed at random moments: each
job's I/O counts exactly once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iodock.centre.store import MonitorStore
from iodock.simulation.centre import Centre
from iodock.simulation.scenarios import named
from iodock.simulation.tree import Tree
from simulated import wanted

pytestmark = pytest.mark.whole

KILLS = int(os.environ.get("IODOCK_KILLS", "4"))
"""Number of kills of agents and of the collector, chosen at random."""
PATIENCE_S = 60.0
COLLECTOR = "collector"


class Site:
    """A tree of simulated servers, an agent on each, and a collector. Each process can be killed and started
    again."""

    def __init__(self, folder: Path, agent: Path, is_pulled: bool) -> None:
        self.folder, self.agent, self.is_pulled = folder, agent, is_pulled
        self.centre = Centre(named("healthy"), seed=3, begin_ns=time.time_ns(), servers=3, jobs=12)
        self.tree = Tree(folder / "lustre", self.centre)
        self.tree.write()
        # Servers that were killed must restart at the same address, so that their clients find them.
        self.addresses = dict.fromkeys(self.members, "127.0.0.1:0")
        asked = self.members if is_pulled else [COLLECTOR]
        self.addresses |= zip(asked, free_addresses(len(asked)), strict=True)
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def members(self) -> list[str]:
        return [COLLECTOR, *(server.name for server in self.centre.servers)]

    def start(self, name: str) -> None:
        command: list[object] = [
            self.agent, "run", "--root", self.tree.root / name, "--listen", self.addresses[name],
            "--interval", "0.2", "--spool", self.folder / f"spool-{name}",
        ]  # fmt: skip
        command += ["--serve-spool"] if self.is_pulled else ["--push", f"http://{self.addresses[COLLECTOR]}"]
        if name == COLLECTOR:
            command = [sys.executable, "-m", "iodock", "monitor", "serve", "--listen", self.addresses[name]]
            command += ["--store", self.folder / "store"]
            command += self.pulls() if self.is_pulled else []
        with (self.folder / f"{name}.log").open("ab") as log:
            words = [str(word) for word in command]
            self.running[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log)

    def pulls(self) -> list[object]:
        listed = self.folder / "agents"
        lines = [f"http://{self.addresses[server.name]} {server.name}" for server in self.centre.servers]
        listed.write_text("\n".join(lines))
        return ["--pull-list", listed, "--pull-every", "0.2"]

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        assert process.poll() is None, (self.folder / f"{name}.log").read_text()
        process.send_signal(signal.SIGKILL)
        process.wait()

    def live(self, seconds: float) -> None:
        """Lets the jobs run for a while. Their time is ten times as fast as real time."""
        self.centre.advance(seconds * 10)
        self.tree.write()
        time.sleep(seconds)

    def seen(self) -> dict[tuple[str, str], int]:
        """Returns the sum of bytes read, bytes written and files opened in the store, by (job id, target)."""
        found = MonitorStore(self.folder / "store").table(
            "SELECT job, target, sum(read_bytes + write_bytes + open)::BIGINT AS done FROM job_io "
            "GROUP BY ALL",
            begin=0, end=1 << 62, resolution="fine",
        )  # fmt: skip
        return {(row["job"], row["target"]): row["done"] for row in found.to_pylist() if row["done"]}

    def truth(self) -> dict[tuple[str, str], int]:
        done: dict[tuple[str, str], int] = {}
        for (job, target, counter), value in wanted(self.tree, timed=True).items():
            if counter in ("read_bytes", "write_bytes", "open") and value:
                done[job, target] = done.get((job, target), 0) + value
        return done


def free_addresses(count: int) -> list[str]:
    """Returns addresses with free ports outside of the range from which the kernel chooses ports of outgoing
    connections."""
    given = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    lowest, highest = int(given[0]), int(given[1])
    ports = [port for port in range(1024, 1 << 16) if not lowest <= port <= highest]
    found: list[str] = []
    # The order is random, so that concurrent tests do not choose the same ports.
    for port in random.SystemRandom().sample(ports, len(ports)):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(f"127.0.0.1:{port}")
        if len(found) == count:
            return found
    pytest.skip("all ports are given to connections (net.ipv4.ip_local_port_range)")


@pytest.fixture(params=[False, True], ids=["pushed", "pulled"])
def site(tmp_path: Path, agent: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    site = Site(tmp_path, agent, request.param)
    try:
        yield site
    finally:
        for process in site.running.values():
            process.kill()
            process.wait()


@pytest.mark.timeout(120 + 3 * KILLS)
def test_io_of_jobs_is_stored_once_whichever_process_is_killed(site: Site) -> None:
    chance = random.Random(11)
    for name in site.members:
        site.start(name)
    # The agents do not know what the jobs did before their first reading.
    before = site.truth()
    time.sleep(1.5)
    for _ in range(KILLS):
        site.live(chance.uniform(0.1, 1.5))
        name = chance.choice(site.members)
        site.kill(name)
        site.live(chance.uniform(0.0, 0.6))
        site.start(name)
    site.live(1.0)
    after, ends = site.truth(), time.monotonic() + PATIENCE_S
    grown = {key: done - before.get(key, 0) for key, done in after.items()}
    truth = {key: done for key, done in grown.items() if done}
    while site.seen() != truth and time.monotonic() < ends:
        time.sleep(0.5)
    assert sum(truth.values()) > 1 << 30
    assert site.seen() == truth
