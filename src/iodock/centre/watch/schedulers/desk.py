"""Queries a scheduler and runs its commands, each with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iodock.centre.watch.schedulers.base import JobFacts, Scheduler, SchedulerError, Way, Words, words
from iodock.shared.bounded.commands import Answer, answer_of
from iodock.shared.bounded.limits import OUTPUT, Limit
from iodock.shared.errors import RequestError
from iodock.shared.response import ActionKind
from iodock.shared.text import visible

Run = Callable[[Sequence[str], Limit, float], Answer]


class SchedulerDesk:
    """Runs the commands of one scheduler, each after the words of PREFIX."""

    def __init__(
        self, scheduler: Scheduler, prefix: Words = (), limit_s: float = 20.0, run: Run = answer_of
    ) -> None:
        self.scheduler, self._prefix, self._limit_s, self._run = scheduler, prefix, limit_s, run

    def way(self, kind: ActionKind) -> Way:
        """Returns the commands of a kind of action. Raises RequestError if this scheduler does not support
        it."""
        if kind not in self.scheduler.ways:
            known = ", ".join(self.scheduler.ways)
            raise RequestError(
                f"{self.scheduler.name} has no {kind}", f"[response] action must be one of {known}"
            )
        return self.scheduler.ways[kind]

    def facts(self, job: str) -> JobFacts | None:
        """Returns information about a job, or None if the scheduler does not know it (any more). Raises
        JobIdRefused, SchedulerError."""
        self.scheduler.checked(job)
        said = [self._answer(command, job, asks=True) for command in self.scheduler.asked]
        if not said[0].strip():
            return None
        try:
            return self.scheduler.read(job, tuple(said))
        except ValueError as error:
            raise SchedulerError(
                f"{self.scheduler.name}: {error}", "check whether it is of another version"
            ) from error

    def do(self, kind: ActionKind, job: str) -> None:
        """Performs an action. Raises JobIdRefused, SchedulerError, RequestError."""
        self._each(self.way(kind).do, job)

    def undo(self, kind: ActionKind, job: str) -> None:
        """Reverses an action. Raises JobIdRefused, SchedulerError, RequestError."""
        self._each(self.way(kind).undo, job)

    def shown(self, kind: ActionKind, job: str) -> str:
        """Returns the commands of an action as one text that a person can type. It is empty if the id is
        invalid or the scheduler does not support the action."""
        way = self.scheduler.ways.get(kind)
        if way is None or not self.scheduler.is_id(job):
            return ""
        return "; ".join(" ".join(words(command, job)) for command in way.do)

    def _each(self, commands: tuple[Words, ...], job: str) -> None:
        self.scheduler.checked(job)
        for command in commands:
            self._answer(command, job, asks=False)

    def _answer(self, command: Words, job: str, asks: bool) -> str:
        given = [*self._prefix, *words(command, job)]
        answer = self._run(given, OUTPUT, self._limit_s)
        name = " ".join(command[:2])
        if answer.outcome != "answered":
            raise SchedulerError(f"{name}: {_WHY[answer.outcome]}", "see [response] command_s and prefix")
        if answer.status != 0:
            # Most schedulers report an error for a job that has finished, because they no longer know it.
            if asks and any(sign in answer.complained for sign in _UNKNOWN):
                return ""
            raise SchedulerError(
                f"{name}: {visible(answer.complained.strip())[:300]} (status {answer.status})"
            )
        return answer.said


_WHY = {
    "missing": "is not installed",
    "silent": "did not answer in time",
    "endless": ("wrote endless data"),
}
_UNKNOWN = ("Invalid job id", "Unknown Job Id", "Unknown job", "does not exist")
