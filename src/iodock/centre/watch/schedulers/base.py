"""What a scheduler is to us: a strict form of job ids, a question about one job, and commands with their
undoing.

An adapter is data and one parser. Commands are lists of words, `{job}` is a word of its own, and no shell
reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from iodock.shared.errors import IodockError
from iodock.shared.response import ActionKind

JobState = Literal["waiting", "held", "running", "suspended", "ended", "other"]
Words = tuple[str, ...]
JOB = "{job}"


class SchedulerError(IodockError):
    """The scheduler did not answer, or refused."""


class JobIdRefused(IodockError):
    """What a server reported as a job's id is none of this scheduler's. No command was run."""


@dataclass(frozen=True)
class JobFacts:
    """What the scheduler says of a job now."""

    job: str
    state: JobState
    owner: str | None
    """Login name."""
    mark: str | None
    """Changes when somebody changes the job's state; None: unknown."""
    changed_s: float | None = None
    """When it came into this state, s since the epoch; None: the scheduler does not say."""


@dataclass(frozen=True)
class JobDescription:
    """Whose job it is, and what it is. None: the scheduler does not say."""

    owner: str | None = None
    name: str | None = None
    """As its owner calls it: any text."""
    nodes: int | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    """None: it runs, or nobody knows."""
    job_ids: int | None = None
    """As so many JobIDs servers count it: with `%H` in jobid_name each node has one. No scheduler says it."""


Ask = Callable[[Sequence[str]], str | None]
"""Runs a command and gives what it prints; None: it failed."""


@dataclass(frozen=True)
class Way:
    """How one kind of action is done and undone."""

    do: tuple[Words, ...]
    undo: tuple[Words, ...]
    before: JobState
    """The state that a job must be in."""
    after: JobState
    """The state that it is in then."""


@dataclass(frozen=True)
class Scheduler:
    name: str
    job_id: re.Pattern[str]
    """Of one job; all of the id must match."""
    asked: tuple[Words, ...]
    """Commands that print facts of a job; `read` gets their outputs in this order."""
    read: Callable[[str, tuple[str, ...]], JobFacts | None]
    """Of the job's id and the outputs; None: the scheduler does not know the job. Raises ValueError."""
    describe: Callable[[Sequence[str], Ask], Mapping[str, JobDescription]]
    """Of these ids, which are ids of its jobs; of jobs that it does not know, nothing."""
    ways: Mapping[ActionKind, Way]
    was_tried: bool
    """On a real one; the others were written from manuals."""

    @property
    def program(self) -> str:
        """Without which it is not there."""
        return self.asked[0][0]

    def checked(self, job: str) -> str:
        """The id. Raises JobIdRefused."""
        if not self.job_id.fullmatch(job):
            raise JobIdRefused(f"{job[:60]!r} is not an id of a job of {self.name}", "no command was run")
        return job

    def is_id(self, job: str) -> bool:
        return bool(self.job_id.fullmatch(job))


def words(command: Words, job: str) -> list[str]:
    """The command for a job. The caller has checked the id."""
    return [job if word == JOB else word for word in command]


def one_state(known: Mapping[str, JobState], text: str) -> JobState:
    """Of a scheduler's own word for a state."""
    return known.get(text, "other")
