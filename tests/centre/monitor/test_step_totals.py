"""Tests Slurm jobs in tables: a sum that a step's total completes is no longer a lower bound, and a job is
over when Slurm has ended it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from batches import BYTES, Entry, Part, frame
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions import job, jobs, use
from iodock.centre.monitor.questions.counted import PROCESSES
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.job import OneJob
from iodock.centre.monitor.questions.jobs import Seen, Wanted
from iodock.centre.monitor.questions.runs import runs
from iodock.centre.monitor.questions.spans import DAY, HOUR, SECOND, Span, span
from iodock.centre.monitor.questions.top import TopWanted, top
from iodock.centre.monitor.rolling import roll
from iodock.centre.monitor.summaries import summarise

IDS = JobIds()
SCHEDULER, ENVIRONMENT, SESSION = 5, 3, 4
CALLS = ("read_call", BYTES)


class Node:
    """A node whose agent reads its processes every ten seconds. Times are seconds since BEGIN."""

    def __init__(self, collector: Collector, begin: int, name: str = "n1") -> None:
        self.collector, self.begin, self.name = collector, begin, name
        self.sequence, self.alive = 0, dict[tuple[str, str, int], int]()
        self.waited_for = 0
        self.read(0)

    def at(self, seconds: float) -> int:
        return self.begin + int(seconds * SECOND)

    def read(self, seconds: float, *totals: Entry) -> None:
        """Sends the counters of all living processes, and the totals of steps."""
        self.sequence += 1
        entries = [
            Entry(number, {CALLS: done}, user="alice", evidence=evidence, session=step)
            for (number, step, evidence), done in self.alive.items()
        ]
        # Process 1 has the counters of the processes that it has reaped.
        entries.append(Entry("", {CALLS: self.waited_for}, evidence=SESSION, session="init"))
        now = self.at(seconds)
        parts = [Part(now, entries, "process_io", "", "", full=True, falls=True)]
        if totals:
            parts.append(Part(now, list(totals), "slurm_step", "", "", falls=True))
        spool = self.name.encode().ljust(16, b"-")
        self.collector.push(frame(self.sequence, parts, spool=spool, host=self.name))

    def total(self, number: str, step: str, done: int, began: float, ended: float) -> Entry:
        times = {"start": self.at(began), "updated": self.at(ended)}
        return Entry(number, {CALLS: done}, user="alice", evidence=SCHEDULER, session=step, **times)


def ran(node: Node, number: str, begin: float, seconds: float, done: int, step: str = "step_batch") -> None:
    """Runs a step that the agent reads twice. At its end the step leaves its total."""
    for part in (1, 2):
        node.alive[number, step, SCHEDULER] = done * part // 3
        node.read(begin + seconds * part / 3)
    del node.alive[number, step, SCHEDULER]
    node.waited_for += done
    ends = begin + seconds
    node.read(ends + 1, node.total(number, step, done, begin, ends))


def told(node: Node, within: Span) -> dict[str, dict[str, tuple[float, bool]]]:
    """Returns the answers of several analyses: analysis -> job -> bytes, and whether these are exact."""
    node.collector.flush()
    store = node.collector.store
    found = {"jobs": {row["job"]: (row["read_bytes"], row["exact"]) for row in all_jobs(store, within)}}
    wanted = TopWanted(place=PROCESSES, seconds=within.seconds)
    rows = top(store, within.end, IDS, wanted).to_pylist()
    found["top"] = {
        row["name"]: (row["read_rate"] * within.seconds, row["exact"])
        for row in rows
        if row["name"] != "init"
    }
    found["job"] = {}
    for number in found["jobs"]:
        rows = job.parts(store, OneJob(IDS, number), within).to_pylist()
        (row,) = [row for row in rows if row["part"] == "place" and row["place"] == PROCESSES]
        found["job"][number] = (row["call_read_bytes"], row["exact"])
    return found


def all_jobs(store: object, within: Span) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = jobs.jobs(store, within, IDS, Wanted(place=PROCESSES)).to_pylist()  # type: ignore[arg-type]
    return [row for row in rows if row["is_job"]]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(Collector(tmp_path), (time.time_ns() - HOUR) // (600 * SECOND) * 600 * SECOND)


def within(node: Node, begin: float = 0, end: float = 600) -> Span:
    return span(node.at(begin), node.at(end), node.collector.store.catalogue)


def test_sums_that_a_total_completes_are_exact(node: Node) -> None:
    ran(node, "7", 5, 60, 3000)
    # Another step has no total yet.
    node.alive["8", "step_batch", SCHEDULER] = 500
    node.read(100)
    for question, rows in told(node, within(node)).items():
        assert rows == {"7": (3000, True), "8": (500, False)}, question


def test_sums_over_part_of_a_step_are_bounds(node: Node) -> None:
    ran(node, "7", 5, 60, 3000)
    node.collector.flush()
    (row,) = all_jobs(node.collector.store, within(node, 30))
    assert row["exact"] is False


def test_a_missing_total_of_one_step_makes_sums_bounds(node: Node) -> None:
    ran(node, "7", 5, 60, 3000)
    node.alive["7", "step_0", SCHEDULER] = 500
    node.read(100)
    ran(Node(node.collector, node.begin, "n2"), "7", 5, 60, 100, "step_0")
    for question, rows in told(node, within(node)).items():
        assert rows == {"7": (3600, False)}, question


def test_a_requeued_run_is_not_part_of_the_earlier_total(node: Node) -> None:
    ran(node, "7", 5, 60, 3000)
    # Slurm has started the job again.
    node.alive["7", "step_batch", SCHEDULER] = 500
    node.read(300)
    node.alive["7", "step_batch", SCHEDULER] = 600
    node.read(310)
    for question, rows in told(node, within(node)).items():
        assert rows == {"7": (3600, False)}, question


@pytest.mark.parametrize("are_summed", [False, True])
def test_totals_complete_the_samples_of_earlier_days(tmp_path: Path, are_summed: bool) -> None:
    midnight = (time.time_ns() // DAY - 2) * DAY
    node = Node(Collector(tmp_path), midnight - HOUR)
    ran(node, "7", 5, 2 * 3600, 3000)
    ran(node, "8", 7300, 60, 30)
    node.alive["9", "step_batch", SCHEDULER] = 500
    node.read(7400)
    node.collector.flush()
    store = node.collector.store
    for _ in range(2):
        roll(store, node.collector._intake, time.time_ns())
    if are_summed:
        assert summarise(store, IDS) > 0
    found = span(midnight - DAY, midnight + DAY, store.catalogue)
    expected = {"7": (3000, True), "8": (30, True), "9": (500, False)}
    assert {row["job"]: (row["read_bytes"], row["exact"]) for row in all_jobs(store, found)} == expected
    rows = use.by_user(store, found.begin, found.end, IDS, Seen(), PROCESSES).to_pylist()
    (row,) = [row for row in rows if row["user"] == "alice"]
    assert (row["jobs"], row["read_bytes"], row["exact"]) == (3, 3530, False)
    # The second day alone does not show the work of the first day.
    cut = span(midnight, midnight + DAY, store.catalogue)
    assert {row["job"]: row["exact"] for row in all_jobs(store, cut)} == {"7": False, "8": True, "9": False}


def is_over(node: Node, number: str, seconds: float) -> bool:
    node.collector.flush()
    now = node.at(seconds)
    looked = span(now - HOUR, now, node.collector.store.catalogue)
    (run,) = runs(node.collector.store, IDS, [number], ["alice"], PROCESSES, looked, now)
    return run.is_over


def test_a_job_is_over_when_its_batch_step_has_ended(node: Node) -> None:
    node.alive["7", "step_batch", SCHEDULER] = 500
    node.read(20)
    ran(node, "7", 20, 30, 90, "step_0")
    assert not is_over(node, "7", 60)
    del node.alive["7", "step_batch", SCHEDULER]
    node.read(70, node.total("7", "step_batch", 600, 5, 65))
    assert is_over(node, "7", 80)


def test_a_job_without_a_batch_step_ends_with_its_extern_step(node: Node) -> None:
    ran(node, "7", 20, 30, 90, "step_0")
    assert not is_over(node, "7", 60)
    node.read(70, node.total("7", "step_extern", 1, 5, 65))
    assert is_over(node, "7", 80)
    # While the batch step lives, the end of the extern step shows only that Slurm has released a node.
    node.alive["8", "step_batch", SCHEDULER] = 500
    node.read(90, node.total("8", "step_extern", 1, 5, 85))
    assert not is_over(node, "8", 100)


def test_processes_that_outlive_a_job_do_not_prolong_it(node: Node) -> None:
    ran(node, "7", 20, 30, 90)
    for seconds in (60, 70, 80):
        node.alive["7", "step_batch", ENVIRONMENT] = seconds
        node.read(seconds)
    assert is_over(node, "7", 80)


def test_a_requeued_job_is_not_over(node: Node) -> None:
    ran(node, "7", 20, 30, 90)
    assert is_over(node, "7", 60)
    for seconds in (200, 210):
        node.alive["7", "step_batch", SCHEDULER] = seconds
        node.read(seconds)
    assert not is_over(node, "7", 210)
