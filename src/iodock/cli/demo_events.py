"""Creates events for the demonstration of the monitor: lines in the logs of simulated servers, and rounds of
a probe. Real agents read them and send them to the collector. Each line contains the word `synthetic`."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from pathlib import Path

from iodock.file_system.probe.operations import ROUND, Operation
from iodock.file_system.probe.records import Kind, Outcome, Round, Run
from iodock.file_system.probe.store import ProbeStore
from iodock.simulation.centre import FILE_SYSTEM
from iodock.simulation.population import LOGIN_NODE
from iodock.simulation.tree import Tree

LOG = "/var/log/messages"
PROBES = "/var/lib/probes"
"""Folder with the results of probes, on every simulated machine and on the login node."""
PROBE_LIMIT_S = 2.0
PROBED = f"/{FILE_SYSTEM}/probe"
_PROBE_EVERY_S = 10.0
_SLOW_ROUNDS = range(6, 9)
"""Rounds in which the probe is slow, of thirty."""
_AGAIN_S = 900.0
"""The story repeats at this interval."""
# The lines of the story: the time in seconds since its beginning, the index of the server (0 is the metadata
# server), and the message of the kernel.
_STORY = (
    (4.0, -1, "Lustre: {fs}-OST0003: Connection restored to 10.10.1.7@o2ib (at 10.10.1.7@o2ib)"),
    (9.0, 0, "Lustre: {fs}-MDT0000: haven't heard from client 4d51 (at 10.10.1.9@o2ib) in 227 seconds. "
             "I think it's dead, and I am evicting it."),
    (60.0, -1, "blk_update_request: I/O error, dev sdd, sector 81920 op 0x0:(READ)"),
    (64.0, -1, "blk_update_request: I/O error, dev sdd, sector 81928 op 0x0:(READ)"),
    (180.0, -2, "Lustre: {fs}-OST0001: slow setattr 41s due to heavy IO load"),
    (300.0, -2, "bnx2x 0000:3b:00.0 eth2: NIC Link is Down"),
    (320.0, -2, "bnx2x 0000:3b:00.0 eth2: NIC Link is Up, 10000 Mbps full duplex"),
    (480.0, 0, "INFO: task ldlm_cn03_001:4711 blocked for more than 120 seconds."),
)  # fmt: skip


class Happenings:
    """Writes the events to the logs and to the probe store at the times of the story."""

    def __init__(self, tree: Tree) -> None:
        """Creates the logs and the probe store. This must be done before the agents start, because an agent
        reports only lines that are added while it runs. Raises OSError and StoreError."""
        self._root = tree.root
        self._servers = [server.name for server in tree.centre.servers]
        for name in (*self._servers, LOGIN_NODE):
            log = self._log(name)
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()
        self._probes = ProbeStore.prepared(self._root / LOGIN_NODE / PROBES.lstrip("/"))
        mounts = self._root / LOGIN_NODE / "proc/self/mountinfo"
        mounts.parent.mkdir(parents=True, exist_ok=True)
        mounts.write_text(f"36 35 0:42 / /{FILE_SYSTEM} rw - lustre 10.0.0.1@o2ib:/{FILE_SYSTEM} rw\n")
        self._run, self._chance = f"demo-{time.time_ns()}", random.Random(1)
        self._probes.append(
            Run(
                time.time_ns(),
                self._run,
                LOGIN_NODE,
                1,
                PROBED,
                False,
                _PROBE_EVERY_S,
                30.0,
                65536,
                "synthetic",
            )
        )
        self._began, self._told, self._rounds = time.monotonic(), 0, 0

    def write(self) -> None:
        """Writes the events that are due. It must be called every few seconds. Raises OSError and
        StoreError."""
        passed = time.monotonic() - self._began
        while passed >= self._due():
            _, server, text = _STORY[self._told % len(_STORY)]
            self._say(self._servers[server % len(self._servers)], text.format(fs=FILE_SYSTEM))
            self._told += 1
        if passed >= self._rounds * _PROBE_EVERY_S:
            self._probe()

    def _due(self) -> float:
        """Returns the time at which the next line is due, in seconds since the beginning."""
        again, at = divmod(self._told, len(_STORY))
        return again * _AGAIN_S + _STORY[at][0]

    def _say(self, name: str, text: str) -> None:
        moment = datetime.now(UTC).isoformat(timespec="microseconds")
        with self._log(name).open("a") as log:
            log.write(f"{moment} {name} kernel: {text} (synthetic)\n")

    def _log(self, name: str) -> Path:
        return self._root / name / LOG.lstrip("/")

    def _probe(self) -> None:
        """Adds a round of the probe. In rounds 6 to 8 of every thirty, creating a file takes 2.5 to 4 s."""
        self._rounds += 1
        outcomes: dict[Operation, Outcome] = {}
        for one in ROUND:
            outcomes[one] = Outcome(Kind.ANSWERED, int(self._chance.lognormvariate(14.0, 0.4)))
        if self._rounds % 30 in _SLOW_ROUNDS:
            outcomes[Operation.CREATE] = Outcome(Kind.ANSWERED, int(self._chance.uniform(2.5e9, 4e9)))
        self._probes.append(Round(time.time_ns(), self._run, self._rounds, outcomes))
