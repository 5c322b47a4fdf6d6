"""Measures the cost of judging a synthetic centre of 2,500 servers and 10,000 jobs every 10 s.

    PYTHONPATH=src .venv/bin/python benches/server_states.py

The store contains what agents would have sent: each round is a file of rows of machines and one of jobs. The
tool measures each `look` in CPU seconds of all threads, to compare with the interval of 10 s. In the second
half one metadata server is overloaded, so `look` also queries jobs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iodock.centre.monitor.collector import Collector
from iodock.centre.watch.watching import Watching
from iodock.shared.settings import ServerStates
from iodock.simulation.history import _TARGETS, _job_io

SECOND = 1_000_000_000
STEP = 10 * SECOND
AFTER = 7 * SECOND
"""Time from the end of a round until it is judged, as in `Watching._until_next`. By then the round is in the
store."""
METADATA = 4
TARGETS_OF_A_JOB = 4
MOST_SHARE = 0.05
Rows = list[tuple[Any, ...]]


class Site:
    def __init__(self, folder: Path, servers: int, jobs: int) -> None:
        self.collector, self.random = Collector(folder), Random(1)
        self.hosts = [f"mds{n:02d}" for n in range(METADATA)] + [
            f"oss{n:04d}" for n in range(servers - METADATA)
        ]
        self.jobs = [
            (f"{n}:{1000 + n % 300}:n{n:05d}", self.random.sample(range(METADATA, servers), TARGETS_OF_A_JOB))
            for n in range(jobs)
        ]
        self.columns = [field.name for field in _job_io()]

    def write(self, end: int, is_overloaded: bool) -> None:
        """Writes one round of readings."""
        begin, new = end - STEP, []
        tables = (
            ("targets", list(self._machines(begin, end, is_overloaded)), _TARGETS),
            ("job_io", list(self._work(begin, end, is_overloaded)), _job_io()),
        )
        for table, rows, schema in tables:
            name, path = self.collector.writer.new_file(table, "fine", end)
            columns = [
                pa.array(list(column), field.type)
                for column, field in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, compression="zstd")
            new.append((table, "fine", name, begin, end, len(rows), False))
        self.collector.writer.replace([], [], new)

    def _machines(self, begin: int, end: int, is_overloaded: bool) -> Iterator[tuple[Any, ...]]:
        for at, host in enumerate(self.hosts):
            hit = is_overloaded and at == 0
            busy = 15_000_000 if hit else int(self.random.uniform(5e5, 1.5e6))
            grown = [
                ("cpu", "cpu", "system_time", busy, "us"),
                ("cpu", "cpu", "idle_time", 16_000_000 - busy, "us"),
            ]
            grown.append(("pressure", "io", "some_time", int(self.random.uniform(1e4, 5e5)), "us"))
            if at < METADATA:
                handled = 270_000 if hit else int(self.random.uniform(8000, 12_000))
                waited, queue = (290_000, 7900) if hit else (80, 1)
                for name, unit, value in (
                    ("req_waittime", "1", handled), ("req_waittime_time", "us", handled * waited),
                    ("req_qdepth", "1", handled), ("req_qdepth_sum", "1", handled * queue),
                    ("req_active", "1", handled), ("req_active_sum", "1", handled * (24 if hit else 2)),
                ):  # fmt: skip
                    grown.append(("mds_stats", "mdt", name, value, unit))
            for source, target, name, value, unit in grown:
                yield begin, end, host, source, None, target, name, unit, None, False, value, None, True
            for source, name, value in (("load", "load1_percent", 150), ("cpu", "uptime_s", end // SECOND)):
                yield begin, end, host, source, None, source, name, None, None, True, value, value, True

    def _work(self, begin: int, end: int, is_overloaded: bool) -> Iterator[tuple[Any, ...]]:
        for number, (job, targets) in enumerate(self.jobs):
            opens = 100_000 if is_overloaded and number == 7 else self.random.randint(0, 4)
            place = (begin, end, self.hosts[number % METADATA if number != 7 else 0], "mdt_job_stats", "lfs")
            yield self._row(
                (*place, f"lfs-MDT{number % METADATA:04d}", job),
                {"open": opens, "close": opens, "time_us": opens},
            )
            for at in targets:
                place = (begin, end, self.hosts[at], "obdfilter_job_stats", "lfs")
                done = {"write_bytes": 4 << 20, "writes": 4, "time_us": 9000}
                yield self._row((*place, f"lfs-OST{at:04x}", job), done)

    def _row(self, known: tuple[Any, ...], done: dict[str, int]) -> tuple[Any, ...]:
        texts = {"user": None, "session": None, "command": None, "known_by": "server", "exact": True}
        return (
            *known,
            *(texts[name] if name in texts else done.get(name, 0) for name in self.columns[len(known) :]),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--servers", type=int, default=2500)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=12)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), wanted.servers, wanted.jobs)
        now = time.time_ns() // STEP * STEP - 3600 * SECOND
        watching = Watching(site.collector.store, limits=ServerStates(scheduler="none", usual_hours=0.5))
        for _ in range(wanted.rounds):
            now += STEP
            site.write(now, False)
        costs = {"start": timed(watching, now), "healthy": [], "overload": []}
        for half in ("healthy", "overload"):
            for _ in range(wanted.rounds):
                now += STEP
                site.write(now, half == "overload")
                costs[half] += timed(watching, now)
        worst = watching.look(now + AFTER)[0]
    told = {"servers": wanted.servers, "jobs": wanted.jobs, "worst": f"{worst.server} {worst.state}"}
    told["named"] = [one.job for one in worst.suspects]
    for name, seconds in costs.items():
        told[f"{name}_cpu_s"] = round(sum(seconds) / len(seconds), 3)
        told[f"{name}_share_of_a_core"] = round(sum(seconds) / len(seconds) / (STEP / SECOND), 4)
    print(json.dumps(told, indent=1))
    assert max(told["healthy_share_of_a_core"], told["overload_share_of_a_core"]) <= MOST_SHARE, "too much"


def timed(watching: Watching, now: int) -> list[float]:
    begun = time.process_time()
    watching.look(now + AFTER)
    return [time.process_time() - begun]


if __name__ == "__main__":
    main()
