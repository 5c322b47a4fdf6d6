"""Tests actions on jobs: which are taken, when none is taken, and how they are undone. The scheduler is
simulated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_schedulers import FakeJob, FakeScheduler
from iodock.centre.watch.schedulers import SCHEDULERS
from iodock.shared.errors import RequestError
from made_verdicts import ACTS, ASKS, JOB, SECOND, START, Site, suspect, verdict


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    made.quiet()
    yield made
    made.responder.close()


def asking(folder: Path, **more: Any) -> Site:
    made = Site(folder, replace(ASKS, **more))
    made.quiet()
    return made


def test_a_certain_verdict_suspends_the_job_once(site: Site) -> None:
    site.intervals(5)
    assert site.scheduler.changing == [] and site.job.state == "running"
    site.intervals(10)
    assert site.scheduler.changing == [["scontrol", "suspend", JOB]]
    assert site.statuses == ["done"] and site.job.state == "suspended"
    whats = [one["what"] for one in site.log()]
    assert whats[-3:] == ["decided", "about-to-act", "done"]
    assert site.logged("decided")[0]["job"] == JOB and site.logged("decided")[0]["share"] == 0.9


def test_a_suspension_is_undone_only_after_recovery(site: Site) -> None:
    site.intervals(6)
    assert site.job.state == "suspended"
    site.intervals(20, "no-samples")
    site.intervals(2, "healthy")
    assert site.job.state == "suspended"
    site.interval("healthy")
    assert site.scheduler.changing == [["scontrol", "suspend", JOB], ["scontrol", "resume", JOB]]
    assert site.statuses == ["undone"] and site.job.state == "running"


def test_no_action_is_taken_while_samples_are_missing(tmp_path: Path) -> None:
    site = Site(tmp_path, replace(ACTS, quiet_after_start_s=60))
    # The waiting time after the start ends while no new samples arrive.
    site.intervals(5)
    for _ in range(3):
        site.interval(missed=1, samples=6)
    assert site.scheduler.changing == []
    site.intervals(1)
    assert site.scheduler.changing == [["scontrol", "suspend", JOB]]
    site.responder.close()


@pytest.mark.parametrize("change", ["resumed", "resumed and suspended again", "ended", "unknown"])
def test_an_action_changed_by_others_is_not_undone(site: Site, change: str) -> None:
    site.intervals(6)
    site.wait(60)
    if change == "unknown":
        del site.scheduler.jobs[JOB]
    else:
        for state in {"resumed": ["running"], "ended": ["ended"]}.get(change, ["running", "suspended"]):
            site.job.become(state, site.now / SECOND)
    site.intervals(4, "healthy")
    assert site.scheduler.changing == [["scontrol", "suspend", JOB]]
    assert site.statuses == ["left"]
    assert site.why == ("changed-since" if change.startswith("resumed") else "job-over")


class Crash(BaseException):
    """Simulates that the collector's process dies at this place."""


def crashing(site: Site, word: str, when: str) -> None:
    """Makes the collector end before or after this command takes effect."""

    def crash(command: list[str]) -> None:
        if command[1] == word:
            setattr(site.scheduler, when, lambda command: None)
            raise Crash

    setattr(site.scheduler, when, crash)


def test_after_a_crash_a_completed_command_is_undone_later(site: Site) -> None:
    crashing(site, "suspend", "after")
    with pytest.raises(Crash):
        site.intervals(6)
    assert site.statuses == ["doing"] and site.job.state == "suspended"
    site.wait(3600)
    site.restart()
    site.work()
    assert site.statuses == ["done"]
    site.intervals(3, "healthy")
    assert site.statuses == ["undone"] and site.job.state == "running"


def test_after_a_crash_an_unsent_command_is_not_sent(site: Site) -> None:
    crashing(site, "suspend", "before")
    with pytest.raises(Crash):
        site.intervals(6)
    assert site.statuses == ["doing"]
    site.wait(3600)
    site.restart()
    site.intervals(3)
    assert site.statuses == ["failed"] and site.why == "no-effect"
    assert site.scheduler.changing == [["scontrol", "suspend", JOB]] and site.job.state == "running"


