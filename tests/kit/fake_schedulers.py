"""Simulated schedulers, written from their manuals. Each keeps a few jobs and answers iodock's commands in
its own format. No real PBS, Grid Engine, PJM or NQSV was used; tests/trials/whole_slurm_actions.py uses a
real Slurm."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from iodock.shared.bounded.commands import Answer
from iodock.shared.bounded.limits import Limit


@dataclass
class FakeJob:
    owner: str = "alice"
    state: str = "running"
    """waiting, held, running, suspended, ended."""
    name: str = "job"
    changes: int = 0
    changed_s: float = 0.0
    """s since the epoch."""

    def become(self, state: str, at_s: float) -> None:
        self.state, self.changed_s = state, at_s
        self.changes += 1


@dataclass
class FakeScheduler:
    """A scheduler with a few jobs. iodock calls its method `run` instead of starting commands. `clock_s` is
    the scheduler's own clock."""

    kind: str
    jobs: dict[str, FakeJob]
    clock_s: float = 0.0
    calls: list[list[str]] = field(default_factory=list)
    is_away: bool = False
    before: Callable[[list[str]], None] = lambda command: None
    """Called with each command before it takes effect."""
    after: Callable[[list[str]], None] = lambda command: None

    def run(self, command: Sequence[str], limit: Limit, limit_s: float) -> Answer:
        words = list(command)
        self.calls.append(words)
        if self.is_away:
            return Answer("silent")
        self.before(words)
        answer = _KINDS[self.kind](self, words)
        self.after(words)
        return answer

    @property
    def changing(self) -> list[list[str]]:
        """Returns the received commands that change a job."""
        asks = ("squeue", "qstat", "pjstat")
        return [one for one in self.calls if one[0] not in asks and one[:2] != ["scontrol", "show"]]

    def change(self, job: str, was: tuple[str, ...], state: str) -> Answer:
        found = self.jobs.get(job)
        if found is None:
            return Answer("answered", 1, complained="Invalid job id specified")
        if found.state not in was:
            return Answer("answered", 1, complained="Requested operation is not possible in this state")
        found.become(state, self.clock_s)
        return Answer("answered", 0)


def _said(text: str) -> Answer:
    return Answer("answered", 0, text.encode())


_CHANGES = {
    "hold": (("waiting",), "held"), "release": (("held",), "waiting"), "suspend": (("running",), "suspended"),
    "resume": (("suspended",), "running"), "requeuehold": (("running",), "held"),
}  # fmt: skip


def _slurm(site: FakeScheduler, words: list[str]) -> Answer:
    job = words[-1]
    if words[0] == "scontrol" and words[1] in _CHANGES:
        return site.change(job, *_CHANGES[words[1]])
    found = site.jobs.get(job)
    if found is None:
        return Answer("answered", 1, complained="slurm_load_jobs error: Invalid job id specified")
    state = {"waiting": "PENDING", "held": "PENDING", "ended": "COMPLETED"}.get(
        found.state, found.state.upper()
    )
    if words[0] == "squeue":
        return _said(f"{job} {found.owner} {state} {0 if found.state == 'held' else 4294901757}\n")
    since = "None"
    if found.changed_s:
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(found.changed_s))
    return _said(
        f"JobId={job} JobName={found.name}\n   UserId={found.owner}(1000) Restarts={found.changes}\n"
        f"   SuspendTime={since} SecsPreSuspend=0\n"
    )


def _pbs(site: FakeScheduler, words: list[str]) -> Answer:
    job, found = words[-1], site.jobs.get(words[-1])
    if words[0] == "qstat":
        if found is None:
            return Answer("answered", 153, complained=f"qstat: Unknown Job Id {job}")
        letter = {"waiting": "Q", "held": "H", "running": "R", "suspended": "S", "ended": "F"}[found.state]
        facts = {
            "Job_Name": found.name, "Job_Owner": f"{found.owner}@login", "job_state": letter,
            "mtime": f"{found.changes}", "run_count": 1,
        }  # fmt: skip
        return _said(json.dumps({"Jobs": {job if "." in job else f"{job}.server": facts}}))
    kind = {"qhold": "hold", "qrls": "release", "qrerun": "requeuehold"}.get(words[0]) or words[2]
    return _of_q(site, kind, job)


def _of_q(site: FakeScheduler, kind: str, job: str) -> Answer:
    """Changes a job as the q commands do: qhold only marks a running job; a later qrerun ends the job and
    holds it."""
    if kind == "hold" and job in site.jobs and site.jobs[job].state == "running":
        return Answer("answered", 0)
    return site.change(job, *_CHANGES[kind])


def _grid_engine(site: FakeScheduler, words: list[str]) -> Answer:
    job = words[-1]
    if words[0] == "qstat":
        letters = {"waiting": "qw", "held": "hqw", "running": "r", "suspended": "s"}
        rows = [
            f"<job_list><JB_job_number>{key.partition('.')[0]}</JB_job_number>"
            f"<JB_name>{escape(one.name)}</JB_name><JB_owner>{one.owner}</JB_owner>"
            f"<state>{letters[one.state]}</state><JAT_start_time>{one.changes}</JAT_start_time>"
            f"<tasks>{key.partition('.')[2]}</tasks></job_list>"
            for key, one in site.jobs.items() if one.state != "ended"
        ]  # fmt: skip
        return _said(f"<?xml version='1.0'?><job_info>{''.join(rows)}</job_info>")
    kinds = {"qhold": "hold", "qrls": "release", "-sj": "suspend", "-usj": "resume", "-rj": "requeuehold"}
    return _of_q(site, kinds.get(words[0]) or kinds[words[1]], job)


def _pjm(site: FakeScheduler, words: list[str]) -> Answer:
    job, found = words[-1], site.jobs.get(words[-1])
    if words[0] == "pjstat":
        lines = ["H,JOB_ID,ST,USER,START_DATE"]
        if found:
            word = {"waiting": "QUE", "held": "HLD", "running": "RUN", "ended": "EXT"}[found.state]
            lines.append(f",{job},{word},{found.owner},{found.changes}")
        return _said("\n".join(lines) + "\n")
    return (
        site.change(job, ("waiting", "running"), "held")
        if words[0] == "pjhold"
        else site.change(job, ("held",), "waiting")
    )


def _nqsv(site: FakeScheduler, words: list[str]) -> Answer:
    job, found = words[-1], site.jobs.get(words[-1])
    if words[0] == "qstat":
        if found is None:
            return Answer("answered", 1, complained=f"Request {job} does not exist.")
        word = {"waiting": "QUEUED", "ended": "EXITED"}.get(found.state, found.state.upper())
        whole = job if "." in job else f"{job}.bsv1"
        return _said(
            f"Request ID: {whole}\n    Request Name = {found.name}\n    User Name = {found.owner}\n"
            f"    Current State = {word}\n    State Transition Time = {found.changes}\n"
        )
    kinds = {
        "qhold": "hold",
        "qrls": "release",
        "qspnd": "suspend",
        "qrsm": "resume",
        "qrerun": "requeuehold",
    }
    return _of_q(site, kinds[words[0]], job)


_KINDS: dict[str, Callable[[FakeScheduler, list[str]], Answer]] = {
    "slurm": _slurm, "pbs": _pbs, "grid-engine": _grid_engine, "pjm": _pjm, "nqsv": _nqsv,
}  # fmt: skip
