"""Floods the collector with one agent's token, and measures the pushes of other agents at the same time.

    .venv/bin/python benches/collector_flood.py [--seconds 20] [--threads 8]

The flood consists of batches of 2,000 new jobs each. Prints how long another agent's pushes take before and
during the flood, the collector's answers to the flood, and the collector's peak memory.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from collector_load import usage

from batches import COUNT, Entry, Part, frame
from iodock.centre.monitor.access import Role, add_token
from iodock.centre.portal.door import TYPE

NEW_JOBS, BATCHES = 2000, 80
"""Of each connection, the same again and again: all together more than may be new at once."""
EVERY_S = 0.1
"""Between the other's pushes."""


def batch(number: int, jobs: int, host: str) -> bytes:
    entries = [Entry(f"{host}-{number}-{job}", {("open", COUNT): 1}) for job in range(jobs)]
    return frame(number, [Part(time.time_ns(), entries)], host=host)


def post(connection: http.client.HTTPConnection, body: bytes, token: str) -> int:
    headers = {"Content-Type": TYPE, "Authorization": f"Bearer {token}"}
    connection.request("POST", "/api/v1/samples", body, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def flood(port: int, token: str, options: argparse.Namespace, told: Connection) -> None:
    """Sends the flood from a separate process, with this number of connections."""
    bodies = [
        [batch(number, NEW_JOBS, f"flood{thread}") for number in range(1, BATCHES + 1)]
        for thread in range(options.threads)
    ]
    statuses, end = Counter[int](), threading.Event()

    def send(own: list[bytes]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for body in itertools.cycle(own):
            if end.is_set():
                return
            statuses[post(connection, body, token)] += 1

    threads = [threading.Thread(target=send, args=(own,)) for own in bodies]
    told.send("ready")
    told.recv()
    for thread in threads:
        thread.start()
    told.recv()
    end.set()
    for thread in threads:
        thread.join()
    told.send(dict(statuses))


def answers(port: int, token: str, first: int, seconds: float) -> list[float]:
    """Returns the seconds of each push of an agent with normal load."""
    connection, took = http.client.HTTPConnection("127.0.0.1", port, timeout=60), []
    ends = time.monotonic() + seconds
    for number in itertools.count(first):
        began = time.monotonic()
        if began > ends:
            return took
        status = post(connection, batch(number, 20, "oss01"), token)
        took.append(time.monotonic() - began)
        if status != 200:
            raise SystemExit(f"the one that behaves was answered {status}")
        time.sleep(EVERY_S)
    return took


def shown(what: str, took: list[float]) -> None:
    print(
        f"{what}: {len(took)} pushes, median {statistics.median(took) * 1e3:.1f} ms, "
        f"longest {max(took) * 1e3:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="collector-"))
    tokens = folder / "tokens.toml"
    bad, good = (add_token(tokens, name, Role.AGENT) for name in ("bad", "good"))
    command = [sys.executable, "-m", "iodock", "monitor", "serve", "--store", str(folder / "store")]
    command += ["--listen", "127.0.0.1:0", "--tokens", str(tokens)]
    collector = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert collector.stderr
        port = int(collector.stderr.readline().rpartition(":")[2])
        shown("alone", answers(port, good, 1, options.seconds))
        here, there = multiprocessing.Pipe()
        other = multiprocessing.Process(target=flood, args=(port, bad, options, there), daemon=True)
        other.start()
        here.recv()
        here.send("begin")
        shown("beside the flood", answers(port, good, 100_000, options.seconds))
        here.send("end")
        print("the flood was answered", here.recv())
        print(f"the collector's greatest memory: {usage(collector.pid)[1] / 1e6:,.0f} MB")
    finally:
        collector.terminate()
        collector.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
