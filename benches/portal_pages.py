"""Measures how long the portal's pages take on a store with a month of a synthetic centre.

    python benches/portal_pages.py FOLDER [--jobs-a-day 1000] [--days 30] [--live] [--fine H] [--minute H]
    iodock monitor serve --store FOLDER --listen 127.0.0.1:9899 &
    python benches/portal_pages.py FOLDER --url http://127.0.0.1:9899

The first command creates a store in FOLDER: fine rows of a day, minutes of a week, ten minutes of all days
(or of the given number of hours). Each job works on two nodes, four object targets and a metadata target for
an hour on average; with --live, jobs run from midnight to midnight, so that all of a day's jobs run at any
moment. Both nodes report each job's name, and all jobs of a user have the same name. Machines have four
disks, pressure and load. Once a collector serves the store, the last command requests every page three times
through HTTP, and prints the slowest and the median time. SQL creates the data, without an agent.
"""

from __future__ import annotations

import argparse
import statistics
import time
import urllib.request
from pathlib import Path

from iodock import _native
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.summaries import summarise
from iodock.centre.store import MonitorStore, counters

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
STEPS = {"fine": (10, 24), "minute": (60, 168), "ten_minutes": (600, 9600)}
"""Resolution -> seconds a row, and for how many hours it is kept."""
HOUR = 3600 * SECOND
MOST_ROWS = 20_000_000
"""Of a file: of more upkeep makes none."""
PAGES = (
    "/", "/?range=6h", "/?range=1d", "/?range=7d", "/?range=30d",
    "/?range=15m&end={end}", "/jobs?range=15m&end={end}", "/jobs?range=1h&end={end}",
    "/jobs", "/jobs?range=1h", "/jobs?range=6h", "/jobs?range=1d", "/jobs?range=7d", "/jobs?range=30d",
    "/jobs/{live}", "/jobs/{past}", "/jobs/{old}", "/jobs/{old}?range=30d", "/events", "/use",
    "/jobs?range=30d&q=model-3", "/machines?host=oss01", "/machines?host=oss01&range=7d",
    "/machines?host=oss01&range=30d", "/machines?host=r01c07", "/machines?host=r01c07&range=30d",
    "/heavy", "/heavy?sort=bytes_share", "/heavy?q=model-3", "/now", "/machines?host=mds01",
    "/machines?host=mds01&range=30d", "/agents", "/agents?range=30d",
)  # fmt: skip


def job_rows(begin: int, end: int, step: int, jobs: int, live: bool) -> str:
    """Returns SQL for rows that begin in [BEGIN, END), moments of one day, of jobs that started on this day.
    They are in the order of jobs, nodes, targets and time, as upkeep sorts them."""
    zeros = ", ".join(f'{_VALUES.get(name, "0")}::BIGINT AS "{name}"' for name in counters())
    day = begin // DAY
    start, seconds = f"(hash(i * 7 + {day}) % 86400)::BIGINT", f"(600 + hash(i * 13 + {day}) % 6000)::BIGINT"
    if live:
        start, seconds = "0", "86399"
    return f"""
        WITH jobs AS (
            SELECT {day * 100_000}::BIGINT + i AS number, 17000 + i % 200 AS uid,
                {day * DAY} + {start} * {SECOND} AS start, {seconds} AS seconds FROM range({jobs}) t(i)
        ), nodes AS (SELECT *, unnest(range(2::BIGINT)) AS node FROM jobs), places AS (
            SELECT *, unnest(range(5)) AS place FROM nodes
        ), steps AS (
            SELECT *, unnest(range(
                    greatest(start, {begin}) // ({step * SECOND}),
                    least(start // ({step * SECOND}) + seconds // {step} + 1, {end} // ({step * SECOND}))))
                * {step * SECOND} AS begin_ts FROM places
        )
        SELECT begin_ts, begin_ts + {step * SECOND} AS end_ts,
            CASE WHEN place = 4 THEN 'mds01' ELSE 'oss0' || (1 + (number + place) % 4 // 2) END AS host,
            CASE WHEN place = 4 THEN 'mdt_job_stats' ELSE 'obdfilter_job_stats' END AS source,
            'lfs' AS file_system, CASE WHEN place = 4
                THEN 'lfs-MDT0000' ELSE 'lfs-OST000' || (number + place) % 8 END AS target,
            number || ':' || uid || ':r01c' || lpad(((number * 2 + node) % 96)::VARCHAR, 2, '0') AS job,
            NULL::VARCHAR AS "user", NULL::VARCHAR AS session, NULL::VARCHAR AS command, 'server' AS known_by,
            hash(number) % 50 > 0 AS exact, {zeros}
        FROM steps
    """


