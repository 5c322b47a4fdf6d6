"""What is said of a server at one moment: its state, the evidence, and the jobs that may have caused it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["healthy", "busy", "overload", "stall", "failover", "degraded", "no-samples"]
"""What each means: docs/explanation/server-states.md."""

UNWELL: tuple[State, ...] = ("overload", "stall", "failover", "degraded")
"""States that open an episode: somebody is told. `busy` is high and fine; `no-samples` is of the agent."""


@dataclass(frozen=True)
class Evidence:
    """One observation that speaks for a state."""

    what: str
    """Key of the catalogue of observations, as `handled`, `waiting`, `server-cpu`."""
    value: float | None
    """None: it was not read."""
    usual: float | None
    """Over the server's last hours, None: not known."""
    unit: str


@dataclass(frozen=True)
class Suspect:
    """A job, and how much of what the server was asked just before and during the episode came from it."""

    job: str
    """The scheduler's id, as the server or the agent reported it; not validated."""
    share: float
    """0 to 1, of the total of what the state is about."""
    confidence: float
    evidence: tuple[Evidence, ...]
    owner: str | None = None
    """None: the scheduler does not know. Then only operators are told."""
    name: str | None = None
    nodes: int | None = None
    job_ids: int | None = None
    """As so many JobIDs the server counts the job; None: not known."""


@dataclass(frozen=True)
class Verdict:
    file_system: str
    server: str
    """Host of the server."""
    kind: Literal["metadata", "object", "client"]
    """`client`: judged by what clients saw only."""
    state: State
    since_ns: int
    at_ns: int
    """Both since the epoch."""
    confidence: float
    """0 to 1."""
    samples: int
    """How many samples in a row say so."""
    evidence: tuple[Evidence, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    """Worst first; empty: nobody stands out."""
    missed: int = 0
    """Samples that should have come since the last one, and did not: the state is the one of before."""
