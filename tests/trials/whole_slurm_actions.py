"""Tests actions on a real Slurm with two nodes, which suspend, hold and requeue jobs, and release them again.
Verdicts are made up. Part of `make test-slurm`; needs root and Slurm's packages."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from iodock.centre.watch.schedulers import SCHEDULERS
from iodock.centre.watch.schedulers.desk import SchedulerDesk
from iodock.shared.bounded.commands import answer_of
from iodock.shared.response import ActionKind
from made_verdicts import ACTS, Site, suspect, verdict
from slurm_site import SlurmSite, missing

PATIENCE_S = 60.0
OWNER = "daemon"

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm can be tried here: {missing()}"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmSite]:
    # The folder's path is short, because paths of sockets must be.
    folder = Path(tempfile.mkdtemp(prefix="iodock-slurm-"))
    site = SlurmSite(folder)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", str(site.conf))
            yield site
    finally:
        site.end()
        shutil.rmtree(folder)


@pytest.fixture
def submitted(slurm: SlurmSite) -> Iterator[Callable[..., str]]:
    """Returns a function that submits a job, which appends a line to a file five times a second, and returns
    its id."""
    jobs: list[str] = []

    def submit(*options: str) -> str:
        path = slurm.folder / "jobs" / f"beat{time.monotonic_ns()}"
        path.write_text("")
        path.chmod(0o666)
        script = f"while true; do echo x >> {path}; sleep 0.2; done"
        command = ["sbatch", "--parsable", f"--uid={OWNER}", "-D", "/", "-o", "/dev/null", "-n1", *options]
        done = subprocess.run(
            [*command, "--wrap", script], capture_output=True, text=True, timeout=60, check=True
        )
        jobs.append(done.stdout.strip().split(";")[0])
        beats[jobs[-1]] = path
        return jobs[-1]

    beats: dict[str, Path] = {}
    submit.beats = beats  # type: ignore[attr-defined]
    yield submit
    for job in jobs:
        subprocess.run(["scancel", job], timeout=60, check=False)


@pytest.fixture
def desk(slurm: SlurmSite) -> SchedulerDesk:
    return SchedulerDesk(SCHEDULERS["slurm"])


def wait_for(desk: SchedulerDesk, job: str, state: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while (facts := desk.facts(job)) is None or facts.state != state:
        assert time.monotonic() < until, (state, facts)
        time.sleep(0.2)


def acting(folder: Path, kind: ActionKind = "suspend") -> Site:
    rules = replace(ACTS, action=kind, quiet_after_start_s=0)
    return Site(folder, rules, now=time.time_ns() - 1, run=answer_of)


def hears(site: Site, job: str, state: str = "overload", samples: int = 6) -> None:
    """Passes one verdict, with the current time, to the site's responder."""
    site.now = time.time_ns()
    suspects = (suspect(job, owner=OWNER),) if state == "overload" else ()
    site.hear(verdict(site.now, state, samples, suspects=suspects))  # type: ignore[arg-type]


