"""Measures the CPU time of computing an answer from a Prometheus' data here: an hour of `/jobs`, scraped
every 15 s.

    benches/prometheus_answer.py --jobs 500 --targets 4

No Prometheus runs: the tool prepares its answers in advance, so that they take no time.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from typing import Any

from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.jobs import Wanted, jobs
from iodock.centre.monitor.questions.spans import SECOND, Span
from iodock.centre.prometheus import Client, PrometheusStore, parsed

BEGIN_S = 1_790_000_000
SCRAPES, EVERY_S = 240, 15
REPEATED = 3


@dataclass(frozen=True)
class Prepared(Client):
    """A client that returns prepared answers."""

    answers: dict[bool, bytes] = field(default_factory=dict)

    def readings(self, selector: str, begin: int, end: int) -> bytes:
        return self.answers["known_by" in selector]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--targets", type=int, default=4)
    options = parser.parse_args()
    answers = {is_of_owners: answer(options, is_of_owners) for is_of_owners in (True, False)}
    store = PrometheusStore(Prepared(parsed("prometheus://127.0.0.1"), answers=answers))
    within = Span(BEGIN_S * SECOND, (BEGIN_S + SCRAPES * EVERY_S) * SECOND, EVERY_S * SECOND, "fine", "fine")
    print(f"answers of {sum(map(len, answers.values())):,} bytes")
    for _ in range(REPEATED):
        wall, cpu = time.perf_counter(), time.process_time()
        rows = jobs(store, within, JobIds(), Wanted())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{rows.column('total')[0].as_py():,} jobs: {wall:.1f} s, of CPU {cpu:.1f} s")


def answer(options: argparse.Namespace, is_of_owners: bool) -> bytes:
    """Returns an answer with counters and their start times, or with the numbers of owners that are not
    listed."""
    result = []
    for target in range(options.targets):
        place = {"host": f"oss{target}", "file_system": "lfs", "target": f"lfs-OST{target:04x}"}
        if not is_of_owners:
            result.append(series("obdfilter_job_stats_other_owners", 0, 0, **place))
            continue
        for job in range(options.jobs):
            for operation in ("read_bytes", "write_bytes"):
                labels = {**place, "job": f"{job}:1000:n1", "known_by": "server", "operation": operation}
                result.append(series("obdfilter_job_stats_bytes_total", 0, 1000 * (job + 1), **labels))
                result.append(series("obdfilter_job_stats_bytes_created", BEGIN_S - 500, 0, **labels))
    data = {"resultType": "matrix", "result": result}
    return json.dumps({"status": "success", "data": data}).encode()


def series(name: str, first: int, grows: int, **labels: str) -> dict[str, Any]:
    values = [[BEGIN_S + EVERY_S * scrape, str(first + grows * scrape)] for scrape in range(SCRAPES)]
    return {"metric": {"__name__": f"iodock_{name}", **labels}, "values": values}


if __name__ == "__main__":
    main()
