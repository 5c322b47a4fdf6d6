"""Defines the verdict on a server at one time: its state, the evidence, and the jobs that may have caused the
state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["healthy", "busy", "overload", "stall", "failover", "degraded", "no-samples"]
"""docs/explanation/server-states.md explains each state."""

UNWELL: tuple[State, ...] = ("overload", "stall", "failover", "degraded")
"""States that open an episode and send a notice. `busy` means a high load without trouble; `no-samples`
concerns the agent."""


@dataclass(frozen=True)
class Evidence:
    """One observation that indicates a state."""

    what: str
    """Key of the catalogue of observations, such as `handled`, `waiting`, `server-cpu`."""
    value: float | None
    """The observed value; None: not read."""
    usual: float | None
    """The median over the server's last hours; None: not known."""
    unit: str


@dataclass(frozen=True)
class Suspect:
    """A job, and its share of the server's requests just before and during the episode."""

    job: str
    """The scheduler's id, as the server or the agent reported it; not validated."""
    share: float
    """Share of the total of the quantity that shows the trouble, from 0 to 1."""
    confidence: float
    evidence: tuple[Evidence, ...]
    owner: str | None = None
    """Login name of the owner; None: the scheduler does not know it. Then only operators are notified."""
    name: str | None = None
    nodes: int | None = None
    job_ids: int | None = None
    """Number of JobIDs with which the server counts the job; None: not known."""


@dataclass(frozen=True)
class Verdict:
    file_system: str
    server: str
    """Name of the server's host."""
    kind: Literal["metadata", "object", "client"]
    """Kind of server; `client`: the verdict is based on the clients' view only."""
    state: State
    since_ns: int
    at_ns: int
    """Begin of the state and time of the verdict, ns since the epoch."""
    confidence: float
    """How certain the verdict is, from 0 to 1."""
    samples: int
    """Number of consecutive samples that support this state."""
    evidence: tuple[Evidence, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    """Worst first; empty: no job stands out."""
    missed: int = 0
    """Number of samples that should have arrived since the last one but did not. The state is then the
    previous one."""
