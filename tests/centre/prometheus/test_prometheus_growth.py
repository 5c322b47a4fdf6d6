"""Tests growth computed from Prometheus' samples: exact if possible, and never more than the truth."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

from fake_prometheus import Fake, serving
from iodock.centre.prometheus import Client, PrometheusStore, parsed
from iodock.shared.engine.need import OTHERS
from iodock.simulation.centre import Centre
from iodock.simulation.scenarios import named
from iodock.simulation.truth import truth

SECOND = 1_000_000_000
T = 1_790_000_000
EVERY_S = 15
PLACE = {"host": "oss1", "file_system": "lfs", "target": "lfs-OST0000", "instance": "oss1:9846"}
OWNER = {"job": "7:1000:n1", "known_by": "server", "operation": "write_bytes"}
Values = list[float | None]


def at(values: Values) -> list[tuple[float, str]]:
    """Returns values with the times of scrapes since T. At a None the series is missing."""
    return [(T + EVERY_S * n, f"{value:.15g}") for n, value in enumerate(values) if value is not None]


class Scraped:
    """Series that Prometheus scraped from one target."""

    def __init__(
        self, scrapes: int, others: Values | None = None, source: str = "obdfilter_job_stats"
    ) -> None:
        self.source, self.fake = source, Fake()
        self._add("other_owners", {"job": "iodock"}, others or [0.0] * scrapes)

    def _add(self, ending: str, labels: dict[str, str], values: Values) -> None:
        name = {"__name__": f"iodock_{self.source}_{ending}"}
        self.fake.series.append(({**name, **PLACE, **labels}, at(values)))

    def job(
        self, values: Values, starts: Values | None = None, ending: str = "_total", **labels: str
    ) -> Scraped:
        owner = {**OWNER, **labels}
        self._add(f"bytes{ending}", owner, values)
        if starts:
            self._add("bytes_created", owner, starts)
        return self

    def others(self, values: Values) -> Scraped:
        self._add("other_bytes", {"job": "iodock", "operation": OWNER["operation"]}, values)
        return self

    def rows(self, resolution: str = "fine", seconds: int = 3600) -> list[tuple[object, ...]]:
        """Returns rows of begin and end (as numbers of scrapes), owner, bytes written, and whether these are
        exact."""
        with serving(self.fake) as fake:
            found = PrometheusStore(Client(parsed(fake.address))).table(
                "SELECT begin_ts, end_ts, coalesce(job, session, command, '') AS owner, "
                "write_bytes + call_write_bytes AS bytes, exact FROM job_io ORDER BY ALL",
                begin=T * SECOND, end=(T + seconds) * SECOND, resolution=resolution,
            )  # fmt: skip
        return [
            ((row["begin_ts"] // SECOND - T) / EVERY_S, (row["end_ts"] // SECOND - T) / EVERY_S,
             row["owner"], row["bytes"], row["exact"])
            for row in found.to_pylist()
        ]  # fmt: skip


def grown(values: Values, starts: Values | None = None, **options: Values) -> list[tuple[object, object]]:
    """Returns bytes and whether they are exact, for every interval with a result."""
    rows = Scraped(len(values), **options).job(values, starts).rows()
    return [(row[3], row[4]) for row in rows]


BEFORE, LATER = float(T - 900), float(T + 30)


def test_one_entry_grows_by_the_difference_of_readings() -> None:
    assert grown([100, 300, 300, 1000], [BEFORE] * 4) == [(200, True), (700, True)]


def test_growth_before_the_first_reading_is_unknown() -> None:
    assert grown([100], [BEFORE]) == []


def test_a_new_entry_grew_from_zero() -> None:
    assert grown([None, None, 400, 500], [None, None, LATER, LATER]) == [(400, True), (100, True)]
    # The start time may be missing, too, because a job cannot appear, disappear and appear again in such a
    # short time.
    assert grown([None, None, 400, 500]) == [(400, True), (100, True)]


def test_another_start_time_means_a_reset() -> None:
    idle = [700.0] * 30
    starts = [BEFORE] * 30 + [T + 29.5 * EVERY_S] * 2
    assert grown([*idle, 50, 90], starts) == [(50, True), (40, True)]
    # The job was active shortly before, so the server cleared its entry, and no scrape saw the remaining
    # growth.
    busy = [float(n) for n in range(1, 31)]
    assert grown([*busy, 50, 90], starts)[-2:] == [(50, False), (40, True)]


def test_a_known_reset_counts_even_if_the_value_is_larger_afterwards() -> None:
    starts = [BEFORE] * 2 + [T + 1.5 * EVERY_S] * 2
    assert grown([100, 100, 5000, 5001], starts)[0][0] == 5000


def test_without_a_start_time_growth_is_a_bound_unless_recently_used() -> None:
    assert grown([100, 300, 500, 20]) == [(200, False), (200, True), (20, False)]


def test_a_missing_scrape_gives_one_longer_interval() -> None:
    scraped = Scraped(0, others=[0.0, 0.0, None, None, 0.0]).job([1, 2, None, None, 10], [BEFORE] * 5)
    assert scraped.rows() == [(0, 1, OWNER["job"], 1, True), (1, 4, OWNER["job"], 8, True)]


def test_jobs_that_end_while_active_are_lower_bounds() -> None:
    rows = Scraped(4).job([100, 300, None, None], [BEFORE] * 4).rows()
    assert rows[-1] == (1, 2, OWNER["job"], 0, False)


def test_newly_listed_jobs_were_part_of_the_remainder() -> None:
    scraped = Scraped(3, others=[2.0, 1.0, 1.0]).job([None, 900, 950], [None, BEFORE, BEFORE])
    # The sum of the others grew by 200 more than the value that left it.
    rows = scraped.others([1000, 300, 310]).rows()
    assert rows == [
        (0, 1, OTHERS, 200, False), (0, 1, OWNER["job"], 0, False),
        (1, 2, OTHERS, 10, False), (1, 2, OWNER["job"], 50, True),
    ]  # fmt: skip


def test_new_jobs_were_not_part_of_the_remainder() -> None:
    scraped = Scraped(3, others=[2.0, 2.0, 2.0]).job([None, 900, 900], [None, float(T + 7), float(T + 7)])
    assert scraped.others([50, 50, 60]).rows() == [
        (0, 1, OWNER["job"], 900, True), (1, 2, OTHERS, 10, False),
    ]  # fmt: skip


def test_jobs_no_longer_listed_join_the_remainder() -> None:
    scraped = Scraped(3, others=[1.0, 2.0, 2.0]).job([700, None, None], [BEFORE] * 3)
    assert scraped.others([100, 850, 850]).rows() == [(0, 1, OTHERS, 50, False)]


def test_falling_sums_never_give_too_much_growth() -> None:
    scraped = Scraped(3, source="process_io")
    for command, values in {"shell": [10, 110, 110], "child": [100, None, None], "other": [5, 5, 25]}.items():
        labels = {"operation": "write_call", "known_by": "session", "job": "", "command": command}
        scraped.job(list(values), ending="", **labels)
    # The shell took over its child's counters.
    assert scraped.rows() == [(1, 2, "other", 20, False)]


def test_longer_steps_keep_the_sum_at_coarser_times() -> None:
    values: Values = [float(n * 10) for n in range(60)]
    scraped = Scraped(60).job(values, [BEFORE] * 60)
    for resolution in ("fine", "minute"):
        rows = [row for row in scraped.rows(resolution, EVERY_S * 60) if row[3]]
        # The rows contain all growth after the first step's last scrape.
        assert sum(int(str(row[3])) for row in rows) == 10 * (59 - int(float(str(rows[0][0]))))
        assert all(row[4] for row in rows)
    # The store includes a job that lived for less than a step.
    brief = Scraped(80).job([None] * 41 + [30.0, 70.0] + [None] * 37, [None] * 41 + [float(T + 610)] * 2)
    assert [row[3] for row in brief.rows("ten_minutes", EVERY_S * 80) if row[3]] == [70]


def test_the_job_label_of_prometheus_is_not_an_owner() -> None:
    scraped = Scraped(2)
    scraped._add("bytes_total", {"job": "iodock", "operation": "write_bytes"}, [1, 2])
    assert scraped.rows() == []


def test_ids_under_another_label_are_found() -> None:
    scraped = Scraped(2).job([1, 5], [BEFORE] * 2, job="iodock", exported_job="8:1:n2")
    assert scraped.rows() == [(0, 1, "8:1:n2", 4, True)]


def history(cleanup_s: int, release: str) -> tuple[Fake, dict[tuple[str, str], int]]:
    """Returns a fake Prometheus that scraped a simulated centre for more than an hour, and the bytes that
    jobs wrote since the first scrape."""
    scenario = replace(named("healthy"), cleanup_s=cleanup_s, release=release)
    centre = Centre(scenario, seed=7, begin_ns=T * SECOND, jobs=10, servers=3)
    fake, series = Fake(), defaultdict(list)
    first = written(centre)
    for scrape in range(300):
        moment = centre.now_ns / SECOND
        for target in centre.targets:
            place = {
                "host": "s",
                "file_system": "lfs",
                "target": target.name,
                "instance": "s:1",
                "job": "iodock",
            }
            name = f"iodock_{target.kind}_job_stats_other_owners"
            series[tuple({"__name__": name, **place}.items())].append((moment, "0"))
        for target, entry, counters in centre.readings():
            place = {"host": "s", "file_system": "lfs", "target": target.name, "instance": "s:1"}
            if not counters.get("write_bytes"):
                continue
            labels = {**place, "job": entry.job_id, "known_by": "server", "operation": "write_bytes"}
            name = f"iodock_{target.kind}_job_stats_bytes"
            key = tuple({"__name__": f"{name}_total", **labels}.items())
            series[key].append((moment, str(counters["write_bytes"])))
            if release == "2.15":
                key = tuple({"__name__": f"{name}_created", **labels}.items())
                series[key].append((moment, f"{entry.start_ns / SECOND:.9f}"))
        if scrape < 299:
            centre.advance(EVERY_S)
    fake.series = [(dict(key), samples) for key, samples in series.items()]
    last = written(centre)
    return fake, {key: value - first.get(key, 0) for key, value in last.items()}


def written(centre: Centre) -> dict[tuple[str, str], int]:
    """Returns the bytes written by (job id, target)."""
    return {
        (job_id, target): operations.get("write_bytes", {}).get("sum", 0)
        for job in truth(centre)["jobs"]
        for job_id, targets in job["work"].items()
        for target, operations in targets.items()
    }


@pytest.mark.parametrize("release", ["2.15", "2.12"])
@pytest.mark.parametrize("cleanup_s", [0, 600])
def test_growth_of_a_simulated_centre_is_exact_or_a_lower_bound(release: str, cleanup_s: int) -> None:
    fake, done = history(cleanup_s, release)
    with serving(fake):
        found = PrometheusStore(Client(parsed(fake.address))).table(
            "SELECT job, target, sum(write_bytes)::BIGINT AS bytes, bool_and(exact) AS exact FROM job_io "
            "GROUP BY ALL",
            begin=T * SECOND, end=(T + 7200) * SECOND, resolution="fine",
        ).to_pylist()  # fmt: skip
    seen = {(row["job"], row["target"]): row for row in found}
    assert sum(done.values()) > 1 << 30
    assert all(row["bytes"] <= done[key] for key, row in seen.items())
    assert all(row["bytes"] == done[key] for key, row in seen.items() if row["exact"])
    exact = sum(row["exact"] for row in found)
    total = sum(row["bytes"] for row in found)
    if release == "2.15":
        # Start times are known and scrapes are frequent, so the result is complete.
        assert (exact, total) == (len(found), sum(done.values()))
    assert total > 0.9 * sum(done.values())
