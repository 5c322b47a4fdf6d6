"""Defines the interface of a scheduler: the format of job ids, a query about one job, and commands that can
be reversed.

An adapter consists of data and parsers. A command is a list of words, of which the word `{job}` is replaced
by the job's id. No shell interprets the command."""

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
    """Says that the scheduler did not respond, or refused the command."""


class JobIdRefused(IodockError):
    """Says that a job id that a server reported is not valid for this scheduler. No command was run."""


@dataclass(frozen=True)
class JobFacts:
    """Information from the scheduler about a job at present."""

    job: str
    state: JobState
    owner: str | None
    """Login name of the job's owner."""
    mark: str | None
    """Changes whenever the job's state changes; None: unknown."""
    changed_s: float | None = None
    """Time at which the job entered this state, s since the epoch; None: the scheduler does not say."""


@dataclass(frozen=True)
class JobDescription:
    """The owner of a job and other information from the scheduler. A value is None if the scheduler does not
    report it."""

    owner: str | None = None
    name: str | None = None
    """The name that the owner gave to the job. It may be any text."""
    nodes: int | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    """End of the job, ns since the epoch; None: the job is running, or its end is not known."""
    job_ids: int | None = None
    """Number of JobIDs with which servers count the job. With `%H` in jobid_name each node has its own. No
    scheduler reports this number."""


Ask = Callable[[Sequence[str]], str | None]
"""Runs a command and returns its output; None: the command failed."""


@dataclass(frozen=True)
class Way:
    """The commands of one kind of action, and the commands that reverse it."""

    do: tuple[Words, ...]
    undo: tuple[Words, ...]
    before: JobState
    """State that the job must have before the action."""
    after: JobState
    """State of the job after the action."""


@dataclass(frozen=True)
class Scheduler:
    name: str
    job_id: re.Pattern[str]
    """Format of a job id; the whole id must match."""
    asked: tuple[Words, ...]
    """Commands that print information about a job; `read` gets their outputs in this order."""
    read: Callable[[str, tuple[str, ...]], JobFacts | None]
    """Parses the outputs for the job with this id; None: the scheduler does not know the job. Raises
    ValueError."""
    describe: Callable[[Sequence[str], Ask], Mapping[str, JobDescription]]
    """Describes jobs by id; unknown jobs are left out."""
    ways: Mapping[ActionKind, Way]
    was_tried: bool
    """Whether the adapter was tried with the real scheduler. The others were written from manuals."""

    @property
    def program(self) -> str:
        """Returns the name of the scheduler's program that must be installed."""
        return self.asked[0][0]

    def checked(self, job: str) -> str:
        """Returns JOB if it is a valid id of a job. Otherwise raises JobIdRefused."""
        if not self.job_id.fullmatch(job):
            raise JobIdRefused(
                f"{job[:60]!r} is not an id of a job of {self.name}", "no command was executed"
            )
        return job

    def is_id(self, job: str) -> bool:
        return bool(self.job_id.fullmatch(job))


def words(command: Words, job: str) -> list[str]:
    """Returns the words of a command with the job's id inserted. The caller must have checked the id."""
    return [job if word == JOB else word for word in command]


def one_state(known: Mapping[str, JobState], text: str) -> JobState:
    """Translates a scheduler's word for a state to one of JobState. Unknown words become `other`."""
    return known.get(text, "other")
