"""Runs a collector for a test and pushes batches to it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from batches import BYTES, COUNT, Entry
from iodock.centre.store import MonitorStore

IODOCK = [sys.executable, "-m", "iodock"]


SECOND = 1_000_000_000


HOUR = 3600 * SECOND


# The start of the day before yesterday (UTC), in nanoseconds since the epoch.
BEGIN = (time.time_ns() // (24 * HOUR) - 2) * 24 * HOUR


def written(job: str | bytes, value: int, at: int, **more: str) -> Entry:
    values = {("write_bytes", BYTES): value, ("write_bytes", COUNT): value // 4096}
    return Entry(job, values, start=BEGIN - HOUR, updated=at, **more)


def sums(store: MonitorStore, resolution: str = "fine") -> dict[str, int]:
    rows = store.table(
        "SELECT job, sum(write_bytes)::BIGINT AS bytes FROM job_io GROUP BY job", begin=0, end=time.time_ns(),
        resolution=resolution,
    )  # fmt: skip
    return {row["job"]: row["bytes"] for row in rows.to_pylist()}


@contextmanager
def serving(store: Path, *options: object, limit: str = "") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [*IODOCK, "monitor", "serve", "--store", store, "--listen", "127.0.0.1:0", *options]
    shell = ["bash", "-c", f'{limit}; exec "$@"', "bash"] if limit else []
    process = subprocess.Popen([str(part) for part in (*shell, *command)], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        said = []
        for line in process.stderr:
            said.append(line)
            if "http" in line:
                break
        assert said and "http" in said[-1], said
        yield said[-1].split()[-1], process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def post(url: str, body: bytes, **headers: str) -> tuple[int, dict[str, object]]:
    headers = {"Content-Type": "application/x-iodock-samples", **headers}
    request = urllib.request.Request(f"{url}/api/v1/samples", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
