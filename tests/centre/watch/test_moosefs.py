"""Tests the state of a MooseFS master as seen by its agent and its clients. The readings have the agent's
form and are made up here; `make test-moosefs` uses a real MooseFS."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from batches import COUNT, LEVEL, Entry, Part, frame
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.watch.observation import SECOND
from iodock.centre.watch.observing import Observer
from iodock.centre.watch.verdict import Verdict
from iodock.centre.watch.watching import Watching
from iodock.shared.settings import ServerStates

TIME = 2
STEP = SECOND
MASTER = "10.0.0.1:9421"
JOBS = ("7", "8", "9")
_LOOKED_AT = 15
"""Number of last samples that must agree: slightly more than are needed to know the usual values."""


@dataclass
class Centre:
    """A master, and a node with a mount for each job."""

    folder: Path
    has_agent: bool = True
    at: int = field(default_factory=lambda: (time.time_ns() - 1800 * SECOND) // STEP * STEP)
    number: int = 0
    cpu_us: int = 0
    uptime_s: int = 5000
    made: dict[str, int] = field(default_factory=lambda: dict.fromkeys(JOBS, 0))

    def __post_init__(self) -> None:
        self.collector = Collector(self.folder)
        self.limits = ServerStates(scheduler="none", usual_hours=1, sample_s=1)
        self.watching = Watching(self.collector.store, limits=self.limits)

    def goes_on(
        self, samples: int, waiting: int = 0, cpu: float = 0.05, does: int = 100, much: str = "",
        is_answered: bool = True,
    ) -> Verdict:  # fmt: skip
        """DOES: operations of each job in a sample; the job MUCH has 20 times as many."""
        for left in range(samples, 0, -1):
            self.number, self.at = self.number + 1, self.at + STEP
            self.uptime_s += 1
            self.cpu_us += int(cpu * 1_000_000)
            for job in JOBS:
                self.made[job] += does * (20 if job == much else 1)
            full = self.number == 1
            if self.has_agent:
                parts = [self.service(full, is_answered), *(self.sessions(full) if is_answered else ())]
                self.collector.push(frame(self.number, parts, spool=b"M" * 16, host="mds01"))
            mounts = [self.mount(job, waiting, full) for job in JOBS]
            self.collector.push(frame(self.number, mounts, spool=b"N" * 16, host="n1"))
            if left > _LOOKED_AT:
                continue
            self.collector.flush()
            (verdict,) = self.watching.look(self.at + SECOND // 2)
        return verdict

    def skips(self, parts: list[Part]) -> None:
        """Pushes a round of the master's machine that contains only these parts."""
        self.number, self.at = self.number + 1, self.at + STEP
        for part in parts:
            part.time = self.at
        self.collector.push(frame(self.number, parts, spool=b"M" * 16, host="mds01"))
        self.collector.flush()
        self.watching.look(self.at + SECOND // 2)

    def service(self, full: bool, is_answered: bool) -> Part:
        values = {
            ("answer_us", LEVEL): 300 if is_answered else 800_000, ("no_answer", LEVEL): int(not is_answered),
            ("cpu", TIME): self.cpu_us, ("uptime_s", LEVEL): self.uptime_s,
        }  # fmt: skip
        return Part(self.at, [Entry("", values, evidence=0)], "mfs_master", MASTER, MASTER, full=full)

    def sessions(self, full: bool) -> list[Part]:
        def of(job: str) -> Entry:
            return Entry(job, {("mknod", COUNT): self.made[job], ("lookup", COUNT): self.made[job]})

        places = {job: f"10.0.0.2:/mnt/job_{job}" for job in JOBS}
        return [
            Part(self.at, [of(job)], "mfs_sessions", MASTER, place, full=full)
            for job, place in places.items()
        ]

    def mount(self, job: str, waiting: int, full: bool) -> Part:
        answers = 10 * self.number + 2 * self.made[job]
        values = {
            ("operations", COUNT): 60 * self.number + self.made[job], ("answers", COUNT): answers,
            ("waiting", LEVEL): waiting,
        }  # fmt: skip
        return Part(
            self.at, [Entry("", values, evidence=0)], "mfs_mount", MASTER, f"/mnt/job_{job}", full=full
        )


def test_an_observation_combines_the_master_and_its_mounts(tmp_path: Path) -> None:
    centre = Centre(tmp_path)
    centre.goes_on(4, waiting=2)
    observer = Observer(centre.collector.store, JobIds(), STEP)
    found = observer.round(centre.at + SECOND // 2)
    one = found.observations[-1]
    assert (one.host, one.file_system, one.kind) == ("mds01", MASTER, "metadata")
    assert (one.handled, one.creates, one.uptime_s) == (600, 300, 5004)
    assert one.cpu == pytest.approx(0.05) and one.answer_s == pytest.approx(3e-4) and not one.has_no_answer
    news = found.news["mds01"]
    assert (news.backlog, news.has_no_answer) == (6, False) and news.probe_s == pytest.approx(3e-4)
    # The master gave 630 answers in a second, while 6 requests waited.
    assert news.client_wait_s == pytest.approx(6 / 630)


def test_a_high_load_is_attributed_to_the_job_that_began(tmp_path: Path) -> None:
    centre = Centre(tmp_path)
    assert centre.goes_on(70).state == "healthy"
    found = centre.goes_on(3, waiting=200, cpu=0.9, much="8")
    assert found.state == "overload" and [one.job for one in found.suspects] == ["8"]
    assert centre.goes_on(4).state == "healthy"


def test_a_stopped_master_is_a_stall_without_requests(tmp_path: Path) -> None:
    centre = Centre(tmp_path)
    centre.goes_on(70)
    found = centre.goes_on(3, waiting=3, cpu=0.0, does=0, is_answered=False)
    assert (found.state, found.suspects) == ("stall", ())
    assert {"no-answer", "backlog", "handled"} <= {one.what for one in found.evidence}
    assert centre.goes_on(4).state == "healthy"
    assert centre.goes_on(3, cpu=0.0, does=0, is_answered=False).state == "stall"


def test_a_restarted_master_counts_as_a_failover(tmp_path: Path) -> None:
    centre = Centre(tmp_path)
    centre.goes_on(70)
    # A reading without the master's process does not mean a restart, nor does the reading after it.
    parts = [Part(centre.at, [Entry("", {("uptime_s", LEVEL): 9_000_000}, evidence=0)], "cpu", "", "cpu")]
    centre.skips(parts)
    assert centre.goes_on(1).state == "healthy"
    centre.uptime_s = 0
    assert centre.goes_on(1).state == "failover"
    assert centre.goes_on(4).state == "healthy"


def test_the_state_of_a_master_without_an_agent_follows_from_its_mounts(tmp_path: Path) -> None:
    centre = Centre(tmp_path, has_agent=False)
    found = centre.goes_on(70)
    assert (found.server, found.file_system, found.kind, found.state) == (MASTER, MASTER, "client", "healthy")
    found = centre.goes_on(3, waiting=300, much="9")
    assert found.state == "overload" and found.confidence <= 0.5
    assert [one.job for one in found.suspects] == ["9"]
    assert centre.goes_on(4).state == "healthy"
    found = centre.goes_on(3, waiting=40, does=0)
    assert found.state == "stall" and found.confidence <= 0.5


def test_mounts_without_a_job_name_no_suspect(tmp_path: Path) -> None:
    centre = Centre(tmp_path)
    centre.goes_on(2)
    values = {("mknod", COUNT): 0}
    for number in range(2):
        values = {("mknod", COUNT): 500 * (number + 1)}
        part = Part(centre.at + number * STEP, [Entry("", values)], "mfs_sessions", MASTER, "10.0.0.3:/mnt")
        centre.collector.push(frame(number + 1, [part], spool=b"O" * 16, host="mds01"))
    centre.collector.flush()
    observer = Observer(centre.collector.store, JobIds(), STEP)
    observer.prepare(centre.at + 2 * STEP)
    asked = observer.asked("mds01", centre.at - 2 * STEP, centre.at + 2 * STEP)
    assert {one.job for one in asked} == set(JOBS)


def test_a_late_reading_is_used_with_short_samples_too(tmp_path: Path) -> None:
    centre = Centre(tmp_path)
    centre.goes_on(3)
    observer = Observer(centre.collector.store, JobIds(), STEP)
    seen = [one.end_ns for one in observer.round(centre.at + SECOND // 2).observations]
    for late_s in (2, 3):
        seen += [one.end_ns for one in observer.round(centre.at + late_s * SECOND).observations]
        centre.goes_on(1)
    seen += [one.end_ns for one in observer.round(centre.at + 2 * SECOND).observations]
    assert seen == [centre.at - back * STEP for back in range(4, -1, -1)]
