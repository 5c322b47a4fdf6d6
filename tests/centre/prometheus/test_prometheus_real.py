"""Compares the data of a real Prometheus that scrapes agents with the store of a collector that receives the
same agents' pushes. `make test-prometheus` passes the path of Prometheus."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iodock.centre.monitor.questions import file_systems, job, jobs
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.job import OneJob
from iodock.centre.monitor.questions.jobs import Wanted
from iodock.centre.monitor.questions.spans import SECOND, Span
from iodock.centre.store import MonitorTables
from prometheus_site import EVERY_S, Site, site, until
from prometheus_sums import SUMS

PROGRAM = os.environ.get("IODOCK_PROMETHEUS", "")
CAPTURE = os.environ.get("IODOCK_PROMETHEUS_CAPTURE", "")
"""A folder in which to keep the scraped data, for tests without a Prometheus."""
LISTED = 3
pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(not PROGRAM, reason="make test-prometheus has a Prometheus"),
    pytest.mark.timeout(400),
]
IDS = JobIds()


@pytest.fixture(scope="module")
def rested(agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Span]]:
    """Runs a centre for a while and then stops it until Prometheus and collector have read everything."""
    folder = tmp_path_factory.mktemp("prometheus")
    with site(folder, agent, Path(PROGRAM)) as made:
        made.live(20)
        all_read(made)
        end = time.time_ns() // (10 * SECOND) * (10 * SECOND) + 20 * SECOND
        span = Span(end - 600 * SECOND, end, 10 * SECOND, "fine", "fine")
        if CAPTURE:
            capture(made, span, Path(CAPTURE))
        yield made, span


def all_read(made: Site) -> None:
    """Waits, while the simulated time stands still, until Prometheus and collector have the last activity."""
    # A scrape may return a reading of the interval before, and the agents' rounds may be in progress.
    stands = time.time_ns() + int(4 * EVERY_S * SECOND)
    until("it was scraped", lambda: read(made.scraped) > stands)
    # A busy machine may be late with its pushes, so the test waits for all batches that the agents had made
    # by then.
    batches = made.made_batches()
    assert len(batches) == len(made.names)
    until("it was pushed", lambda: all(made.batches()[host] >= last for host, last in batches.items()))


def read(store: MonitorTables) -> int:
    """Returns the time of the last reading of the machine that was read least recently. Rows without growth
    count, too."""
    now = time.time_ns()
    found = file_systems.servers(
        store, Span(now - 300 * SECOND, now, 10 * SECOND, "fine", "fine")
    ).to_pylist()
    return min((row["read_ts"] for row in found), default=0) if len(found) == 3 else 0


def sums(store: MonitorTables, span: Span, sql: str = SUMS) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = store.table(
        sql, begin=span.begin, end=span.end, resolution=span.resolution
    ).to_pylist()
    return rows


def capture(made: Site, span: Span, folder: Path) -> None:
    """Writes Prometheus' data on job_stats, services and agents, and the collector's sums for them, as a
    fixture."""
    name = (
        "iodock_(.+_job_stats_(operations|bytes|time_seconds)_.+|.+_other_owners|mds_stats.+|agent_source.+)"
    )
    answer = made.scraped.client.readings(f'{{__name__=~"{name}"}}', span.begin, span.end)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scraped.json.xz").write_bytes(lzma.compress(answer))
    kept = {"begin": span.begin, "end": span.end, "rows": sums(made.kept, span)}
    (folder / "kept.json.xz").write_bytes(lzma.compress(json.dumps(kept).encode()))


def test_prometheus_gives_the_same_io_per_job_and_target(rested: tuple[Site, Span]) -> None:
    made, span = rested
    kept = sums(made.kept, span)
    assert sum(row["read_bytes"] + row["write_bytes"] for row in kept) > 1 << 28
    assert sums(made.scraped, span) == kept
    truth = f"SELECT sum(read_bytes + write_bytes)::BIGINT AS moved FROM ({SUMS})"
    assert sums(made.scraped, span, truth) == sums(made.kept, span, truth)


def rows(table: pa.Table, *keys: str) -> list[dict[str, Any]]:
    """Returns the rows without columns that depend on time."""
    when = ("begin_ts", "end_ts", "seconds", "read_rate", "write_rate", "metadata_rate", "read_ts", "share")
    found = [{name: value for name, value in row.items() if name not in when} for row in table.to_pylist()]
    return sorted(found, key=lambda row: tuple(str(row[key]) for key in keys))


def test_prometheus_gives_the_same_views(rested: tuple[Site, Span]) -> None:
    made, span = rested
    stores = (made.kept, made.scraped)
    wanted = Wanted(sort="job", most=10_000)
    kept, scraped = (rows(jobs.jobs(store, span, IDS, wanted), "job", "user") for store in stores)
    assert scraped == kept != []
    busiest = max(kept, key=lambda row: row["read_bytes"])["job"]
    one = OneJob(IDS, busiest)
    kept, scraped = (rows(job.parts(store, one, span), "part", "place", "name") for store in stores)
    for row in (*kept, *scraped):
        row.update({name: sorted(row[name], key=str) for name in ("users", "commands", "file_systems")})
    assert scraped == kept != []
    kept, scraped = (rows(file_systems.servers(store, span), "host") for store in stores)
    assert scraped == kept != []
    waiting = [
        {name: sum(row[name] for row in file_systems.waiting(store, span).to_pylist())
         for name in ("handled", "waited_us", "queued", "samples")}
        for store in stores
    ]  # fmt: skip
    assert waiting[0] == pytest.approx(waiting[1])
    assert waiting[0]["handled"] > 0


def test_curves_lag_by_at_most_a_reading_and_a_scrape(rested: tuple[Site, Span]) -> None:
    """Prometheus scrapes an agent's reading at most one reading interval and one scrape interval later."""
    made, span = rested
    kept, scraped = (file_systems.by_servers(store, span).to_pylist() for store in (made.kept, made.scraped))
    # The curves have steps of 10 s. They differ by one step at most, since both intervals together are
    # shorter.
    assert span.step / SECOND > 3 * EVERY_S
    for name in ("read_bytes", "write_bytes", "metadata"):
        curves = [summed(found, name, span.steps) for found in (kept, scraped)]
        assert curves[0][-1] == pytest.approx(curves[1][-1])
        assert curves[0][-1] > 0
        for step in range(1, span.steps - 1):
            assert curves[0][step - 1] * 0.999999 <= curves[1][step] <= curves[0][step + 1] * 1.000001


