"""Generates users and their jobs with ids, names and nodes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, count
from random import Random

from iodock.simulation.applications import ANALYSIS, SMALL_WRITES
from iodock.simulation.counters import SECOND_NS
from iodock.simulation.jobs import Application, Job
from iodock.simulation.scenarios import Scenario

FIRST_JOB = 11_317_854
FIRST_USER_ID = 17_001
USERS = 40
NODES = 16_384
LOGIN_NODE = "login01"


class Population:
    """Generates jobs. The same seed gives the same jobs in the same order."""

    def __init__(self, scenario: Scenario, random: Random) -> None:
        self._random = random
        self.turn(scenario)
        self._numbers = count(FIRST_JOB)
        self._next_node = 0

    def turn(self, scenario: Scenario) -> None:
        """Takes further jobs from this scenario's mix."""
        self._applications = [application for application, _ in scenario.mix]
        self._weights = list(accumulate(weight for _, weight in scenario.mix))

    def application(self) -> Application:
        return self._random.choices(self._applications, cum_weights=self._weights)[0]

    def seconds(self, application: Application) -> float:
        """Returns the duration of a job. Short ones are more frequent."""
        low, high = application.seconds
        return float(low * (high / low) ** self._random.random())

    def job(self, application: Application, now_ns: int, seconds: float | None) -> Job:
        length = self.seconds(application) if seconds is None else seconds
        user = int(USERS * self._random.random() ** 2)
        return Job(
            number=next(self._numbers),
            user=f"user{user + 1:02d}",
            uid=FIRST_USER_ID + user,
            name=f"{application.name}-{self._random.randint(1, 3)}",
            application=application.name,
            nodes=self._nodes(self._random.randint(*application.nodes)),
            start_ns=now_ns,
            end_ns=now_ns + int(length * SECOND_NS),
        )

    def outside_of_jobs(self, now_ns: int) -> Iterator[tuple[Job, Application]]:
        """Yields activity on a login node."""
        for name, user, application in (("rsync", 3, ANALYSIS), ("python3", 7, SMALL_WRITES)):
            uid = FIRST_USER_ID + user
            job = Job(None, f"user{user + 1:02d}", uid, name, application.name, (LOGIN_NODE,), now_ns, None)
            yield job, application

    def _nodes(self, number: int) -> tuple[str, ...]:
        """Returns adjacent nodes in a machine of racks with 96 nodes. The first node is `r01c01`."""
        first, self._next_node = self._next_node, (self._next_node + number) % NODES
        return tuple(_node((first + at) % NODES) for at in range(number))


def _node(number: int) -> str:
    return f"r{number // 96 + 1:02d}c{number % 96 + 1:02d}"
