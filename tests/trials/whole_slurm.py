"""Tests jobs with known I/O on a real Slurm with two nodes, an agent on each, and the collector: the store,
`top` and the portal show exactly that I/O. `make test-slurm` runs it; needs root and Slurm's packages, and is
no part of `make test`."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iodock.centre.store import MonitorStore
from places import ROOT
from slurm_site import FREEZER, NODES, SlurmSite, missing

PATIENCE_S = 120.0
TOLERANCE = 0.001
MB = 1_000_000
_KNOWN = ROOT / "tests" / "kit" / "known_io.c"
_COLUMNS = ("call_read_bytes", "call_write_bytes", "read_bytes", "write_bytes")

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm can be tried here: {missing()}"),
    pytest.mark.timeout(600),
]


class Centre:
    """Slurm, agents and collector, each of which can be killed and started."""

    def __init__(self, folder: Path, agent: Path, tracking: str) -> None:
        self.folder, self.agent = folder, agent
        self.known = folder / "known_io"
        static = ["gcc", "-O2", "-Wall", "-static", "-pthread", "-o", self.known, _KNOWN]
        subprocess.run(static, check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.slurm = SlurmSite(folder / "slurm", tracking)
        self.start_collector()
        for node in NODES:
            self.start_agent(node)

    def start_collector(self) -> None:
        words = [sys.executable, "-m", "iodock", "monitor", "serve", "--listen", self.address]
        self.slurm.start("collector", [*words, "--store", str(self.folder / "store")])

    def start_agent(self, node: str) -> None:
        words = [str(self.agent), "run", "--listen", "127.0.0.1:0", "--interval", "1", "--deadline", "5"]
        words += ["--push", f"http://{self.address}", "--spool", str(self.folder / f"spool-{node}")]
        self.slurm.start_in(node, f"agent-{node}", words)

    def does(
        self, read: int, write: int = 0, file: str = "-", threads: int = 1, times: int = 1, pause_ms: int = 0
    ) -> str:
        """Returns a command with this amount of I/O."""
        return f"{self.known} {read} {write} {file} {threads} {times} {pause_ms}"

    def asked(self) -> dict[int, dict[str, int]]:
        """Returns the store's sums of each job, over samples of processes and totals of steps."""
        sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in _COLUMNS)
        sql = (
            f"SELECT job, {sums} FROM job_io WHERE source IN ('process_io', 'slurm_step') AND job IS NOT NULL"
        )
        try:
            found = self.table(sql + " GROUP BY job")
        except Exception:
            # The collector has not created a store yet.
            return {}
        return {int(row.pop("job")): row for row in found}

    def table(self, sql: str) -> list[dict[str, int]]:
        store = MonitorStore(self.folder / "store")
        return store.table(sql, begin=0, end=1 << 62, resolution="fine").to_pylist()


@dataclass
class Job:
    """A job, and the bytes that it requested by calls."""

    name: str
    number: int
    read: int
    write: int = 0
    user: str = "root"


def tracking() -> list[object]:
    """Returns the ways in which Slurm tracks a step's processes."""
    no_freezer = pytest.mark.skipif(
        not FREEZER.exists(), reason=f"no {FREEZER}: proctrack/cgroup is not tried"
    )
    return ["linuxproc", pytest.param("cgroup", marks=no_freezer)]


@pytest.fixture(scope="module", params=tracking())
def centre(agent: Path, request: pytest.FixtureRequest) -> Iterator[Centre]:
    # The folder's path is short, because paths of sockets must be.
    folder = Path(tempfile.mkdtemp(prefix="iodock-slurm-"))
    folder.chmod(0o755)
    centre = Centre(folder, agent, request.param)
    try:
        yield centre
    finally:
        centre.slurm.end()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def jobs(centre: Centre) -> list[Job]:
    """Runs all jobs, which must succeed."""
    done, run, does = [], centre.slurm.run, centre.does
    # The agents must run before any job starts.
    wait_for(lambda: len(agents(centre)) == len(NODES), "the agents' first readings")
    short = does(2 * MB, 100_000, f"{centre.folder}/short.$n")
    script = f"for n in $(seq 200); do {short}; done\n"
    done.append(Job("short", run(script), 400 * MB, 20 * MB))
    mark = centre.folder / "mark"
    daemon = f"(setsid sh -c '{does(100 * MB)}; touch {mark}; {{then}}' > /dev/null 2>&1 &)\n"
    waits = f"while [ ! -e {mark} ]; do sleep 0.1; done; rm {mark}\n"
    done.append(Job("daemon that ends", run(daemon.format(then="true") + waits + "sleep 0.3\n"), 100 * MB))
    done.append(Job("daemon that stays", run(daemon.format(then="sleep 1000") + waits), 100 * MB))
    done.append(Job("threads", run(does(25 * MB, threads=8) + "\n"), 200 * MB))
    both = f"srun {does(20 * MB, times=5, pause_ms=1200)}\n"
    done.append(Job("two nodes", run(both, "-N", "2", "-n", "2"), 200 * MB))
    done.append(Job("killed", killed(centre), 400 * MB))
    # Slurm gives both parts the SLURM_JOB_ID of the first part, but each is a separate job.
    every, own = does(10 * MB, times=6, pause_ms=700), does(5 * MB, times=4, pause_ms=700)
    het = run(f"srun --het-group=0,1 {every}\n{own}\n", "-J", "het", "-n1", ":", "-n1")
    done += [Job("first part", het, 80 * MB), Job("second part", het + 1, 60 * MB)]
    # Each part of this step runs on its own node.
    parts = f"srun -n1 {every} : -n1 {own}\n{own}\n"
    done.append(Job("a step of parts", run(parts, "-N2", "-n2", "-O"), 100 * MB))
    # Slurm's own processes run as root, but the job does not.
    as_other = ("--uid=daemon", "-o", "/dev/null", "-D", "/")
    script = f"{does(10 * MB, times=5, pause_ms=700)}\nsrun {does(10 * MB, times=5, pause_ms=700)}\n"
    done.append(Job("another user's", run(script, *as_other), 100 * MB, user="daemon"))
    writer = does(0, 64 * MB, f"{centre.folder}/written")
    done.append(Job("writer", run(f"{writer}; sync\n"), 0, 64 * MB))
    return done


