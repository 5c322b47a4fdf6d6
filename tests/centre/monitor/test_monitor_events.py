"""Tests events from a real probe store and a made-up tree, which pass through a real agent to the portal's
pages."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.records import Kind, Outcome, Round, Run
from iodock.file_system.probe.store import ProbeStore
from portal_site import Server, portal

PATIENCE_S = 60.0
MOUNT = "36 35 0:42 / /lfs rw - lustre 10.0.0.1@o2ib:/lfs rw\n"
ARRAY = "md0 : active raid1 sdb[1] sda[0]\n      5 blocks [2/2] [UU]\n"


@contextmanager
def running(binary: Path, root: Path, server: Server, *more: str) -> Iterator[None]:
    words = [binary, "run", "--root", root, "--listen", "127.0.0.1:0", "--interval", "0.2",
             "--spool", root / "spool", "--push", server.url, *more]  # fmt: skip
    with (root / "agent.log").open("w") as log, subprocess.Popen(words, stderr=log) as process:
        try:
            yield
        finally:
            process.kill()


def wait_for(is_there: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_probes_and_arrays_reach_the_portal(agent: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    store = ProbeStore.prepared(root / "probes")
    for path, text in (("proc/self/mountinfo", MOUNT), ("proc/mdstat", ARRAY)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    now = time.time_ns()
    store.append(Run(now, "r1", "login1", 1, "/lfs/probe", False, 60.0, 30.0, 65536, "0.1.0"))
    store.append(Round(now, "r1", 1, {Operation.MKDIR: Outcome(Kind.ANSWERED, 7_000_000_000)}))

    def answer(number: int, outcome: Outcome) -> None:
        store.append(Round(time.time_ns(), "r1", number, {Operation.MKDIR: outcome}))

    with portal(tmp_path / "store") as server:

        def shown(path: str) -> str:
            server.collector.flush()
            return server.get(path)[1]

        def chart() -> str:
            return shown(f"/?range=15m&end={time.time_ns() // 1_000_000_000}")

        def has_told(kind: str, text: str) -> bool:
            return text in shown(f"/events?kind={kind}&format=json")

        with running(agent, root, server, "--probe-store", "/probes", "--probe-limit", "2"):
            # The agent reports only messages that are newer than its first start, so the test waits until it
            # has read the old ones.
            seen = root / "spool/seen.json"
            wait_for(lambda: seen.exists() and "probe /" in seen.read_text())
            answer(2, Outcome(Kind.ANSWERED, 3_000_000_000))
            wait_for(lambda: has_told("probe-slow", "the round took 3.000 s, the limit is 2.000 s"))
            wait_for(lambda: "Response time of probes" in chart())
            assert "/lfs/probe" in chart() and 'class="line limit"' in chart() and "3 s" in chart()
            answer(3, Outcome(Kind.FAILED, 5000, "EIO"))
            wait_for(lambda: has_told("probe-failed", "mkdir: EIO"))
            (root / "new").write_text(ARRAY.replace("[2/2] [UU]", "[2/1] [U_]"))
            (root / "new").rename(root / "proc/mdstat")
            wait_for(lambda: has_told("array-degraded", "1 of 2 members in use [U_]"))
        answer(4, Outcome(Kind.ANSWERED, 1_000_000))
        with running(agent, root, server, "--probe-store", "/probes", "--probe-limit", "2"):
            wait_for(lambda: has_told("probe-well", "the round took 0.001 s"))
        found = json.loads(shown("/events?format=json"))["rows"]
        assert [row["kind"] for row in found] == [
            "probe-well",
            "array-degraded",
            "probe-failed",
            "probe-slow",
        ]
        assert {row["file_system"] for row in found if row["source"] == "probe"} == {"lfs"}