_RANDOM = "(hash(begin_ts + number * 31 + place * 7 + node) % 1000)"
_VALUES = {
    "read_bytes": f"CASE WHEN place < 4 THEN {_RANDOM} * 1048576 ELSE 0 END",
    "write_bytes": f"CASE WHEN place < 4 THEN {_RANDOM} * 524288 ELSE 0 END",
    "reads": f"CASE WHEN place < 4 THEN {_RANDOM} ELSE 0 END",
    "writes": f"CASE WHEN place < 4 THEN {_RANDOM} ELSE 0 END",
    "open": f"CASE WHEN place = 4 THEN {_RANDOM} ELSE 0 END",
    "close": f"CASE WHEN place = 4 THEN {_RANDOM} ELSE 0 END",
    "getattr": f"CASE WHEN place = 4 THEN {_RANDOM} * 3 ELSE 0 END",
    "time_us": f"{_RANDOM} * 900",
}


def target_rows(begin: int, end: int, step: int) -> str:
    """Returns SQL for the rows of the metadata server's service."""
    metrics = "('req_waittime', '1', 4000), ('req_waittime_time', 'us', 220000), ('req_qdepth', '1', 4000), "
    metrics += "('req_qdepth_sum', '1', 8000)"
    return f"""
        SELECT t::BIGINT AS begin_ts, (t + {step * SECOND})::BIGINT AS end_ts,
            'mds01' AS host, 'mds_stats' AS source, NULL::VARCHAR AS file_system, 'mdt' AS target,
            metric, unit, NULL::BIGINT AS bucket, false AS is_level,
            (value + hash(t) % value)::BIGINT AS value,
            NULL::BIGINT AS greatest, true AS exact
        FROM range({begin}, {end}, {step * SECOND}) r(t),
            (VALUES {metrics}) m(metric, unit, value)
    """


def machine_rows(begin: int, end: int, step: int, machines: int) -> str:
    """Returns SQL for disks, pressure and load of machines."""
    disks = ", ".join(
        f"('diskstats', 'sd{disk}', '{metric}', {unit}, false)"
        for disk in "abcd"
        for metric, unit in (
            ("read_bytes", "'bytes'"), ("write_bytes", "'bytes'"), ("read", "'1'"), ("write", "'1'"),
            ("busy_time", "'us'"),
        )
    )  # fmt: skip
    pressure = ", ".join(
        f"('pressure', '{what}', '{who}_time', 'us', false)"
        for what in ("io", "cpu", "memory")
        for who in ("some", "full")
    )
    return f"""
        SELECT t::BIGINT AS begin_ts, (t + {step * SECOND})::BIGINT AS end_ts,
            CASE WHEN n < 4 THEN 'oss0' || (n + 1) ELSE 'r01c' || lpad(n::VARCHAR, 2, '0') END AS host,
            source, NULL::VARCHAR AS file_system, target, metric, unit, NULL::BIGINT AS bucket, is_level,
            (hash(t + n) % 1000000)::BIGINT AS value,
            CASE WHEN is_level THEN (hash(t + n) % 1000000)::BIGINT END AS greatest, true AS exact
        FROM range({begin}, {end}, {step * SECOND}) r(t), range({machines}) m(n),
            (VALUES {disks}, {pressure}, ('load', 'load', 'load1_percent', NULL, true))
                v(source, target, metric, unit, is_level)
        ORDER BY target, metric, end_ts
    """


def name_rows(day: int, jobs: int, live: bool) -> str:
    """Returns SQL for the names that nodes send for a day's jobs, in the form that upkeep stores."""
    start = "0" if live else f"(hash(i * 7 + {day}) % 86400)::BIGINT"
    return f"""
        SELECT {day * DAY} + {start} * {SECOND} AS ts, 'r01c00' AS host,
            ({day * 100_000}::BIGINT + i)::VARCHAR AS job, (17000 + i % 200)::VARCHAR AS "user",
            'model-' || (i % 200) AS name FROM range({jobs}) t(i) ORDER BY job
    """