def killed(centre: Centre) -> int:
    """Runs a job during which agents and collector are killed. They return late."""
    script = f"srun {centre.does(20 * MB, times=10, pause_ms=800)}\n"
    found: list[int] = []

    def run() -> None:
        found.append(centre.slurm.run(script, "-N", "2", "-n", "2"))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(3)
    for name in ("agent-n1", "collector", "agent-n2"):
        centre.slurm.kill(name)
        time.sleep(0.5)
    centre.start_agent("n2")
    thread.join(PATIENCE_S)
    assert found, "the job failed, or does not end"
    # One agent does not see the job's end, and the collector sees no agent's report of it.
    centre.start_agent("n1")
    centre.start_collector()
    return found[0]


def agents(centre: Centre) -> set[str]:
    try:
        return {str(row["host"]) for row in centre.table("SELECT DISTINCT host FROM targets")}
    except Exception:
        return set()


def wait_for(is_so: object, what: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < ends, what
        time.sleep(0.5)


def is_near(found: float, wanted: int, of: int) -> bool:
    return abs(found - wanted) <= TOLERANCE * of


@pytest.fixture(scope="module")
def settled(centre: Centre, jobs: list[Job]) -> list[Job]:
    """Waits until all totals are in the store."""

    def are_there() -> bool:
        left = [name for node in NODES for name in centre.slurm.records(node)]
        return not left and {job.number for job in jobs} <= centre.asked().keys()

    wait_for(are_there, "records are left")
    # The agents may still be sending their last batch.
    try:
        wait_for(lambda: all(not wrong(centre.asked()[job.number], job) for job in jobs), "the sums")
    except AssertionError as error:
        raise AssertionError(told(centre, jobs)) from error
    return jobs


def told(centre: Centre, jobs: list[Job]) -> str:
    asked = centre.asked()
    return "\n".join(f"{job}: {asked.get(job.number)}" for job in jobs)


def wrong(row: dict[str, int], job: Job) -> list[str]:
    of = max(job.read, job.write)
    wanted = {"call_read_bytes": job.read, "call_write_bytes": job.write}
    return [name for name, value in wanted.items() if not is_near(row[name], value, of)]


def test_the_store_has_the_io_of_all_jobs(centre: Centre, settled: list[Job]) -> None:
    print(f"\n{told(centre, settled)}")
    asked = centre.asked()
    assert {job.name: wrong(asked[job.number], job) for job in settled} == {job.name: [] for job in settled}


def test_a_job_has_one_user(centre: Centre, settled: list[Job]) -> None:
    rows = centre.table(
        "SELECT job, list(DISTINCT coalesce(\"user\", '')) AS users FROM job_io "
        "WHERE job IS NOT NULL AND source IN ('process_io', 'slurm_step') GROUP BY job"
    )
    found = {int(row["job"]): row["users"] for row in rows}
    assert {job.name: found[job.number] for job in settled} == {job.name: [job.user] for job in settled}


def test_bytes_of_calls_and_of_devices_are_separate(centre: Centre, settled: list[Job]) -> None:
    rows = {job.name: centre.asked()[job.number] for job in settled}
    for name in ("threads", "two nodes", "killed"):
        # /dev/zero is not a storage device, so these reads are not device I/O.
        assert rows[name]["read_bytes"] < rows[name]["call_read_bytes"] / 100, name
    writer = rows["writer"]
    assert writer["call_write_bytes"] >= 64 * MB
    if is_on_disk(centre.folder):
        assert is_near(writer["write_bytes"], 64 * MB, 64 * MB), writer
    else:
        assert writer["write_bytes"] < MB


def is_on_disk(folder: Path) -> bool:
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True
    ).stdout
    return kind.strip() not in ("tmpfs", "overlayfs")


