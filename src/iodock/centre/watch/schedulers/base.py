"""Interface of a scheduler: a strict format of job ids, a query for one job, and commands with their
reversals.

An adapter is data and one parser. Commands are lists of words, `{job}` is a word of its own, and no shell
interprets them."""

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
    """The scheduler did not respond, or refused."""


class JobIdRefused(IodockError):
    """The job id that a server reported is not valid for this scheduler. No command was run."""


@dataclass(frozen=True)
class JobFacts:
    """The scheduler's present information about a job."""

    job: str
    state: JobState
    owner: str | None
    """Login name."""
    mark: str | None
    """Changes when the job's state is changed; None: unknown."""
    changed_s: float | None = None
    """Time of entering this state, s since the epoch; None: the scheduler does not say."""


@dataclass(frozen=True)
class JobDescription:
    """Owner and other facts about a job. None: the scheduler does not say."""

    owner: str | None = None
    name: str | None = None
    """The name given by its owner: any text."""
    nodes: int | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    """None: it is running, or its end is not known."""
    job_ids: int | None = None
    """Number of JobIDs with which servers count it: with `%H` in jobid_name each node has one. No scheduler
    reports it."""


Ask = Callable[[Sequence[str]], str | None]
"""Runs a command and returns its output; None: it failed."""


@dataclass(frozen=True)
class Way:
    """Commands of one kind of action and its reversal."""

    do: tuple[Words, ...]
    undo: tuple[Words, ...]
    before: JobState
    """Required state of the job."""
    after: JobState
    """State of the job afterwards."""


@dataclass(frozen=True)
class Scheduler:
    name: str
    job_id: re.Pattern[str]
    """Format of a job id; the whole id must match."""
    asked: tuple[Words, ...]
    """Commands that print information about a job; `read` gets their outputs in this order."""
    read: Callable[[str, tuple[str, ...]], JobFacts | None]
    """Receives the job's id and the outputs; None: the scheduler does not know the job. Raises ValueError."""
    describe: Callable[[Sequence[str], Ask], Mapping[str, JobDescription]]
    """Describes jobs by id; unknown jobs are left out."""
    ways: Mapping[ActionKind, Way]
    was_tried: bool
    """Tried with the real scheduler; the others were written from manuals."""

    @property
    def program(self) -> str:
        """Programs that must be installed."""
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
    """Maps a scheduler's own word for a state."""
    return known.get(text, "other")
