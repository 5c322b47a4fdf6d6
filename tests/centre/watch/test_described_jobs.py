"""Tests job information from schedulers. The answers here are made up in the form of the manuals;
tests/trials/whole_slurm_facts.py uses a real Slurm."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest

from iodock.centre.watch.schedulers import SCHEDULERS, chosen
from iodock.centre.watch.schedulers.base import JobDescription, Scheduler
from iodock.centre.watch.schedulers.describing import answered, described

BEGIN = 1_795_939_920 * 10**9
"""2026-11-29 08:12:00 UTC."""
FAKE_SQUEUE = "700|alice|1008|1795939920|1796022720|sh|ared\n"
FAKE_SACCT = "701|bob|4|1795939920|1795940000|post\nbroken line\n702|eve|x|Unknown|Unknown|\n"
FAKE_PBS = """{"timestamp": 1, "Jobs": {
  "700.pbs01": {"Job_Name": "shared", "Job_Owner": "alice@login1", "job_state": "R",
                "Resource_List": {"nodect": 1008}, "stime": "Sun Nov 29 08:12:00 2026"},
  "701[3].pbs01": {"Job_Name": "array", "Job_Owner": "bob@login1", "job_state": "F"}}}"""
FAKE_PJM = """H,JOB_ID,JOB_NAME,USER,NODE_NUM,START_DATE,END_DATE
,700,"sh,ared",alice,1008:4x18x14,2026/11/29 08:12:00,-
,701,post,bob,-,(2026/11/29 09:00),-
"""
FAKE_NQSV = """Request ID: 700.nqsv01
    Request Name: shared
    User Name: alice
    Number of Jobs: 1008
    Started Time: Sun Nov 29 08:12:00 2026
    Request Name: of a part
"""
FAKE_GRID_ENGINE = """<?xml version='1.0'?>
<job_info><queue_info><job_list state="running"><JB_job_number>700</JB_job_number>
<JB_name>sh&lt;ared</JB_name><JB_owner>alice</JB_owner><JAT_start_time>2026-11-29T08:12:00</JAT_start_time>
<slots>64</slots></job_list></queue_info><job_info/></job_info>"""


class Fake:
    """Simulated commands of a scheduler, with their answers."""

    def __init__(self, **answers: str) -> None:
        self.answers, self.commands = answers, list[Sequence[str]]()

    def __call__(self, command: Sequence[str]) -> str | None:
        self.commands.append(command)
        return self.answers.get(command[0])


@pytest.mark.parametrize(
    ("scheduler", "answers", "expected"),
    [
        (SCHEDULERS["slurm"], {"squeue": FAKE_SQUEUE, "sacct": FAKE_SACCT},
         JobDescription("alice", "sh|ared", 1008, BEGIN, BEGIN + 82_800 * 10**9)),
        (SCHEDULERS["pbs"], {"qstat": FAKE_PBS}, JobDescription("alice", "shared", 1008, BEGIN)),
        (SCHEDULERS["pjm"], {"pjstat": FAKE_PJM}, JobDescription("alice", "sh,ared", 1008, BEGIN)),
        (SCHEDULERS["nqsv"], {"qstat": FAKE_NQSV}, JobDescription("alice", "shared", 1008, BEGIN)),
        (SCHEDULERS["grid-engine"], {"qstat": FAKE_GRID_ENGINE},
         JobDescription("alice", "sh<ared", None, BEGIN)),
    ],
    ids=lambda one: getattr(one, "name", ""),
)  # fmt: skip
def test_schedulers_give_owner_name_nodes_and_times(
    scheduler: Scheduler, answers: dict[str, str], expected: JobDescription
) -> None:
    assert described(scheduler, ["700", "999"], Fake(**answers)) == {"700": expected}


def test_ended_jobs_are_read_from_slurm_accounting() -> None:
    fake = Fake(squeue=FAKE_SQUEUE, sacct=FAKE_SACCT)
    found = described(SCHEDULERS["slurm"], ["700", "701", "702"], fake)
    assert found["701"] == JobDescription("bob", "post", 4, BEGIN, BEGIN + 80 * 10**9)
    assert found["702"] == JobDescription("eve")
    assert [command[-1] for command in fake.commands] == ["--jobs=700,701,702", "--jobs=701,702"]


@pytest.mark.parametrize("scheduler", SCHEDULERS.values(), ids=lambda one: one.name)
@pytest.mark.parametrize(
    "answer", [None, "", "junk", "{", "[]", '{"Jobs": 5}', "<x>", "H,\n,\n", "|||||", "\0"]
)
def test_an_invalid_answer_gives_no_facts(scheduler: Scheduler, answer: str | None) -> None:
    found = described(scheduler, ["700"], lambda command: answer)
    assert "700" not in found


HOSTILE = [
    "", "-x", "--help", "$(reboot)", "700;reboot", "700 701", "700\n701", "`id`", "a700", "../700", "700|x",
    "700&", "700>x", "700'", '700"', "\uff17\uff10\uff10", "700\0", "7" * 70, "~", "*", "700,701", "700/701",
    "%n", "\\700", "{700}", "(700)", "!700", "#700", "700\t", " 700", "700\u202e",
]  # fmt: skip


@pytest.mark.parametrize("job", HOSTILE[:1] + HOSTILE)
def test_hostile_job_ids_never_reach_a_command(job: str) -> None:
    for scheduler in SCHEDULERS.values():
        assert not scheduler.is_id(job)
        fake = Fake(squeue=FAKE_SQUEUE, qstat=FAKE_NQSV, pjstat=FAKE_PJM)
        assert described(scheduler, [job], fake) == {} and fake.commands == []


def test_at_least_thirty_hostile_ids_are_tested() -> None:
    assert len(set(HOSTILE)) >= 30
    for job in ("700", "700.pbs", "7[3].pbs", "12_4", "12+1"):
        assert any(one.is_id(job) for one in SCHEDULERS.values())


def test_a_missing_or_failing_command_gives_no_answer() -> None:
    assert answered(["no-such-program-here"]) is None and answered(["false"]) is None
    assert answered(["echo", "$HOME"]) == "$HOME\n"


def test_the_scheduler_is_chosen_by_name_or_installed_commands() -> None:
    assert chosen("none") is None
    assert [chosen(name) for name in SCHEDULERS] == list(SCHEDULERS.values())
    assert chosen("auto") is None or shutil.which("squeue") or shutil.which("pjstat") or shutil.which("qstat")