def test_samples_and_step_totals_add_up(centre: Centre, settled: list[Job]) -> None:
    rows = centre.table(
        "SELECT job, source, sum(call_read_bytes)::BIGINT AS bytes FROM job_io "
        "WHERE job IS NOT NULL GROUP BY ALL"
    )
    parts = {(int(row["job"]), str(row["source"])): row["bytes"] for row in rows}
    number = {job.name: job.number for job in settled}
    assert parts.get((number["short"], "slurm_step"), 0) > 0
    # The job ran for seconds, and the agents read its processes every second.
    assert parts.get((number["two nodes"], "process_io"), 0) > 100 * MB


def test_ended_processes_do_not_count_twice(centre: Centre, settled: list[Job]) -> None:
    rows = centre.table(
        "SELECT host, command, begin_ts, sum(call_read_bytes)::BIGINT AS bytes FROM job_io "
        "WHERE job IS NULL AND source = 'process_io' AND command IN ('bash', 'slurmd', 'slurmstepd') "
        "GROUP BY ALL ORDER BY bytes DESC"
    )
    # Process 1 of each node has the counters of all processes that it reaped. The limit allows for the I/O of
    # the slurmstepds.
    found, limit = sum(row["bytes"] for row in rows), sum(job.read for job in settled) / 100
    assert found < limit, "\n".join(str(row) for row in rows[:12])


def test_killed_agents_lost_no_batch(centre: Centre, settled: list[Job]) -> None:
    rows = centre.table("SELECT host, name, sum(count)::BIGINT AS count FROM losses GROUP BY ALL")
    assert [row for row in rows if row["name"] == "dropped-batches"] == []


def test_top_shows_the_io_of_jobs(centre: Centre, settled: list[Job]) -> None:
    words = [
        sys.executable,
        "-m",
        "iodock",
        "monitor",
        "top",
        "--store",
        str(centre.folder / "store"),
        "--once",
    ]
    words += ["--format", "json", "--counted", "processes", "--over", "3600"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    for job in settled:
        row, of = rows[str(job.number)], max(job.read, job.write)
        assert row["exact"], (job, row)
        assert is_near(row["read_rate"] * 3600, job.read, of), (job, row)
        assert is_near(row["write_rate"] * 3600, job.write, of), (job, row)
    assert rows[str(next(job.number for job in settled if job.name == "two nodes"))]["nodes"] == 2


def test_the_portal_shows_the_io_of_jobs(centre: Centre, settled: list[Job]) -> None:
    def page(job: Job) -> dict[str, float]:
        rows = portal(centre, job.number, "totals")
        return next((row for row in rows if row["counted_by"] == "processes on nodes"), {})

    def is_told(job: Job) -> bool:
        row, of = page(job), max(job.read, job.write)
        read, write = (row.get(f"call_{what}_bytes") or 0 for what in ("read", "write"))
        return is_near(read, job.read, of) and is_near(write, job.write, of) and row["exact"] is True

    for job in settled:
        # Pages leave out the last seconds, so the test waits.
        wait_for(lambda job=job: is_told(job), f"{job}: {page(job)}")


def test_each_job_is_listed_once_with_the_same_sum_on_every_page(centre: Centre, settled: list[Job]) -> None:
    numbers = [str(job.number) for job in settled]
    listed = [
        row for row in asked(centre, "/jobs?range=1h&at=processes&format=json") if row["job"] in numbers
    ]
    assert sorted(str(row["job"]) for row in listed) == sorted(numbers)
    stored = centre.asked()
    for row in listed:
        sums = stored[int(row["job"])]
        of_page = portal(centre, int(row["job"]), "totals")
        (total,) = [one for one in of_page if one["counted_by"] == "processes on nodes"]
        for way in ("read", "write"):
            wanted = sums[f"call_{way}_bytes"]
            assert (row[f"{way}_bytes"], total[f"call_{way}_bytes"]) == (wanted, wanted), row


def test_a_job_is_over_when_slurm_has_ended_it(centre: Centre, settled: list[Job]) -> None:
    def state(job: Job) -> str:
        return next(
            (str(row["state"]) for row in portal(centre, job.number, "runs") if row["role"] == "this job"), ""
        )

    # Agents read names from the processes that they sample, so only longer jobs have names.
    named = [job for job in settled if job.name in ("two nodes", "killed", "first part", "second part")]
    # Without Slurm's record of the end, the portal would report it a quarter of an hour later.
    wait_for(lambda: all(state(job) == "over" for job in named), "a job is over")


def portal(centre: Centre, job: int, table: str) -> list[dict[str, float]]:
    return asked(centre, f"/jobs/{job}?format=json&table={table}")


def asked(centre: Centre, path: str) -> list[dict[str, float]]:
    with urllib.request.urlopen(f"http://{centre.address}{path}", timeout=60) as answer:
        rows: list[dict[str, float]] = json.load(answer)["rows"]
    return rows
