"""Observations of servers in one round: readings of each agent, reports from others, and requests of jobs.
Times in ns since the epoch. None: not read. docs/explanation/server-states.md explains the use of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Kind = Literal["metadata", "object", "client"]
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Observation:
    """One interval of one server, from its own agent; kind `client`: from clients' agents."""

    host: str
    file_system: str
    kind: Kind
    begin_ns: int
    end_ns: int
    """Both by the agent's clock, which may be wrong."""
    handled: float | None = None
    """Requests in this interval, as are the following fields."""
    opens: float | None = None
    closes: float | None = None
    creates: float | None = None
    object_creates: float | None = None
    """Objects created on its own targets; for a metadata server on those of its file system."""
    moved_bytes: float | None = None
    waiting: float | None = None
    """Mean number of waiting requests; for clients those without an answer yet."""
    wait_s: float | None = None
    """Waiting time of the handled requests; for clients the response time."""
    operation_s: float | None = None
    """Mean time of one operation after it began."""
    threads: float | None = None
    """Mean number of busy service threads."""
    cpu: float | None = None
    """Share of all its processors, 0 to 1."""
    pressure: float | None = None
    """Share of the time in which at least one task waited for I/O."""
    load: float | None = None
    uptime_s: float | None = None
    evictions: int = 0
    """Clients that it evicted."""
    is_recovering: bool = False
    """A target on it waits for its clients to reconnect."""
    answer_s: float | None = None
    """Response time of its service to the agent on the same machine, or time until that gave up."""
    has_no_answer: bool = False
    """The agent gave up waiting."""
    has_guests: bool = False
    """Whether the server serves targets whose home is another server."""

    @property
    def seconds(self) -> float:
        return max((self.end_ns - self.begin_ns) / SECOND, 1e-3)


@dataclass(frozen=True, slots=True)
class News:
    """Reports from others about one server in a round."""

    lost: int = 0
    """Connections to it that clients or other servers lost and have not recovered."""
    is_away: bool = False
    """Whether the server's targets are served by another server."""
    faults: tuple[str, ...] = ()
    """Kinds of events that began and are not over: arrays, paths, links."""
    is_checked: bool = False
    """An array is being checked: a scrub, not a fault."""
    probe_s: float | None = None
    """Duration of a probe's round."""
    has_no_answer: bool = False
    """A probe failed or got no answer in time."""
    client_wait_s: float | None = None
    """Mean response time for clients."""
    backlog: float | None = None
    """Mean number of clients' requests without an answer."""
    is_recovering: bool = False
    """From the server's own log: a target on it waits for its clients to reconnect."""
    evictions: int = 0
    """Recently evicted clients, from its own log."""


NOTHING = News()


@dataclass(frozen=True, slots=True)
class Round:
    """All data since the previous round."""

    now_ns: int
    """By the collector's clock."""
    observations: tuple[Observation, ...]
    news: Mapping[str, News] = field(default_factory=dict)
    """By host."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests of one job to one server in a period."""

    job: str
    metadata: float = 0.0
    """Metadata operations, including opens and creates."""
    opens: float = 0.0
    creates: float = 0.0
    object_creates: float | None = None
    """Objects created for its files; None: no object server reports by job."""
    moved_bytes: float = 0.0
    requests: float = 0.0
    """Reads and writes."""
    node_bytes: float = 0.0
    """Bytes read and written by its processes on any file system, if no server reports the job's requests."""


class Jobs(Protocol):
    """Source of the requests of jobs."""

    def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
        """Between two moments by the agent's clock, a row for each job. WITH_OBJECTS: for a metadata server
        also the objects created for it on all object servers, which costs more."""
