"""Tests queries over time: their sums equal those of the rows, whatever the steps, resolutions and
summaries."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from batches import BYTES, COUNT, Entry, Part, frame
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions import file_systems, job, jobs, use
from iodock.centre.monitor.questions.ids import JobIds, job_ids
from iodock.centre.monitor.questions.job import OneJob
from iodock.centre.monitor.questions.jobs import Seen, Wanted
from iodock.centre.monitor.questions.spans import DAY, HOUR, POINTS, SECOND, span
from iodock.centre.monitor.rolling import Keep, expire, roll
from iodock.centre.monitor.summaries import OWNERS, summarise
from iodock.centre.store import MonitorStore
from iodock.shared.errors import RequestError

IDS = JobIds()


def collected(folder: Path, begin: int, steps: list[int], id_: str = "5:7:n1") -> Collector:
    """Returns a collector with one job that grows by 600 bytes and one write between readings at these
    seconds after BEGIN."""
    collector = Collector(folder)
    for number, at in enumerate(steps):
        moment = begin + at * SECOND
        values = {("write_bytes", BYTES): number * 600, ("write_bytes", COUNT): number}
        entry = Entry(id_, values, start=begin - SECOND, updated=moment)
        opened = Entry(id_, {("open", COUNT): number * 60}, start=begin - SECOND, updated=moment)
        parts = [
            Part(moment, [entry], full=number == 0),
            Part(moment, [opened], "mdt_job_stats", "lfs", "lfs-MDT0000", full=number == 0),
        ]
        collector.push(frame(number + 1, parts))
    collector.flush()
    return collector


@pytest.mark.parametrize("length", [1, 10 * SECOND, HOUR, 3 * HOUR, DAY, 3 * DAY, 30 * DAY, 2000 * DAY])
def test_time_ranges_are_divided_into_few_whole_steps(length: int) -> None:
    end = 1_795_326_205_689_606_186
    found = span(end - length, end)
    assert 1 <= found.steps <= POINTS + 1
    assert (
        found.begin <= end - length
        and found.end >= end
        and found.end - found.begin == found.steps * found.step
    )
    assert found.end % found.step == 0


def test_a_long_interval_is_spread_over_the_steps_it_covers(tmp_path: Path) -> None:
    begin = (time.time_ns() - HOUR) // (600 * SECOND) * 600 * SECOND
    # The agent was away for 200 s.
    store = collected(tmp_path, begin, [0, 10, 210]).store
    within = span(begin, begin + 300 * SECOND, store.catalogue)
    rows = file_systems.by_servers(store, within).to_pylist()
    assert within.step == 10 * SECOND
    assert [row["write_bytes"] for row in rows] == pytest.approx([600] + [30] * 20)
    assert sum(row["metadata"] for row in rows) == pytest.approx(120)


@pytest.mark.parametrize("begin_s", [0, 5, 110])
def test_a_partly_covered_interval_counts_in_proportion(tmp_path: Path, begin_s: int) -> None:
    begin = (time.time_ns() - HOUR) // (600 * SECOND) * 600 * SECOND
    store = collected(tmp_path, begin, [0, 10, 210]).store
    within = span(begin + begin_s * SECOND, begin + 210 * SECOND, store.catalogue)
    lost = (within.begin - begin) / SECOND
    left = 600 * (1 - min(lost, 10) / 10) + 600 * (1 - max(0, lost - 10) / 200)
    assert jobs.jobs(store, within, IDS, Wanted())["write_bytes"].to_pylist() == pytest.approx([left])
    assert sum(file_systems.by_servers(store, within)["write_bytes"].to_pylist()) == pytest.approx(left)


def test_expired_fine_rows_are_read_at_coarser_resolution(tmp_path: Path) -> None:
    begin = time.time_ns() - 3 * DAY
    collector = collected(tmp_path, begin, list(range(0, 1300, 10)))
    assert span(begin, begin + HOUR, collector.store.catalogue).resolution == "fine"
    for _ in range(2):
        roll(collector.store, collector._intake, time.time_ns())
    expire(collector.store, collector._intake, Keep(), time.time_ns())
    within = span(begin, begin + HOUR, collector.store.catalogue)
    assert within.resolution == within.sums == "minute"
    assert jobs.jobs(collector.store, within, IDS, Wanted())["write_bytes"].to_pylist() == [129 * 600]


def rolled(folder: Path) -> tuple[MonitorStore, int]:
    """Returns a store with two hours of readings from two days ago, rolled up twice."""
    begin = (time.time_ns() // DAY - 2) * DAY + 2 * HOUR
    collector = collected(folder, begin, list(range(0, 7300, 50)))
    for _ in range(2):
        roll(collector.store, collector._intake, time.time_ns())
    return collector.store, begin


def answers(store: MonitorStore, begin: int, end: int) -> list[list[dict[str, Any]]]:
    within = span(begin - 5 * DAY, end, store.catalogue)
    found: list[pa.Table] = [
        file_systems.by_servers(store, within),
        jobs.jobs(store, within, IDS, Wanted()),
        job.heaviest_others(store, OneJob(IDS, "6"), within, ["lfs"]),
        job.others_over_time(store, ["5:7:n1"], ["lfs"], within),
        use.by_user(store, begin - DAY, begin + DAY, IDS, Seen()),
    ]
    return [table.to_pylist() for table in found]


@pytest.mark.parametrize("behind", [HOUR, 2 * DAY])
def test_summaries_do_not_change_any_result(tmp_path: Path, behind: int) -> None:
    """The results must be the same whether the requested range ends within the day or after it."""
    store, begin = rolled(tmp_path)
    plain = answers(store, begin, begin + behind)
    assert [len(rows) > 0 for rows in plain] == [True] * 5
    assert summarise(store, IDS) == 5 and summarise(store, IDS) == 0
    summed = answers(store, begin, begin + behind)
    for before, after in zip(plain, summed, strict=True):
        for row, other in zip(before, after, strict=True):
            # Summaries report an hour as a whole, so the end of the range is compared.
            for one in (row, other):
                one.update({"end_ts": min(one["end_ts"], begin + behind)} if "end_ts" in one else {})
            numbers = {key: value for key, value in row.items() if isinstance(value, (int, float))}
            assert numbers == pytest.approx({key: other[key] for key in numbers})
            assert {**row, **numbers} == {**other, **numbers}
    assert summed[4][0]["write_bytes"] == 145 * 600


@pytest.mark.parametrize("zone", [0, 15 * HOUR])
def test_the_monthly_sums_add_up_to_the_total(tmp_path: Path, zone: int) -> None:
    """The readings include one across midnight and a gap of days that ends on a day with other rows. Midnight
    is in UTC or in another zone."""
    midnight = (time.time_ns() // DAY - 7) * DAY + zone
    steps = [0, 1000, 1700, 1700 + 3 * 86_400, 1700 + 3 * 86_400 + 7200]
    collector = collected(tmp_path, midnight - 1500 * SECOND, steps)
    for _ in range(2):
        roll(collector.store, collector._intake, time.time_ns())
    for is_summed in (False, True):
        if is_summed:
            assert summarise(collector.store, IDS)
        spans = [
            (midnight - 3 * DAY, midnight),
            (midnight, midnight + DAY),
            (midnight + DAY, midnight + 6 * DAY),
        ]
        found = [use.by_user(collector.store, *one, IDS, Seen()).to_pylist() for one in spans]
        assert sum(row["write_bytes"] for rows in found for row in rows) == pytest.approx(600 * 4)
        assert [row["jobs"] for rows in found for row in rows] == [1, 1, 1]


def test_missing_or_incomplete_summaries_do_not_change_results(tmp_path: Path) -> None:
    store, begin = rolled(tmp_path)
    summarise(store, IDS)
    plain = answers(store, begin, begin + 2 * DAY)
    (one,) = (tmp_path / "summaries" / OWNERS.name).iterdir()
    one.rename(one.with_suffix(".part"))
    assert answers(store, begin, begin + 2 * DAY)[4] == plain[4]
    # The next round creates the summary again, and removes summaries that belong to no file.
    (tmp_path / "summaries" / OWNERS.name / "job_io-ten_minutes-2020-01-01-00000001.parquet").write_bytes(
        b"old"
    )
    assert summarise(store, IDS) == 1
    (again,) = (tmp_path / "summaries" / OWNERS.name).iterdir()
    assert again.name.rpartition("-")[0] == one.name.rpartition("-")[0] and again.suffix == ".parquet"


@pytest.mark.parametrize(
    ("form", "id_", "number", "user", "host"),
    [
        (None, "11317854:17627:r01c01", "11317854", "17627", "r01c01"),
        (None, "11317854", "11317854", None, None),
        (None, "rsync.17004", "rsync.17004", "17004", None),
        (None, "a.b.17004", "a.b.17004", "17004", None),
        (None, "190:20:30", "190", "20", "30"),
        (None, "1:2", "1:2", None, None),
        (None, "7[3].pbs:5:n", "7[3].pbs", "5", "n"),
        ("%j:%u:%H", "5:7:n1", "5", "7", "n1"),
        ("%j:%u:%H", "rsync.17004", "rsync.17004", None, None),
        ("%j", "5:7:n1", "5:7:n1", None, None),
        ("%u.%j", "7.5", "5", "7", None),
        ("%H|%j|%u", "n1|5|7", "5", "7", "n1"),
        ("%e.%u", "rsync.17004", "rsync.17004", "17004", None),
    ],
)
def test_job_ids_are_split_into_their_fields(
    tmp_path: Path, form: str | None, id_: str, number: str, user: str | None, host: str | None
) -> None:
    begin = time.time_ns() - 600 * SECOND
    store = collected(tmp_path, begin, [0, 10], id_).store
    ids = job_ids(form)
    sql = f"SELECT {ids.number()}, {ids.user()}, {ids.host()}, {ids.is_job(number)} FROM job_io LIMIT 1"
    found = store.table(sql, begin=begin, end=time.time_ns(), resolution="fine")
    assert [column[0].as_py() for column in found.columns] == [number, user, host, True]
    assert job.extent(store, OneJob(ids, number), span(begin, time.time_ns(), store.catalogue))
    assert job.extent(store, OneJob(ids, number + "0"), span(begin, time.time_ns(), store.catalogue)) is None


@pytest.mark.parametrize("form", ["", "job", "%x", "%j%z", "%j:%j"])
def test_invalid_forms_of_job_ids_are_refused(form: str) -> None:
    with pytest.raises(RequestError, match="jobid-name"):
        job_ids(form)


def test_a_row_belongs_to_its_user_whatever_its_job_id(tmp_path: Path) -> None:
    begin = time.time_ns() - 600 * SECOND
    collector = collected(tmp_path, begin, [0, 10], "5:7:n1")
    for number in (0, 1):
        entry = Entry("5:8:n2", {("write_bytes", BYTES): number * 99}, start=begin - SECOND, updated=begin)
        at = begin + number * 10 * SECOND
        collector.push(
            frame(number + 1, [Part(at, [entry], full=number == 0)], spool=b"Z" * 16, host="oss02")
        )
    collector.flush()
    store, within = collector.store, span(begin, time.time_ns(), collector.store.catalogue)
    for names, expected in ((("7", "alice"), [600]), (("8",), [99]), (("9",), []), ((), [])):
        parts = job.parts(store, OneJob(IDS, "5", Seen(names)), within).to_pylist()
        assert [row["write_bytes"] for row in parts if row["part"] == "place"] == expected
        listed = jobs.jobs(store, within, IDS, Wanted(seen=Seen(names)))["write_bytes"].to_pylist()
        assert listed == expected
