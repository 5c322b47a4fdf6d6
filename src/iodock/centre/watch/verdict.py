"""The verdict on a server at one moment: its state, the evidence, and the jobs that may have caused it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["healthy", "busy", "overload", "stall", "failover", "degraded", "no-samples"]
"""Meaning of each: docs/explanation/server-states.md."""

UNWELL: tuple[State, ...] = ("overload", "stall", "failover", "degraded")
"""States that open an episode and send a notice. `busy` means a high load without trouble; `no-samples`
concerns the agent."""


@dataclass(frozen=True)
class Evidence:
    """One observation that indicates a state."""

    what: str
    """Key of the catalogue of observations, such as `handled`, `waiting`, `server-cpu`."""
    value: float | None
    """None: not read."""
    usual: float | None
    """Over the server's last hours; None: not known."""
    unit: str


@dataclass(frozen=True)
class Suspect:
    """A job, and its share of the server's requests just before and during the episode."""

    job: str
    """The scheduler's id, as the server or the agent reported it; not validated."""
    share: float
    """0 to 1, of the total of the relevant quantity."""
    confidence: float
    evidence: tuple[Evidence, ...]
    owner: str | None = None
    """None: the scheduler does not know. Then only operators are notified."""
    name: str | None = None
    nodes: int | None = None
    job_ids: int | None = None
    """Number of JobIDs with which the server counts the job; None: not known."""


@dataclass(frozen=True)
class Verdict:
    file_system: str
    server: str
    """Host of the server."""
    kind: Literal["metadata", "object", "client"]
    """`client`: judged from the clients' view only."""
    state: State
    since_ns: int
    at_ns: int
    """Both since the epoch."""
    confidence: float
    """0 to 1."""
    samples: int
    """Number of consecutive samples that agree."""
    evidence: tuple[Evidence, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    """Worst first; empty: no job stands out."""
    missed: int = 0
    """Samples that should have arrived since the last one and did not: the state is the previous one."""
