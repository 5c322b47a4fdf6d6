"""Measures the collector under load: agents of many servers and nodes push batches at a fixed interval.

    .venv/bin/python benches/collector_load.py [--servers 2500] [--jobs 10000] [--nodes 5000] [--rounds 6]

Each job works on 4 targets and 2 nodes, and every entry changes in every round. Prints how long a round of
pushes takes from the first to the last answer, and the processor time and memory that the collector needs for
it. At the end it checks that the collector's sum is that of the pushed batches.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from batches import BYTES, COUNT, Entry, Part, frame
from iodock.centre.portal.door import TYPE
from iodock.centre.store import MonitorStore

SECOND = 1_000_000_000
THREADS = 32
TARGETS_A_JOB, NODES_A_JOB = 4, 2


def placed(jobs: int, places: int, each: int, seed: int) -> dict[int, list[int]]:
    """Returns the jobs at each place."""
    chance, found = random.Random(seed), defaultdict(list)
    for job in range(jobs):
        for place in chance.sample(range(places), each):
            found[place].append(job)
    return found


def frames_of_round(
    number: int, at: int, servers: dict[int, list[int]], nodes: dict[int, list[int]]
) -> list[bytes]:
    """Returns one batch of every agent."""
    began = at - at % (86_400 * SECOND) - 86_400 * SECOND

    def entry(job: int, names: tuple[str, ...]) -> Entry:
        values = {}
        for name in names:
            values |= {(name, BYTES): number * (job + 1) * 1_048_576, (name, COUNT): number * (job + 1)}
        return Entry(f"{job}:1000:n", values, start=began, updated=at)

    found = []
    for place, source, kind in ((servers, "obdfilter_job_stats", "oss"), (nodes, "process_io", "node")):
        names = ("read_bytes", "write_bytes") if kind == "oss" else ("read_call", "write_call")
        for which, jobs in place.items():
            part = Part(
                at,
                [entry(job, names) for job in jobs],
                source=source,
                target=f"{kind}-{which}",
                full=number == 0,
            )
            spool = f"{kind}{which:012d}".encode()[:16].ljust(16, b"_")
            found.append(frame(number + 1, [part], spool=spool, host=f"{kind}{which}"))
    return found


def push(port: int, frames: list[bytes]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for body in frames:
        connection.request("POST", "/api/v1/samples", body, {"Content-Type": TYPE})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{answer.status} {content!r}")
    connection.close()


def usage(pid: int) -> tuple[float, int]:
    """Returns processor seconds and peak memory in bytes."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line)
    return ticks / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("servers", 2500), ("jobs", 10_000), ("nodes", 5000), ("rounds", 6)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    servers = placed(options.jobs, options.servers, TARGETS_A_JOB, 1)
    nodes = placed(options.jobs, options.nodes, NODES_A_JOB, 2)
    folder = Path(tempfile.mkdtemp(prefix="collector-"))
    command = [
        sys.executable,
        "-m",
        "iodock",
        "monitor",
        "serve",
        "--store",
        folder / "store",
        "--listen",
        "127.0.0.1:0",
    ]
    collector = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
    try:
        assert collector.stderr
        port = int(collector.stderr.readline().rpartition(":")[2])
        measure(options, collector, port, servers, nodes, folder / "store")
    finally:
        collector.terminate()
        collector.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def measure(
    options: argparse.Namespace, collector: subprocess.Popen[str], port: int,
    servers: dict[int, list[int]], nodes: dict[int, list[int]], store: Path,
) -> None:  # fmt: skip
    agents, entries = (
        len(servers) + len(nodes),
        sum(map(len, servers.values())) + sum(map(len, nodes.values())),
    )
    print(f"agents {agents:,}, entries {entries:,} a round, jobs {options.jobs:,}")
    begin = time.time_ns() - options.rounds * 10 * SECOND
    walls, cpus = [], []
    for number in range(options.rounds):
        frames = frames_of_round(number, begin + number * 10 * SECOND, servers, nodes)
        before, started = usage(collector.pid)[0], time.monotonic()
        threads = [
            threading.Thread(target=push, args=(port, frames[index::THREADS])) for index in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.monotonic() - started
        time.sleep(6)
        cpu, peak = usage(collector.pid)
        walls.append(wall)
        cpus.append(cpu - before)
        print(
            f"round {number}: {wall:.2f} s, {agents / wall:,.0f} pushes/s; "
            f"collector {cpu - before:.2f} s of CPU with its flush, at most {peak / 1e6:,.0f} MB"
        )
    print(f"median: {statistics.median(walls[1:]):.2f} s a round, {statistics.median(cpus[1:]):.2f} s of CPU")
    rows = MonitorStore(store).table(
        "SELECT sum(write_bytes)::DOUBLE AS b, count(*) AS n FROM job_io WHERE source LIKE 'obd%'",
        begin=0, end=1 << 62, resolution="fine",
    ).to_pylist()[0]  # fmt: skip
    truth = sum((job + 1) * 1_048_576 * (options.rounds - 1) for jobs in servers.values() for job in jobs)
    verdict = "agree" if rows["b"] == truth else "DIFFER"
    print(f"rows {rows['n']:,}; bytes {verdict}: {rows['b']:,.0f} of {truth:,}")


if __name__ == "__main__":
    main()
