"""Measures how long one job's page and the other pages take, on the store of a collector that ran for hours.

    .venv/bin/python benches/job_page.py [--jobs 60] [--hours 8] [--times 5] [--iodock PATH]... [--folder DIR]

Simulates a centre whose jobs each run on several nodes and targets, with readings every 10 s and upkeep every
2 minutes, as a collector does. So the store has large files of past hours and many small ones of the last
hour. Then each IODOCK (default: the one of this Python) serves a copy of the store, and the tool requests
each page several times, alternately from each IODOCK. Prints median and maximum in seconds. Give two, one
before and one after a change, to compare them. DIR keeps the store, or already contains it. The data are
synthetic, without an agent.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from iodock.centre.monitor.collector import Collector
from iodock.centre.store import MonitorStore
from iodock.simulation.centre import Centre
from iodock.simulation.history import write_history
from iodock.simulation.scenarios import named

SECOND = 1_000_000_000
TEND_EVERY_S, READ_EVERY_S = 120.0, 10.0
OVER_AFTER_S = 900


def make(folder: Path, jobs: int, hours: float) -> None:
    """Creates the store of a collector that ran until now."""
    now = time.time_ns()
    centre = Centre(named("healthy"), seed=1, begin_ns=now - int(hours * 3600 * SECOND), jobs=jobs)
    collector = Collector(folder)
    while centre.now_ns < now - int(TEND_EVERY_S * SECOND):
        write_history(centre, collector.writer, TEND_EVERY_S, READ_EVERY_S, lambda share: None)
        collector.tend(centre.now_ns)
    # The collector writes new readings to a file every few seconds.
    while centre.now_ns < now:
        write_history(centre, collector.writer, READ_EVERY_S, READ_EVERY_S, lambda share: None)


def pages(folder: Path) -> dict[str, str]:
    """Returns the address of each page by its name."""
    sql = f"""
        SELECT split_part(job, ':', 1) AS number, split_part(any_value(job), ':', 2) AS "user",
            split_part(min(job), ':', 3) AS node, count(DISTINCT job) AS nodes,
            max(end_ts) - min(begin_ts) AS lasted, min(begin_ts) AS began,
            max(end_ts) > max(max(end_ts)) OVER () - {OVER_AFTER_S * SECOND} AS runs
        FROM job_io WHERE job NOT LIKE ':%' GROUP BY split_part(job, ':', 1)
    """
    store = MonitorStore(folder)
    jobs = store.table(sql, begin=0, end=1 << 62, resolution="minute").to_pylist()
    running, over = ([job for job in jobs if job["runs"] is is_running] for is_running in (True, False))
    longest = max(jobs, key=lambda job: job["lasted"])
    chosen = {
        "job, longest": longest, "job, most nodes": max(running, key=lambda job: job["nodes"]),
        "job, newest": max(running, key=lambda job: job["began"]),
        "job, over": max(over, key=lambda job: job["lasted"]),
    }  # fmt: skip
    found = {what: f"/jobs/{job['number']}" for what, job in chosen.items()}
    found["job, 15 minutes"] = f"{found['job, newest']}?range=15m"
    found["job, a day"] = f"{found['job, longest']}?range=1d"
    return found | {
        "front": "/", "front, a day": "/?range=1d", "jobs": "/jobs", "jobs, a day": "/jobs?range=1d",
        "user": f"/jobs?user={longest['user']}&range=1d", "server": "/machines?host=mds01",
        "node": f"/machines?host={longest['node']}", "events": "/events", "use": "/use",
    }  # fmt: skip


@contextlib.contextmanager
def served(iodock: str, store: Path) -> Iterator[str]:
    """Serves STORE and yields the URL."""
    command = [iodock, "monitor", "serve", "--store", str(store), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        line = process.stderr.readline()
        if not line.startswith("note: http"):
            raise SystemExit(f"{' '.join(command)}: {line}")
        yield line.split()[1]
    finally:
        process.terminate()
        process.wait()


def measured(url: str, page: str) -> float:
    begin = time.perf_counter()
    with urllib.request.urlopen(url + page) as answer:
        answer.read()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=60, help="run at once")
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the store is kept")
    parser.add_argument("--iodock", action="append", help="the program to ask; may be given several times")
    options = parser.parse_args()
    programs: list[str] = options.iodock or [str(Path(sys.executable).with_name("iodock"))]
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        store: Path = options.folder or Path(scratch) / "store"
        if not store.exists():
            begin = time.perf_counter()
            make(store, options.jobs, options.hours)
            print(f"made in {time.perf_counter() - begin:.0f} s")
        for (table, resolution), files in sorted(MonitorStore(store).catalogue.files.items()):
            rows = sum(file.rows for file in files)
            print(f"{table:10} {resolution:12} {rows:>10,} rows in {len(files)} files")
        urls = []
        for number, program in enumerate(programs):
            shutil.copytree(store, Path(scratch) / f"copy-{number}")
            urls.append(stack.enter_context(served(program, Path(scratch) / f"copy-{number}")))
        for what, page in pages(store).items():
            taken: list[list[float]] = [[] for _ in urls]
            for _ in range(options.times):
                for times, url in zip(taken, urls, strict=True):
                    times.append(measured(url, page))
            columns = "   ".join(
                f"median {statistics.median(one):6.3f}  longest {max(one):6.3f}" for one in taken
            )
            print(f"{what:16} {columns}   {page}", flush=True)


if __name__ == "__main__":
    main()