def summed(found: list[dict[str, Any]], name: str, steps: int) -> list[float]:
    """Returns the running total at the end of each step."""
    total, curve = 0.0, []
    of_step = {row["bucket"]: row[name] for row in found}
    for step in range(steps):
        total += of_step.get(step, 0.0)
        curve.append(total)
    return curve


def test_top_reads_prometheus_from_the_command_line(rested: tuple[Site, Span]) -> None:
    made, _ = rested
    asked = []
    for store in (made.folder / "store", made.address):
        command = [sys.executable, "-m", "iodock", "monitor", "top", "--store", str(store), "--once",
                   "--format", "json", "--over", "10m", "--top", "1000"]  # fmt: skip
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        asked.append({row["name"]: row for row in json.loads(told.stdout)["rows"]})
    assert asked[0].keys() == asked[1].keys() != set()
    for name, row in asked[0].items():
        assert asked[1][name]["write_rate"] == pytest.approx(row["write_rate"], rel=1e-6)
        assert asked[1][name]["user"] == row["user"]


def test_with_few_jobs_listed_sums_of_targets_are_the_same(agent: Path, tmp_path: Path) -> None:
    of_targets = SUMS.replace("job, user, source, target", "source, target").replace(
        "bool_and(exact) AS exact", "count(DISTINCT job) AS jobs"
    )
    with site(tmp_path, agent, Path(PROGRAM), listed=LISTED) as made:
        made.live(8)
        all_read(made)
        now = time.time_ns()
        span = Span(now - 600 * SECOND, now, 10 * SECOND, "fine", "fine")
        kept, scraped = (sums(store, span, of_targets) for store in (made.kept, made.scraped))
    jobs_told = [{row["target"]: row.pop("jobs") for row in found} for found in (kept, scraped)]
    assert any(jobs_told[0][target] > LISTED for target in jobs_told[0])
    # The agents removed no job, so the sum over the unlisted jobs is exact, too.
    assert scraped == kept
