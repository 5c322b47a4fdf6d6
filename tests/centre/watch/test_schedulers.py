"""Tests schedulers: valid job ids, the commands that iodock runs, and how it interprets their answers."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

import pytest

from fake_schedulers import FakeJob, FakeScheduler
from iodock.centre.watch.schedulers import SCHEDULERS
from iodock.centre.watch.schedulers.base import JOB, JobIdRefused, SchedulerError
from iodock.centre.watch.schedulers.desk import SchedulerDesk
from iodock.centre.watch.schedulers.slurm import read
from iodock.shared.bounded.commands import Answer
from made_verdicts import Site, suspect

HOSTILE = (
    "", " ", "0", "01", "-1", "+1", "4711 ", " 4711", "4711\n", "\n4711", "4711\x00", "4711;reboot",
    "4711; rm -rf /", "4711 && id", "4711|id", "$(id)", "`id`", "4711`id`", "4711$(id)", "4711\nreboot",
    "4711,4712", "4711 4712", "4711_[1-9]", "4711_*", "*", "?", "--all", "-u root", "4711 --all",
    "../../etc/passwd", "/etc/passwd", "4711/..", "\uff14\uff17\uff11\uff11", "\u0664\u0667", "4711\u200b",
    "\u202e4711", "4711\u2028", "4711.0.0.0.0.0.0.0.0.0.0", "1e3", "0x10", "4711#", "%j", "{job}", "4711'",
    '4711"', "4711\\", "all", "root", "jobid=4711", "4711:17627:r01", "9" * 40, "4711_99999999", "4711[",
    "4711[]", "4711[1-2]", "4711..host", "4711.-x", "4711.host/..", "4711.@host", "4711@host",
)  # fmt: skip
VALID = {
    "slurm": ("1", "4711", "4711_0", "4711_1234567", "4711+1", "67108863"),
    "pbs": ("4711", "4711.server", "4711[3].server", "4711.pbs01.example.org"),
    "grid-engine": ("4711", "4711.3"),
    "pjm": ("4711", "4711[3]", "4711_2"),
    "nqsv": ("4711", "4711.bsv1", "4711[2].bsv1"),
}


@pytest.mark.parametrize("job", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("name", SCHEDULERS)
def test_hostile_ids_are_refused_before_any_command(name: str, job: str) -> None:
    fake = FakeScheduler(name, {job: FakeJob()})
    desk = SchedulerDesk(SCHEDULERS[name], run=fake.run)
    for ask in (desk.facts, *(lambda job, kind=kind: desk.do(kind, job) for kind in desk.scheduler.ways)):
        with pytest.raises(JobIdRefused):
            ask(job)
    for kind in desk.scheduler.ways:
        with pytest.raises(JobIdRefused):
            desk.undo(kind, job)
        assert desk.shown(kind, job) == ""
    assert fake.calls == []


def test_no_scheduler_acts_on_hostile_job_ids(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.quiet()
    site.intervals(8, suspects=tuple(suspect(job) for job in HOSTILE))
    assert site.scheduler.calls == [] and site.statuses == []
    assert {one["why"] for one in site.logged("refused")} == {"job-id"}
    assert "nrs_tbf_rule" not in site.sent[0].message.text.replace("jobid={JOB", "")
    site.responder.close()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_job_id_is_passed_as_one_word(name: str) -> None:
    assert len(set(HOSTILE)) >= 30
    for job in VALID[name]:
        fake = FakeScheduler(name, {job: FakeJob()})
        facts = SchedulerDesk(SCHEDULERS[name], run=fake.run).facts(job)
        assert facts and (facts.state, facts.owner) == ("running", "alice")
        assert all(job in call or "*" in call for call in fake.calls)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_an_unknown_job_gives_no_facts(name: str) -> None:
    fake = FakeScheduler(name, {"4712": FakeJob()})
    assert SchedulerDesk(SCHEDULERS[name], run=fake.run).facts("4711") is None


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize(
    "said", ["", "nonsense\n", "{}", '{"Jobs": []}', "<a/>", "<!DOCTYPE a><a/>", "H\n", "\x00" * 99]
)
def test_unexpected_answers_never_mean_a_running_job(name: str, said: str) -> None:
    desk = SchedulerDesk(SCHEDULERS[name], run=lambda *given: Answer("answered", 0, said.encode()))
    with contextlib.suppress(SchedulerError):
        assert desk.facts("4711") is None


@pytest.mark.parametrize("name", SCHEDULERS)
def test_commands_pass_the_job_as_its_own_argument_without_a_shell(name: str) -> None:
    scheduler = SCHEDULERS[name]
    ways = [command for way in scheduler.ways.values() for command in (*way.do, *way.undo)]
    assert all(command.count(JOB) == 1 for command in ways)
    for command in (*ways, *scheduler.asked):
        assert command[0] not in ("sh", "bash", "ssh", "env", "sudo")
        assert not any(JOB in word and word != JOB for word in command)


def test_only_slurm_is_marked_as_tested_on_a_real_system() -> None:
    assert [name for name, one in SCHEDULERS.items() if one.was_tried] == ["slurm"]


def test_user_texts_cannot_imitate_fields_of_slurm() -> None:
    shown = (
        "JobId=5 JobName=x\n   UserId=mallory(1001)\n   SuspendTime=None SecsPreSuspend=0\n   Restarts=0\n"
    )
    listed = "5 mallory RUNNING 100\n"
    honest = read("5", (listed, shown))
    assert honest and (honest.owner, honest.state) == ("mallory", "running") and honest.mark
    for name in (
        "x UserId=root(0) JobState=SUSPENDED",
        "x\n   SuspendTime=2026-01-01T00:00:00",
        "x Restarts=7",
    ):
        facts = read("5", (listed, shown.replace("JobName=x", f"JobName={name}")))
        assert facts and (facts.owner, facts.state) == ("mallory", "running")
        assert facts.mark in (None, honest.mark)


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes simulated Slurm programs that log their arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = f"import sys; open({str(tmp_path / 'log')!r}, 'a').write(repr(sys.argv[1:]) + '\\n')\n"
    program(folder, "scontrol", log + "print('   SuspendTime=None Restarts=0')")
    program(folder, "squeue", log + "print('4711 alice RUNNING 100')")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


def test_arguments_reach_the_scheduler_unchanged(programs: Path, tmp_path: Path) -> None:
    desk = SchedulerDesk(SCHEDULERS["slurm"])
    facts = desk.facts("4711")
    assert facts and facts.state == "running" and facts.mark
    desk.do("suspend", "4711")
    logged = (tmp_path / "log").read_text().splitlines()
    assert logged[1:] == ["['show', 'job', '4711']", "['suspend', '4711']"]
    assert logged[0].endswith("'--jobs', '4711']")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import time; time.sleep(600)", "did not answer in time"),
        ("import sys; sys.exit('slurm_suspend error: Access denied\\x1b[31m')", r"Access denied\\x1b"),
        ("while True: print('x' * 100000)", "wrote endless data"),
    ],
)
def test_a_misbehaving_scheduler_gives_an_error(programs: Path, text: str, says: str) -> None:
    program(programs, "scontrol", text)
    with pytest.raises(SchedulerError, match=says):
        SchedulerDesk(SCHEDULERS["slurm"], limit_s=3).do("suspend", "4711")


def test_a_configured_prefix_precedes_every_command(programs: Path, tmp_path: Path) -> None:
    program(programs, "pretend-sudo", "import os, sys; os.execvp(sys.argv[2], sys.argv[2:])")
    SchedulerDesk(SCHEDULERS["slurm"], ("pretend-sudo", "-n")).do("suspend", "4711")
    assert (tmp_path / "log").read_text() == "['suspend', '4711']\n"
    with pytest.raises(SchedulerError, match="not installed"):
        SchedulerDesk(SCHEDULERS["slurm"], ("no-such-program",)).do("suspend", "4711")
