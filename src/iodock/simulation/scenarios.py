"""Declares the scenarios of the simulated centre, each with a sentence that describes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from iodock.shared.errors import RequestError
from iodock.simulation.applications import PAUSES, SHARED_FOLDER, SLEEPER, TINY, USUAL, VISITOR, WIDE_STRIPES
from iodock.simulation.jobs import Application

Release = Literal["2.5", "2.12", "2.15"]
RELEASES: tuple[Release, ...] = ("2.5", "2.12", "2.15")


@dataclass(frozen=True)
class Condition:
    """Condition of a server. Amounts are those per request while it lasts."""

    name: str
    speed: float
    """Share of the requests that are answered; 0: the server is down."""
    wait_us: int
    """Time that a request waits before it is handled."""
    queue_depth: int
    """Constant number of waiting requests."""
    active_threads: int
    cpu_share: float
    io_pressure: float
    """Share of the time in which at least one task waits for I/O."""


HEALTHY = Condition("healthy", 1.0, 55, 1, 2, 0.06, 0.02)
# The metadata server of the K computer had 24 service threads.
OVERLOADED = Condition("overloaded", 1.0, 290_000, 7_900, 24, 0.96, 0.35)
STALLED = Condition("stalled", 0.001, 240_000_000, 12_000, 24, 0.01, 0.99)
DOWN = Condition("down", 0.0, 0, 0, 0, 0.0, 0.0)


@dataclass(frozen=True)
class Spell:
    """A time during which server number I is in a condition. A reboot or a failover resets its counters;
    during a failover another server has the targets."""

    kind: Literal["condition", "reboot", "failover"]
    at_s: float
    seconds: float
    server: int = 0
    condition: Condition = DOWN


@dataclass(frozen=True)
class Special:
    """The special job of the scenario."""

    application: Application
    at_s: float


@dataclass(frozen=True)
class Scenario:
    name: str
    sentence: str
    jobs: int = 40
    """Number of jobs that run at the same time."""
    mix: tuple[tuple[Application, float], ...] = USUAL
    specials: tuple[Special, ...] = ()
    spells: tuple[Spell, ...] = ()
    servers: int = 3
    """Number of servers, the first of which is the metadata server."""
    targets_per_server: int = 2
    release: Release = "2.15"
    jobid_name: str = "%j"
    cleanup_s: int = 600


MINUTE, HOUR = 60.0, 3600.0
SCENARIOS = (
    Scenario(
        "healthy",
        "An ordinary day: checkpoints, small files, training, analyses; every server answers at once",
        jobid_name="%j:%u:%H",
    ),
    Scenario(
        "idle",
        "Jobs compute and hardly touch the file system; their entries stay as they are",
        jobs=12,
        mix=((SLEEPER, 1.0),),
    ),
    Scenario(
        "overload",
        "From minute 5 on, 8,000 processes of 1,008 nodes open and close files in one shared directory: "
        "the metadata server is busy, its operations stay very high and steady, thousands of requests wait",
        specials=(Special(SHARED_FOLDER, 5 * MINUTE),),
        spells=(Spell("condition", 5 * MINUTE, 23 * HOUR, condition=OVERLOADED),),
    ),
    Scenario(
        "stall",
        "From minute 8 to 26 a job opens 84,000 files with 12 stripes each; from minute 10 to 23 the "
        "metadata server's operations collapse while 12,000 requests wait and its CPU is idle",
        specials=(Special(WIDE_STRIPES, 8 * MINUTE),),
        spells=(Spell("condition", 10 * MINUTE, 13 * MINUTE, condition=STALLED),),
        servers=7,
    ),
    Scenario(
        "failover",
        "At minute 10 an object server dies; 45 s later its targets are on the next server with empty "
        "counters, and 20 minutes later they are back home, empty again",
        spells=(Spell("failover", 10 * MINUTE, 20 * MINUTE, server=1),),
    ),
    Scenario(
        "reboot",
        "At minute 10 the metadata server reboots: nothing is answered for 4 minutes, then all its counters "
        "begin at zero",
        spells=(Spell("reboot", 10 * MINUTE, 4 * MINUTE),),
    ),
    Scenario(
        "cleanup",
        "Jobs pause for longer than the cleanup interval and come back: their entries are swept, looked for "
        "every half interval when a new id appears, and begin again at zero",
        jobs=30,
        mix=((PAUSES, 2.0), (VISITOR, 1.0)),
    ),
    Scenario(
        "many-jobs",
        "50,000 tasks of job arrays at once, each with an entry of its own",
        jobs=50_000,
        mix=((TINY, 1.0),),
        cleanup_s=0,
    ),
)
"""All scenarios, in the order in which they are listed."""


def named(name: str) -> Scenario:
    """Returns the scenario with this name. Raises RequestError."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    known = ", ".join(scenario.name for scenario in SCENARIOS)
    raise RequestError(f"there is no scenario {name!r}", f"one of {known}")


def in_release(scenario: Scenario, release: str) -> Scenario:
    """Returns the same scenario with servers of another Lustre release. Raises RequestError."""
    for known in RELEASES:
        if known == release:
            return replace(scenario, release=known)
    raise RequestError(f"there is no release {release!r} of Lustre here", f"one of {', '.join(RELEASES)}")