def make_names(intake: _native.MonitorIntake, store: MonitorStore, jobs: int, days: int, live: bool) -> None:
    """Writes the names of jobs, one file for each day."""
    today = time.time_ns() // DAY
    for day in range(today - days, today + 1):
        name, path = intake.new_file("job_names", "fine", (day + 1) * DAY - 1)
        written = store.write(name_rows(day, jobs, live), path, ("ts", "ts"))
        if written:
            count, earliest, latest = written
            intake.replace([], [], [("job_names", "fine", name, earliest, latest, count, False)])


def make(folder: Path, jobs: int, days: int, live: bool, machines: int, kept: dict[str, int]) -> None:
    """Creates a store as upkeep leaves it: one file for each day, or for each hour if a day has too many
    rows. Fine rows are rolled up."""
    intake = _native.MonitorIntake(folder)
    store = MonitorStore(folder)
    now = time.time_ns() // HOUR * HOUR
    for resolution, (step, hours) in STEPS.items():
        rows_a_day = 10 * jobs * ((86_400 if live else 3_600) // step)
        period = HOUR if rows_a_day > MOST_ROWS or resolution == "fine" else DAY
        first = (now - min(days * DAY, kept.get(resolution, hours) * HOUR)) // period * period
        for begin in range(first, now, period):
            end = min(begin + period, now)
            for table in ("job_io", "targets"):
                both = (
                    f"{target_rows(begin, end, step)} UNION ALL ({machine_rows(begin, end, step, machines)})"
                )
                rows = job_rows(begin, end, step, jobs, live) if table == "job_io" else both
                name, path = intake.new_file(table, resolution, end - 1)
                written = store.write(rows, path)
                if written:
                    count, earliest, latest = written
                    entry = (table, resolution, name, earliest, latest, count, resolution != "ten_minutes")
                    intake.replace([], [], [entry])
    make_names(intake, store, jobs, days, live)
    summarise(store, JobIds())


def measured(url: str, page: str, times: int) -> tuple[float, float, int]:
    """Returns median and maximum in seconds, and the page's size in bytes."""
    found, size = [], 0
    for _ in range(times):
        begin = time.perf_counter()
        with urllib.request.urlopen(url + page) as answer:
            size = len(answer.read())
        found.append(time.perf_counter() - begin)
    return statistics.median(found), max(found), size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs-a-day", type=int, default=1000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--live", action="store_true", help="each job lasts from midnight to midnight")
    parser.add_argument("--machines", type=int, default=20, help="with four disks each")
    parser.add_argument("--fine", type=int, default=24, help="hours of fine rows")
    parser.add_argument("--minute", type=int, default=168, help="hours of minutes")
    parser.add_argument("--url", default="", help="ask a collector that runs already, and make nothing")
    options = parser.parse_args()
    if not options.url:
        begin = time.perf_counter()
        kept = {"fine": options.fine, "minute": options.minute}
        make(options.folder, options.jobs_a_day, options.days, options.live, options.machines, kept)
        print(f"made in {time.perf_counter() - begin:.0f} s; now serve it, and give --url")
        return
    catalogue = MonitorStore(options.folder).catalogue
    for (table, resolution), files in sorted(catalogue.files.items()):
        print(f"{table:8} {resolution:12} {sum(file.rows for file in files):>12,} rows in {len(files)} files")
    today = time.time_ns() // DAY
    newest = max(file.end for files in catalogue.files.values() for file in files)
    names: dict[str, object] = {
        "end": time.strftime("%Y-%m-%dT%H:%M", time.localtime(newest // SECOND)),
        "live": today * 100_000 + 3,
        "past": (today - 1) * 100_000 + 3,
        "old": (today - 20) * 100_000 + 3,
    }
    for page in PAGES:
        try:
            median, longest, size = measured(options.url, page.format(**names), 3)
            name = page.format(**names)
            print(f"{name:34} median {median:6.3f} s  longest {longest:6.3f} s  {size:>9,} bytes")
        except urllib.error.HTTPError as error:
            print(f"{page.format(**names):34} {error.code}")


if __name__ == "__main__":
    main()
