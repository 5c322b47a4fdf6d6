"""Measures how long digests of jobs take on a store with a month of a synthetic centre.

    python benches/portal_pages.py FOLDER --jobs-a-day 334
    python benches/job_digests.py FOLDER [--times 100] [--seed 1]

FOLDER contains 30 days of 10,000 jobs, each an hour long on average. The tool requests the digests of
randomly chosen jobs: in this process, through HTTP from a collector's portal as a node's script would, by
`iodock monitor digest --portal` and by `iodock monitor digest --store`, the latter two as a user types them,
with Python's start. Prints median, 95th percentile and maximum in seconds, the processor time of this process
or of the commands, and the machine's load. The data are synthetic, without an agent.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from random import Random

from iodock.centre.store import MonitorStore
from iodock.centre.views.digests import FORMS
from iodock.cli.digest_places import StorePlace
from iodock.cli.monitor_store import StoreOptions
from iodock.shared.language import language_in

COMMAND = [sys.executable, "-m", "iodock", "monitor"]
_MONTH_NS = 30 * 86_400 * 10**9
_JOBS = "SELECT split_part(job, ':', 1) AS job FROM job_io GROUP BY 1 HAVING max(end_ts) > {since} ORDER BY 1"


def measured(name: str, ask: Callable[[str], object], jobs: list[str], of_children: bool = False) -> None:
    who = resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF
    walls, cpus = [], []
    for job in jobs:
        before, begin = resource.getrusage(who), time.perf_counter()
        ask(job)
        walls.append(time.perf_counter() - begin)
        after = resource.getrusage(who)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"{name:18} {shown(walls)}   CPU {shown(cpus)}", flush=True)


def shown(values: list[float]) -> str:
    return (
        f"median {statistics.median(values):5.3f} 95 % {statistics.quantiles(values, n=20)[-1]:5.3f} "
        f"longest {max(values):5.3f}"
    )


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        found: bytes = answer.read()
        return found


def commanded(*words: str) -> None:
    subprocess.run([*COMMAND, "digest", *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    known = MonitorStore(options.folder).table(
        _JOBS.format(since=time.time_ns() - _MONTH_NS + 3600 * 10**9),
        begin=0,
        end=1 << 62,
        resolution="ten_minutes",
    )
    every = known.column("job").to_pylist()
    jobs = Random(options.seed).sample(every, options.times)
    print(
        f"{len(every):,} jobs, {len(jobs)} asked for; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    place = StorePlace(StoreOptions(str(options.folder)), None, None)
    question = place.asked_with("en")
    text = language_in("en")
    measured("in one process", lambda job: FORMS["text"](place.of(question, job), text), jobs)
    server = subprocess.Popen(
        [*COMMAND, "serve", "--store", str(options.folder), "--listen", "127.0.0.1:0"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stderr
        url = next(line.split()[1] for line in server.stderr if line.startswith("note: http"))
        fetched(f"{url}/digests/{jobs[0]}")
        measured("HTTP", lambda job: fetched(f"{url}/digests/{job}"), jobs)
        few = jobs[: max(20, len(jobs) // 5)]
        measured("command, portal", lambda job: commanded(job, "--portal", url), few, True)
    finally:
        server.terminate()
        server.wait()
    measured("command, store", lambda job: commanded(job, "--store", str(options.folder)), few, True)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
