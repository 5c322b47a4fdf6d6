"""Tests `iodock monitor demo`: all its parts start, it says that its data are made up, and it leaves nothing
behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.rolling import SECOND
from iodock.centre.store import MonitorStore
from iodock.simulation.centre import Centre
from iodock.simulation.history import Names, begin_before, write_days, write_up_to_now
from iodock.simulation.scenarios import named
from iodock.simulation.truth import truth

pytestmark = pytest.mark.whole

PATIENCE_S = 60.0


@pytest.mark.timeout(180)
def test_the_demo_shows_samples_and_removes_its_files(agent: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "iodock", "monitor", "demo", "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PATH": f"{agent.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [*command, "--days", "0.02", "--jobs", "5"], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stderr
        said = process.stderr.readline()
        assert said.startswith("note: synthetic: http://127.0.0.1:"), said
        url = said.split()[2]
        folder = next(tmp_path.glob("iodock-demo-*"))
        assert urllib.request.urlopen(f"{url}/healthz", timeout=20).read() == b"ok\n"
        page = urllib.request.urlopen(f"{url}/jobs", timeout=20).read().decode()
        assert "Synthetic: this centre" in page
        ends = time.monotonic() + PATIENCE_S
        while not pushed(folder) and time.monotonic() < ends:
            time.sleep(0.5)
        assert pushed(folder) == 4
        # The agents find events in made-up logs.
        ends = time.monotonic() + PATIENCE_S
        while not (logged := logged_events(url)) and time.monotonic() < ends:
            time.sleep(0.5)
        assert logged and all("(synthetic)" in row["text"] for row in logged)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert not folder.exists()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.timeout(180)
def test_killing_the_demo_ends_its_agents(agent: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "iodock", "monitor", "demo", "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PATH": f"{agent.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [*command, "--days", "0.01", "--jobs", "2"], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stderr
        assert process.stderr.readline().startswith("note: synthetic: ")
        agents = children(process.pid)
        assert len(agents) == 4
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    ends = time.monotonic() + PATIENCE_S
    while alive := [pid for pid in agents if is_agent(pid)]:
        assert time.monotonic() < ends, alive
        time.sleep(0.05)


@pytest.mark.timeout(300)
def test_the_demo_shows_the_job_that_causes_an_overload(agent: Path, tmp_path: Path) -> None:
    """As `--help` describes, the demo shows an ordinary history, then the scenario from its start, and the
    job responsible for it."""
    command = [sys.executable, "-m", "iodock", "monitor", "demo", "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PATH": f"{agent.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [*command, "--days", "0.1", "--jobs", "5", "--scenario", "overload"],
        stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    began = time.time_ns()
    try:
        assert process.stderr
        url = process.stderr.readline().split()[2]
        assert "scenario overload, whose minute 5 is at " in process.stderr.readline()
        hint = process.stderr.readline()
        store = Path(hint.split("--store ")[1].strip())
        past = MonitorStore(store).table(
            'SELECT DISTINCT job_names.name FROM job_names', begin=0, end=1 << 62, resolution="fine"
        ).column(0).to_pylist()  # fmt: skip
        assert past and "shared-dir" not in past
        ends = time.monotonic() + 3 * PATIENCE_S
        # The rate is a mean over fifteen minutes, so it rises while the job continues.
        while (found := culprit(url)).get("metadata_rate", 0) <= 20_000 and time.monotonic() < ends:
            time.sleep(1)
        assert found["metadata_rate"] > 20_000 and found["user"].isdecimal() and found["hosts"] == 1008
        page = urllib.request.urlopen(f"{url}/jobs/{found['job']}?format=json&table=totals", timeout=20)
        assert json.loads(page.read())["begin_ts"] > began - 120 * 1_000_000_000
        suspects = urllib.request.urlopen(f"{url}/now?format=json&table=suspects", timeout=20).read()
        (suspect, *_) = json.loads(suspects)["rows"]
        assert (suspect["job"], suspect["job_name"]) == (found["job"], "shared-dir")
        (row, *_) = top_rows(store)
        assert (row["name"], row["user"], row["job_name"]) == (found["job"], found["user"], "shared-dir")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def culprit(url: str) -> dict[str, Any]:
    """Returns the job with the most load on the metadata server once the portal reports an overload, before
    that nothing."""
    if "is overloaded" not in urllib.request.urlopen(f"{url}/", timeout=20).read().decode():
        return {}
    asked = f"{url}/jobs?range=15m&sort=metadata_rate&format=json"
    rows: list[dict[str, Any]] = json.loads(urllib.request.urlopen(asked, timeout=20).read())["rows"]
    return rows[0] if rows and rows[0]["job_name"] == "shared-dir" else {}


def top_rows(store: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "iodock", "monitor", "top", "--store", str(store)]
    done = subprocess.run(
        [*command, "--once", "--sort", "metadata", "--format", "json"], capture_output=True, check=True
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def test_names_of_running_jobs_are_sent_once(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "store")
    centre = Centre(named("healthy"), seed=3, begin_ns=time.time_ns(), servers=3, jobs=10)
    names = Names(centre, collector.writer)
    names.tell()
    names.tell()
    assert told(collector) == [str(job.number) for job in centre.jobs if job.number]
    first = len(told(collector))
    centre.advance(3600)
    names.tell()
    fresh = [job for job in centre.jobs if job.number][first:]
    assert told(collector)[first:] == [str(job.number) for job in fresh if job.end_ns > centre.now_ns]


def told(collector: Collector) -> list[str]:
    found: list[str] = collector.store.table(
        "SELECT job FROM job_names ORDER BY job", begin=0, end=1 << 62, resolution="fine"
    ).column(0).to_pylist()  # fmt: skip
    return found


def test_generated_history_ends_at_the_present(tmp_path: Path) -> None:
    now = time.time_ns()
    collector = Collector(tmp_path / "store")
    centre = Centre(named("healthy"), seed=2, begin_ns=now, servers=3, jobs=5)
    # The clock advances while the demo writes rows.
    moments = iter([now + 200 * SECOND, now + 230 * SECOND, now + 235 * SECOND])
    write_up_to_now(centre, collector.writer, lambda: next(moments))
    assert centre.now_ns == now + 230 * SECOND
    rows = collector.store.table(
        "SELECT min(begin_ts), max(end_ts), max(end_ts - begin_ts) FROM job_io",
        begin=0, end=1 << 62, resolution="fine",
    )  # fmt: skip
    assert [column[0].as_py() for column in rows.columns] == [now, now + 230 * SECOND, 10 * SECOND]


def children(parent: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        found += [int(word) for word in (task / "children").read_text().split()]
    return [pid for pid in found if is_agent(pid)]


def is_agent(pid: int) -> bool:
    """Returns whether a process is a running agent. Zombies do not count: on a machine without init, no
    process reaps them."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")
    except OSError:
        return False
    return "iodock-agent" in name and not rest.startswith("Z")


