"""Tests that values that no source counts are empty in tables and null in JSON. 0 means that the source
counted and saw no growth."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator

import pytest

from batches import BYTES, COUNT, SESSION, Entry, Part, frame
from in_process import iodock
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions import use
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.jobs import Seen
from iodock.centre.monitor.questions.spans import DAY, SECOND
from iodock.centre.monitor.rolling import roll
from iodock.centre.monitor.summaries import summarise
from portal_site import Server, portal

CGROUP = 2
WRITES = "obdfilter_job_stats"
OPENS = "mdt_job_stats"
STEPS = 12


def written(job: str, number: int, began: int, at: int) -> Entry:
    values = {("write_bytes", BYTES): number * 10_000, ("write_bytes", COUNT): number * 678}
    return Entry(job, values, start=began, updated=at)


def opened(job: str, number: int, began: int, at: int) -> Entry:
    return Entry(job, {("open", COUNT): number * 5}, start=began, updated=at)


def process(job: str, number: int, evidence: int = CGROUP) -> Entry:
    values = {("read_call", BYTES): number * 3000, ("read_call", COUNT): number * 678}
    return Entry(job, values, user="root", evidence=evidence)


def device(job: str, number: int) -> Entry:
    values = {("write_device", BYTES): number * 4096, ("write", COUNT): number}
    return Entry(job, values, evidence=CGROUP)


def fill(collector: Collector) -> None:
    """Pushes data of file systems with different agents: `data` has them only on object servers, `whole` on
    all servers, and `meta` only on the metadata server. Adds a node. Job ids do not name nodes."""
    begin = time.time_ns() - (STEPS * 10 + 30) * SECOND
    for number in range(STEPS + 1):
        at = begin + number * 10 * SECOND
        more = {"full": number == 0}
        began = begin - SECOND
        parts = [
            Part(at, [written("11", number, began, at)], WRITES, "data", "data-OST0000", **more),
            Part(
                at, [written(job, number, began, at) for job in ("21", "22")], WRITES, "whole",
                "whole-OST0000", **more,
            ),
            Part(at, [opened("22", number, began, at)], OPENS, "whole", "whole-MDT0000", **more),
            Part(at, [opened("31", number, began, at)], OPENS, "meta", "meta-MDT0000", **more),
        ]  # fmt: skip
        collector.push(frame(number + 1, parts, spool=b"O" * 16, host="oss01"))
        node = [
            Part(
                at,
                [process("41", number), process("", number, SESSION)],
                "process_io",
                "",
                "",
                falls=True,
                **more,
            ),
            Part(at, [device("41", number)], "cgroup_io", "", "sda", **more),
        ]
        collector.push(frame(number + 1, node, spool=b"N" * 16, host="n1"))
    collector.flush()


@pytest.fixture(scope="module", params=[False, True], ids=["rows", "summaries"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with portal(tmp_path_factory.mktemp("unknown") / "store") as server:
        fill(server.collector)
        if request.param:
            for _ in range(2):
                roll(server.collector.store, server.collector.writer, time.time_ns())
            summarise(server.collector.store, JobIds())
        yield server


def table(site: Server, path: str) -> dict[str, dict[str, object]]:
    """Returns the rows of a table by their first column. Checks that CSV and JSON agree."""
    joint = "&" if "?" in path else "?"
    found: list[dict[str, object]] = json.loads(site.get(f"{path}{joint}format=json")[1])["rows"]
    plain = list(csv.DictReader(io.StringIO(site.get(f"{path}{joint}format=csv")[1])))
    for row, texts in zip(found, plain, strict=True):
        assert {name for name, value in row.items() if value is None} <= {
            name for name, value in texts.items() if value == ""
        }
    return {str(next(iter(row.values()))): row for row in found}


@pytest.mark.parametrize("length", ["15m", "7d"])
def test_unknown_counts_of_jobs_on_servers_are_empty(site: Server, length: str) -> None:
    jobs = table(site, f"/jobs?range={length}&at=servers")
    counts = {job: (row["read_bytes"], row["write_bytes"], row["metadata"]) for job, row in jobs.items()}
    assert counts == {
        "11": (0, 120_000, None),
        # The agent reads this file system's metadata server, which has no entry of this job.
        "21": (0, 120_000, 0),
        "22": (0, 120_000, 60),
        "31": (None, None, 60),
    }
    assert {row["hosts"] for row in jobs.values()} == {None}
    assert jobs["11"]["metadata_rate"] is None and jobs["31"]["write_rate"] is None
    assert jobs["21"]["metadata_rate"] == 0


@pytest.mark.parametrize("length", ["15m", "7d"])
@pytest.mark.parametrize("place", ["processes", "cgroups"])
def test_jobs_on_nodes_have_unknown_metadata_counts(site: Server, length: str, place: str) -> None:
    row = table(site, f"/jobs?range={length}&at={place}")["41"]
    assert (row["metadata"], row["metadata_rate"], row["hosts"]) == (None, None, 1)
    page = site.get(f"/jobs?range={length}&at={place}")[1]
    assert ">metadata/s<" not in page and ">written/s<" in page


def test_unknown_counts_are_empty_on_the_page_of_a_job(site: Server) -> None:
    totals = table(site, "/jobs/41?table=totals")
    processes = totals["processes on nodes"]
    assert processes["call_read_bytes"] == 36_000
    # The source counted writes, and there were none.
    assert (processes["call_write_bytes"], processes["read_bytes"]) == (0, 0)
    assert [processes[name] for name in ("reads", "writes", "metadata", "time_s")] == [None] * 4
    cgroups = totals["cgroups on nodes"]
    assert (cgroups["writes"], cgroups["read_bytes"]) == (12, 0)
    assert [cgroups[name] for name in ("call_read_bytes", "call_write_bytes", "metadata")] == [None] * 3
    servers = {job: table(site, f"/jobs/{job}?table=totals")["file servers"] for job in ("11", "21", "31")}
    assert [servers[job]["metadata"] for job in servers] == [None, 0, 60]
    assert [servers[job]["write_bytes"] for job in servers] == [120_000, 120_000, None]
    targets = table(site, "/jobs/22?table=targets")
    assert targets["whole-OST0000"]["metadata"] is None and targets["whole-MDT0000"]["write_bytes"] is None


def test_unknown_rates_of_file_systems_are_empty(site: Server) -> None:
    now = table(site, "/?table=now&range=1h")
    assert [now[name]["metadata_rate"] is None for name in ("data", "meta", "whole")] == [True, False, False]
    assert [now[name]["write_rate"] is None for name in ("data", "meta", "whole")] == [False, True, False]


def test_unknown_counts_of_users_are_empty(site: Server) -> None:
    now = time.time_ns()
    rows = use.by_user(site.collector.store, now - DAY, now + DAY, JobIds(), Seen()).to_pylist()
    found = {row["file_system"]: (row["write_bytes"], row["metadata"]) for row in rows}
    assert found == {"data": (120_000, None), "whole": (240_000, 60), "meta": (None, 60)}


def top(site: Server, *options: str) -> str:
    folder = site.collector.store.folder
    words = ("monitor", "top", "--store", folder, "--once", "--over", "1h", *options)
    return iodock(*words, COLUMNS="80").stdout


def test_unknown_rates_are_empty_in_top(site: Server) -> None:
    rows = {row["name"]: row for row in json.loads(top(site, "--format", "json"))["rows"]}
    assert {name: row["metadata_rate"] is None for name, row in rows.items()} == {
        "11": True, "21": False, "22": False, "31": False,
    }  # fmt: skip
    assert rows["31"]["write_rate"] is None and rows["21"]["metadata_rate"] == 0
    assert {row["nodes"] for row in rows.values()} == {None}
    targets = {
        row["name"]: row for row in json.loads(top(site, "--format", "json", "--by", "target"))["rows"]
    }
    assert targets["whole-OST0000"]["metadata_rate"] is None
    nodes = json.loads(top(site, "--format", "json", "--counted", "processes"))["rows"]
    assert {(row["nodes"], row["metadata_rate"]) for row in nodes} == {(1, None)}
    plain = list(csv.DictReader(io.StringIO(top(site, "--format", "csv"))))
    assert {row["name"]: row["metadata_rate"] == "" for row in plain}["11"]
    assert {row["nodes"] for row in plain} == {""}
    shown = top(site, "--counted", "processes")
    line = next(line for line in shown.splitlines() if line.startswith("41"))
    # The columns are job, bytes read, bytes written, metadata (unknown), and user.
    assert re.fullmatch(r"41 +≥ 10 B/s +≥ 0 +root", line.rstrip())