def works_until(site: Site, status: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while site.statuses[0] != status:
        assert time.monotonic() < until, (site.statuses, site.log())
        time.sleep(0.5)
        site.now = time.time_ns()
        site.work()


def grows(path: Path) -> bool:
    before = path.stat().st_size
    time.sleep(3)
    return path.stat().st_size > before


def test_a_job_is_suspended_and_resumed(
    tmp_path: Path, submitted: Callable[..., str], desk: SchedulerDesk
) -> None:
    job = submitted("-J", "x UserId=root(0) JobState=PENDING")
    wait_for(desk, job, "running")
    beat = submitted.beats[job]  # type: ignore[attr-defined]
    assert grows(beat)
    facts = desk.facts(job)
    assert facts and facts.owner == OWNER and facts.mark
    site = acting(tmp_path)
    hears(site, job)
    works_until(site, "done")
    facts = desk.facts(job)
    assert facts and facts.state == "suspended" and not grows(beat)
    assert facts.changed_s and abs(facts.changed_s - time.time()) < 60
    # The collector restarts between the two verdicts.
    site.restart()
    hears(site, job, "healthy", 3)
    works_until(site, "undone")
    assert (found := desk.facts(job)) and found.state == "running" and grows(beat)
    site.responder.close()


def test_a_job_suspended_again_by_hand_stays_suspended(
    tmp_path: Path, submitted: Callable[..., str], desk: SchedulerDesk
) -> None:
    job = submitted()
    wait_for(desk, job, "running")
    site = acting(tmp_path)
    hears(site, job)
    works_until(site, "done")
    # Slurm's times are whole seconds.
    time.sleep(1.1)
    for word in ("resume", "suspend"):
        subprocess.run(["scontrol", word, job], timeout=60, check=True)
    hears(site, job, "healthy", 3)
    works_until(site, "left")
    assert site.why == "changed-since"
    assert (found := desk.facts(job)) and found.state == "suspended"
    site.responder.close()


def test_an_ended_job_is_left_alone(
    tmp_path: Path, submitted: Callable[..., str], desk: SchedulerDesk
) -> None:
    job = submitted()
    wait_for(desk, job, "running")
    site = acting(tmp_path)
    hears(site, job)
    works_until(site, "done")
    subprocess.run(["scancel", job], timeout=60, check=True)
    wait_for(desk, job, "ended")
    hears(site, job, "healthy", 3)
    works_until(site, "left")
    assert site.why == "job-over"
    site.responder.close()


def test_a_waiting_job_is_held_and_released(
    tmp_path: Path, submitted: Callable[..., str], desk: SchedulerDesk
) -> None:
    job = submitted("--begin=now+1hour")
    wait_for(desk, job, "waiting")
    site = acting(tmp_path, "hold")
    hears(site, job)
    works_until(site, "done")
    assert (found := desk.facts(job)) and found.state == "held"
    hears(site, job, "healthy", 3)
    works_until(site, "undone")
    assert (found := desk.facts(job)) and found.state == "waiting"
    site.responder.close()


def test_a_job_is_requeued_held_and_starts_again(
    tmp_path: Path, submitted: Callable[..., str], desk: SchedulerDesk
) -> None:
    job = submitted("--requeue")
    wait_for(desk, job, "running")
    site = acting(tmp_path, "requeue")
    hears(site, job)
    works_until(site, "done")
    assert (found := desk.facts(job)) and found.state == "held"
    hears(site, job, "healthy", 3)
    works_until(site, "undone")
    assert (found := desk.facts(job)) and found.state in ("waiting", "running")
    site.responder.close()


@pytest.mark.parametrize(
    "name", ["x SuspendTime=2026-01-01T00:00:00", "x\n   SuspendTime=None", "x Restarts=0"]
)
def test_a_job_name_that_imitates_a_field_prevents_actions(
    tmp_path: Path, submitted: Callable[..., str], desk: SchedulerDesk, name: str
) -> None:
    job = submitted("-J", name)
    wait_for(desk, job, "running")
    site = acting(tmp_path)
    hears(site, job)
    works_until(site, "failed")
    assert site.why == "no-mark"
    assert (found := desk.facts(job)) and (found.state, found.owner) == ("running", OWNER)
    site.responder.close()


def test_elements_of_a_job_array_are_separate_jobs(
    tmp_path: Path, submitted: Callable[..., str], desk: SchedulerDesk
) -> None:
    job = submitted("--array=1-2")
    for element in (f"{job}_1", f"{job}_2"):
        wait_for(desk, element, "running")
    site = acting(tmp_path)
    hears(site, f"{job}_2")
    works_until(site, "done")
    states = {element: desk.facts(element) for element in (f"{job}_1", f"{job}_2")}
    assert [one and one.state for one in states.values()] == ["running", "suspended"]
    site.responder.close()


def test_a_job_that_never_existed_is_unknown(desk: SchedulerDesk) -> None:
    assert desk.facts("4000000") is None