def logged_events(url: str) -> list[dict[str, str]]:
    answer = urllib.request.urlopen(f"{url}/events?format=json", timeout=20).read()
    rows: list[dict[str, str]] = json.loads(answer)["rows"]
    return [row for row in rows if row["source"] == "system-log"]


def pushed(folder: Path) -> int:
    """Returns the number of agents whose pushes are in the store, or 0 until all have pushed."""
    applied = json.loads((folder / "store" / "catalogue.json").read_text())["applied"]
    servers = len([path for path in (folder / "lustre").iterdir() if path.is_dir()])
    return len(applied) if len(applied) == servers else 0


def test_generated_history_contains_the_load_of_jobs(tmp_path: Path) -> None:
    now = time.time_ns()
    collector = Collector(tmp_path / "store")
    centre = Centre(named("healthy"), seed=2, begin_ns=begin_before(now, 0.1), servers=3, jobs=10)
    first = sums(centre)
    told: list[float] = []
    write_days(centre, collector.writer, 0.1, told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    done = {name: value - first.get(name, 0) for name, value in sums(centre).items()}
    rows = collector.store.table(
        "SELECT sum(read_bytes)::BIGINT AS read_bytes, sum(write_bytes)::BIGINT AS write_bytes, "
        "sum(open)::BIGINT AS open, max(end_ts) AS end_ts FROM job_io",
        begin=0, end=1 << 62, resolution="fine",
    ).to_pylist()[0]  # fmt: skip
    assert {name: rows[name] for name in done} == done
    assert abs(rows["end_ts"] - now) < 60 * 1_000_000_000
    named_jobs = collector.store.table(
        "SELECT count(*) AS jobs, count(DISTINCT name) AS names FROM job_names",
        begin=0, end=1 << 62, resolution="fine",
    ).to_pylist()[0]  # fmt: skip
    assert named_jobs["jobs"] >= 10 and named_jobs["names"] > 1
    waits = collector.store.table(
        "SELECT metric, unit, min(value) AS least FROM targets GROUP BY ALL",
        begin=0, end=1 << 62, resolution="fine",
    ).to_pylist()  # fmt: skip
    assert {("req_waittime", "1"), ("req_waittime_time", "us"), ("req_qdepth_sum", "1")} <= {
        (row["metric"], row["unit"]) for row in waits
    }


def sums(centre: Centre) -> dict[str, int]:
    """Returns the sums of bytes and opens over all jobs."""
    found = {"read_bytes": 0, "write_bytes": 0, "open": 0}
    for job in truth(centre)["jobs"]:
        for targets in job["work"].values():
            for operations in targets.values():
                for name in found:
                    kind = "samples" if name == "open" else "sum"
                    found[name] += operations.get(name, {}).get(kind, 0)
    return found
