"""Executes rounds. A child process executes the operations. If it does not answer in time, it is left behind,
and another child continues the round.

At most one child per operation is left behind. While it waits for its call, later rounds do not start this
operation, and record that it is still waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from iodock.file_system.probe.operations import (
    NEEDS,
    OPEN_FILE,
    PREFIX,
    ROUND,
    CommandSteps,
    Operation,
    Steps,
)
from iodock.file_system.probe.records import Kind, Late, Outcome, Round
from iodock.file_system.probe.worker import Reply, Worker

_ENDING_SECONDS = 1.0
_RETURNING_SECONDS = 2.0


class Stopped(Exception):
    """Raised if the run was stopped while a round waited for an answer."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Target, time limit and size of a run."""

    run: str
    """Unique id of the run, which is a part of the names of folders."""
    target: str
    is_command: bool
    limit_s: float
    size_bytes: int

    @property
    def operations(self) -> tuple[Operation, ...]:
        return (Operation.COMMAND,) if self.is_command else ROUND

    def folder(self, number: int) -> str:
        """Returns the name of the folder that a round creates."""
        return f"{PREFIX}{self.run}-{number}"

    def steps(self, number: int, made: bool = False) -> Steps:
        """Returns the operations of a round, for a new child. MADE states that the folder of the round
        already exists."""
        if self.is_command:
            return CommandSteps(self.target)
        return Steps(self.target, self.folder(number), self.size_bytes, made)


@dataclass(slots=True)
class _Stuck:
    """A child process that did not answer within the time limit, or did not end."""

    worker: Worker
    since_ns: int
    number: int
    is_answered: bool = False


class Prober:
    """Executes the rounds of PLAN. WAKE is a descriptor that becomes readable when the run is stopped. MAKE
    is the function that starts a child process."""

    def __init__(self, plan: Plan, wake: int | None = None, make: Callable[[Steps], Worker] = Worker) -> None:
        self.plan = plan
        self.wake = wake
        self.make = make
        self.stuck: dict[Operation, _Stuck] = {}
        self.ending: list[_Stuck] = []
        """Children that were told to end. At most one of them has not ended."""
        self.left: set[int] = set()
        """Rounds that may have left files in the folder."""

    def round(self, number: int) -> Round:
        """Executes one round. Raises Stopped if the run is stopped while the round waits for an answer."""
        start = time.time_ns()
        under_way = _Round(self, number)
        try:
            for operation in self.plan.operations:
                under_way.outcomes[operation] = under_way.outcome(operation)
        finally:
            under_way.close()
        return Round(start, self.plan.run, number, under_way.outcomes, under_way.found)

    def late(self) -> Iterator[Late]:
        """Yields each answer that came after the time limit once. Children that have ended are reaped."""
        for operation, one in list(self.stuck.items()):
            if not one.is_answered and (reply := one.worker.reply(0.0)) is not None:
                one.is_answered = True
                yield Late(reply.start_ns, self.plan.run, operation, reply.duration_ns, reply.error)
            if one.worker.has_ended():
                self.left.discard(one.number)
                one.worker.channel.close()
                del self.stuck[operation]
        self.ending = [one for one in self.ending if not self._has_ended(one)]

    def _has_ended(self, one: _Stuck) -> bool:
        if ended := one.worker.has_ended():
            self.left.discard(one.number)
        return ended

    def children(self) -> int:
        """Returns the number of child processes that were left behind and still exist."""
        return len(self.stuck) + len(self.ending)

    def end(self) -> tuple[int, ...]:
        """Kills the children that were left behind and removes their files. Returns the numbers of rounds
        whose files may still exist."""
        rest = [*self.stuck.values(), *self.ending]
        until = time.monotonic() + _ENDING_SECONDS
        for one in rest:
            one.worker.kill()
        gone = [one for one in rest if one.worker.has_ended(until - time.monotonic())]
        left = self.left | {one.number for one in rest if one not in gone}
        if self.plan.is_command:
            return ()
        return tuple(sorted(number for number in left if not self.clean(number)))

    def clean(self, number: int) -> bool:
        """Removes the files of a round in a child process. Returns False if this takes more than two
        seconds."""
        worker = self.make(self.plan.steps(number, made=True))
        worker.give_up()
        done = worker.has_ended(_RETURNING_SECONDS)
        if not done:
            worker.kill()
        worker.channel.close()
        return done


class _Round:
    """A round in progress. If its child does not answer, another child executes the following operations."""

    def __init__(self, prober: Prober, number: int) -> None:
        self.prober = prober
        self.number = number
        self.worker: Worker | None = None
        self.is_first = True
        self.outcomes: dict[Operation, Outcome] = {}
        self.found: dict[str, int] = {}

    def outcome(self, operation: Operation) -> Outcome:
        """Executes an operation. If the operation can't be started, the outcome states the reason."""
        needed = NEEDS.get(operation)
        if needed is not None and self.outcomes[needed].kind is not Kind.ANSWERED:
            return Outcome(Kind.NOT_TRIED, None, needed.value)
        if operation in OPEN_FILE and not self.is_first:
            return Outcome(Kind.NOT_TRIED, None, Operation.CREATE.value)
        if earlier := self._earlier(operation):
            return Outcome(Kind.WAITING, time.time_ns() - earlier.since_ns)
        return self._asked(operation)

    def _earlier(self, operation: Operation) -> _Stuck | None:
        # No folder is created while the child of an earlier round is still removing its files. At most one
        # child is then waiting to end.
        if operation is Operation.MKDIR and self.prober.ending:
            return self.prober.ending[0]
        return self.prober.stuck.get(operation)

    def _asked(self, operation: Operation) -> Outcome:
        if self.worker is None:
            made = self._is_made()
            self.worker = self.prober.make(self.prober.plan.steps(self.number, made))
        limit, start = self.prober.plan.limit_s, time.time_ns()
        self.worker.ask(operation)
        if operation is Operation.MKDIR:
            self.prober.left.add(self.number)
        before = time.monotonic()
        reply = self.worker.reply(limit, self.prober.wake)
        if reply is None:
            self._give_up(operation, start)
            if time.monotonic() - before < limit:
                raise Stopped
            return Outcome(Kind.NO_ANSWER, int(limit * 1e9))
        return self._answered(reply)

    def _is_made(self) -> bool:
        mkdir = self.outcomes.get(Operation.MKDIR)
        return mkdir is not None and mkdir.kind is Kind.ANSWERED

    def _answered(self, reply: Reply) -> Outcome:
        self.found.update(reply.found)
        if reply.error is None:
            return Outcome(Kind.ANSWERED, reply.duration_ns)
        return Outcome(Kind.FAILED, reply.duration_ns, reply.error)

    def _give_up(self, operation: Operation, start_ns: int) -> None:
        assert self.worker is not None
        self.worker.give_up()
        self.prober.stuck[operation] = _Stuck(self.worker, start_ns, self.number)
        self.worker, self.is_first = None, False

    def close(self) -> None:
        """Tells the child to end. It ends at once, unless it still has to remove files and a call for this
        hangs."""
        if self.worker is None:
            return
        self.worker.give_up()
        self.worker.channel.close()
        if not self.worker.has_ended(_ENDING_SECONDS):
            self.prober.ending.append(_Stuck(self.worker, time.time_ns(), self.number))
        elif not any(one.number == self.number for one in self.prober.stuck.values()):
            self.prober.left.discard(self.number)