@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_an_interrupted_undo_is_completed(site: Site, when: str) -> None:
    site.intervals(6)
    crashing(site, "resume", when)
    with pytest.raises(Crash):
        site.intervals(3, "healthy")
    assert site.statuses == ["undoing"]
    site.wait(3600)
    site.restart()
    for _ in range(3):
        site.wait(10)
        site.work()
    assert site.statuses == ["undone"] and site.job.state == "running"
    assert len(site.scheduler.changing) == (3 if when == "before" else 2)


def test_a_job_suspended_by_hand_is_not_resumed(site: Site) -> None:
    def suspended_before(command: list[str]) -> None:
        if command[1] == "suspend":
            site.job.become("suspended", site.now / SECOND - 60)

    site.scheduler.before = suspended_before
    site.intervals(6)
    assert site.statuses == ["left"] and site.why == "changed-since"
    site.intervals(4, "healthy")
    assert site.job.state == "suspended"


def test_no_action_is_taken_right_after_a_restart(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.intervals(59)
    assert site.scheduler.calls == [] and site.statuses == []
    assert [one["why"] for one in site.logged("refused")] == ["just-started"]
    site.intervals(2)
    assert site.statuses == ["done"]
    site.responder.close()


def test_a_decision_not_yet_started_is_dropped_after_a_restart(site: Site) -> None:
    site.intervals(6, works=False)
    assert site.statuses == ["wanted"]
    site.restart()
    site.intervals(3)
    assert site.statuses == ["lapsed"] and site.why == "restart" and site.scheduler.changing == []


@pytest.mark.parametrize(
    "more",
    [
        {"state": "no-samples"},
        {"at_ns": START},
        {"samples": 5},
        {"confidence": 0.89},
        {"kind": "client"},
        {"state": "failover"},
        {"state": "degraded"},
        {"state": "busy"},
        {"suspects": ()},
        {"suspects": (suspect(share=0.49),)},
        {"suspects": (suspect(confidence=0.89),)},
        {"suspects": (suspect(owner="root"),)},
        {"suspects": (suspect("4711; reboot"),)},
    ],
    ids=str,
)
def test_no_action_is_taken_without_the_configured_evidence(site: Site, more: dict[str, Any]) -> None:
    for _ in range(30):
        site.wait(10)
        site.hear(replace(verdict(site.now), **more))
    assert site.scheduler.calls == [] and site.statuses == []
    # A verdict that fulfils all conditions leads to an action.
    site.wait(10)
    site.hear(verdict(site.now))
    assert site.statuses == ["done"]


@pytest.mark.parametrize("job", [JOB, "4711_7", "4711+1"])
def test_protected_jobs_are_left_alone(tmp_path: Path, job: str) -> None:
    site = Site(tmp_path, replace(ACTS, protected_jobs=(JOB,)))
    site.scheduler.jobs[job] = FakeJob()
    site.quiet()
    site.intervals(8, suspects=(suspect(job),))
    assert site.scheduler.calls == [] and [one["why"] for one in site.logged("refused")] == ["protected-job"]
    site.intervals(2, suspects=(suspect(job), suspect("9")))
    assert site.responder.actions()[0].job == "9"
    site.responder.close()


def test_the_scheduler_decides_the_owner_of_a_job(site: Site) -> None:
    """A user name in the samples cannot remove the protection of a protected user's job."""
    site.job.owner = "root"
    site.intervals(8)
    assert site.statuses == ["failed"] and site.why == "protected-user" and site.job.state == "running"
    assert site.scheduler.changing == []


@pytest.mark.parametrize("state", ["waiting", "held", "suspended"])
def test_a_job_in_another_state_is_left_alone(site: Site, state: str) -> None:
    site.job.state = state
    site.intervals(8)
    assert (site.statuses, site.why, site.scheduler.changing) == (["failed"], "job-state", [])


def test_a_job_name_that_imitates_a_field_prevents_actions(site: Site) -> None:
    site.job.name = "x SuspendTime=2026-01-01T00:00:00"
    site.intervals(8)
    assert (site.statuses, site.why, site.scheduler.changing) == (["failed"], "no-mark", [])


def test_actions_are_limited_per_hour(tmp_path: Path) -> None:
    jobs = [str(number) for number in range(1, 6)]
    site = Site(
        tmp_path,
        replace(ACTS, settle_s=0),
        scheduler=FakeScheduler("slurm", {one: FakeJob() for one in jobs}),
    )
    site.quiet()
    site.intervals(60, suspects=tuple(map(suspect, jobs)))
    assert [command[2] for command in site.scheduler.changing] == jobs[:2]
    assert "hourly-limit" in {one["why"] for one in site.logged("refused")}
    site.restart()
    site.quiet()
    site.intervals(60, suspects=tuple(map(suspect, jobs)))
    assert [command[2] for command in site.scheduler.changing] == jobs[:2]
    site.wait(3600)
    site.intervals(2, suspects=tuple(map(suspect, jobs)))
    assert [command[2] for command in site.scheduler.changing] == jobs[:4]
    site.responder.close()


def test_the_next_action_waits_for_the_effect_of_the_last(tmp_path: Path) -> None:
    site = Site(tmp_path, scheduler=FakeScheduler("slurm", {"1": FakeJob(), "2": FakeJob()}))
    site.quiet()
    site.intervals(17, suspects=(suspect("1"), suspect("2")))
    assert [command[2] for command in site.scheduler.changing] == ["1"]
    site.intervals(2, suspects=(suspect("1"), suspect("2")))
    assert [command[2] for command in site.scheduler.changing] == ["1", "2"]
    site.responder.close()


@pytest.mark.parametrize("places", [("lfs", "lfs"), ("lfs", "gfs")], ids=str)
def test_the_action_limit_holds_within_one_interval(tmp_path: Path, places: tuple[str, str]) -> None:
    rules = replace(ACTS, most_an_hour=1 if places[0] != places[1] else 9)
    site = Site(tmp_path, rules, scheduler=FakeScheduler("slurm", {"1": FakeJob(), "2": FakeJob()}))
    site.quiet()
    found = [
        verdict(site.now, "stall", server=f"mds{n}", file_system=place, suspects=(suspect(str(n)),))
        for n, place in enumerate(places, 1)
    ]
    site.hear(*found)
    assert site.scheduler.changing == [["scontrol", "suspend", "1"]]
    site.responder.close()


def test_an_action_without_effect_is_abandoned(site: Site) -> None:
    def completes(command: list[str]) -> None:
        if command[1] == "suspend":
            site.job.state = "completing"

    site.scheduler.after = completes
    site.intervals(15)
    assert site.statuses == ["doing"]
    site.intervals(15)
    assert (site.statuses, site.why) == (["left"], "changed-since")
    site.intervals(4, "healthy")
    assert site.scheduler.changing == [["scontrol", "suspend", JOB]]


def test_a_started_action_is_retried_if_the_scheduler_does_not_answer(site: Site) -> None:
    site.intervals(6)
    site.scheduler.is_away = True
    site.intervals(60, "healthy")
    assert site.statuses == ["undo"] and len(site.logged("scheduler-failed")) == 1
    site.scheduler.is_away = False
    site.intervals(8, "healthy")
    assert site.statuses == ["undone"] and site.job.state == "running"


def test_an_action_fails_if_the_scheduler_does_not_answer(site: Site) -> None:
    site.scheduler.is_away = True
    site.intervals(20)
    assert (site.statuses, site.why) == (["failed"], "no-answer")


def test_an_action_that_lasts_too_long_is_undone(site: Site) -> None:
    site.intervals(6)
    site.wait(site.rules.longest_s)
    site.interval("overload", samples=9)
    assert site.statuses == ["undone"] and site.job.state == "running"


def test_a_job_stays_suspended_while_another_server_is_unwell(site: Site) -> None:
    site.intervals(6)
    site.wait(10)
    site.hear(verdict(site.now, "stall", server="mds02"), verdict(site.now, "healthy"))
    assert site.job.state == "suspended"
    site.wait(10)
    site.hear(verdict(site.now, "healthy", server="mds02"))
    assert site.statuses == ["undone"]


def test_by_default_no_action_is_proposed_or_taken(tmp_path: Path) -> None:
    site = Site(tmp_path, replace(ACTS, mode="suggest"))
    site.quiet()
    site.intervals(20)
    assert site.scheduler.calls == [] and site.statuses == []
    site.responder.close()


def test_an_operator_confirms_a_proposed_action(tmp_path: Path) -> None:
    site = asking(tmp_path)
    site.intervals(8)
    assert site.statuses == ["asked"] and site.scheduler.calls == []
    site.responder.confirm(1, "bob", site.now)
    with pytest.raises(RequestError, match="already answered"):
        site.responder.confirm(1, "eve", site.now)
    site.interval()
    assert site.statuses == ["done"] and site.job.state == "suspended"
    assert site.logged("confirmed")[0]["by"] == "operator bob"
    site.responder.undo(1, "bob", site.now)
    site.interval()
    assert site.statuses == ["undone"] and site.job.state == "running"
    assert site.logged("undo")[0]["by"] == "operator bob"
    site.responder.close()


def test_an_operator_declines_a_proposed_action(tmp_path: Path) -> None:
    site = asking(tmp_path)
    site.intervals(6)
    site.responder.decline(1, "bob", site.now)
    site.intervals(10)
    assert site.statuses == ["declined"] and site.scheduler.calls == []
    site.responder.close()


@pytest.mark.parametrize("what", ["late", "recovered", "restarted", "no samples"])
def test_a_proposed_action_expires(tmp_path: Path, what: str) -> None:
    site = asking(tmp_path)
    site.intervals(6)
    if what == "late":
        site.intervals(92, confidence=0.5)
    elif what == "recovered":
        site.intervals(3, "healthy")
    elif what == "restarted":
        site.restart()
    else:
        site.wait(61)
    with pytest.raises(RequestError):
        site.responder.confirm(1, "bob", site.now)
    site.work()
    assert site.scheduler.calls == []
    site.responder.close()


def test_a_proposed_action_stays_while_its_evidence_lasts(tmp_path: Path) -> None:
    site = asking(tmp_path)
    site.intervals(200)
    assert site.statuses == ["asked"] and len(site.logged("asked")) == 1
    site.responder.confirm(1, "bob", site.now)
    site.interval()
    assert site.statuses == ["done"]
    site.responder.close()


@pytest.mark.parametrize("kind", ["hold", "suspend", "requeue"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_action_of_every_scheduler_is_done_and_undone(tmp_path: Path, name: str, kind: str) -> None:
    if kind not in SCHEDULERS[name].ways:
        with pytest.raises(RequestError, match=f"pjm has no {kind}"):
            Site(tmp_path, replace(ACTS, scheduler=name, action=kind))
        return
    begins = SCHEDULERS[name].ways[kind].before
    fake = FakeScheduler(name, {JOB: FakeJob(state=begins)})
    site = Site(tmp_path, replace(ACTS, scheduler=name, action=kind), scheduler=fake)
    site.quiet()
    site.intervals(6)
    assert site.statuses == ["done"], site.log()
    assert site.job.state == SCHEDULERS[name].ways[kind].after
    site.intervals(3, "healthy")
    assert site.statuses == ["undone"], site.log()
    assert site.job.state in (begins, "waiting")
    site.responder.close()


def test_a_job_may_be_acted_on_again_in_a_later_episode(site: Site) -> None:
    site.intervals(6)
    site.intervals(3, "healthy")
    site.wait(200)
    site.intervals(6)
    assert site.statuses == ["done", "undone"]


def test_no_action_is_taken_if_it_cannot_be_logged(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from iodock.centre.watch.audit import Audit
    from iodock.shared.errors import StoreError

    def full(*given: object, **named: object) -> None:
        raise StoreError("audit.jsonl: No space left on device")

    site.intervals(5)
    monkeypatch.setattr(Audit, "write", full)
    for _ in range(3):
        with pytest.raises(StoreError):
            site.interval()
    assert site.scheduler.changing == [] and site.statuses == []
