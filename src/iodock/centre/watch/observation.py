"""Defines observations of servers in one round: readings of each agent, reports from other machines, and
requests of jobs. Times are in ns since the epoch. A value is None if it was not read.
docs/explanation/server-states.md explains how each value is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Kind = Literal["metadata", "object", "client"]
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Observation:
    """The values of one server in one interval. The server's own agent read them or, for the kind `client`,
    the agents of its clients."""

    host: str
    file_system: str
    kind: Kind
    begin_ns: int
    end_ns: int
    """Begin and end are by the agent's clock, which may be wrong."""
    handled: float | None = None
    """Requests handled in this interval. The following counts are of this interval, too."""
    opens: float | None = None
    closes: float | None = None
    creates: float | None = None
    object_creates: float | None = None
    """Objects created on the server's own targets; for a metadata server, on all targets of its file
    system."""
    moved_bytes: float | None = None
    waiting: float | None = None
    """Mean number of waiting requests; for clients, of requests without an answer yet."""
    wait_s: float | None = None
    """Mean waiting time of the handled requests; for clients, the mean response time."""
    operation_s: float | None = None
    """Mean time of one operation, without the time that it waited before."""
    threads: float | None = None
    """Mean number of busy service threads."""
    cpu: float | None = None
    """Use of all processors of the server, from 0 to 1."""
    pressure: float | None = None
    """Share of the time in which at least one task waited for I/O."""
    load: float | None = None
    uptime_s: float | None = None
    evictions: int = 0
    """Number of clients that the server evicted."""
    is_recovering: bool = False
    """Whether a target on the server waits for its clients to reconnect."""
    answer_s: float | None = None
    """Response time of the service to the agent on the same machine, or the time until the agent gave up."""
    has_no_answer: bool = False
    """Whether the agent gave up waiting for an answer."""
    has_guests: bool = False
    """Whether the server serves targets whose home is another server."""

    @property
    def seconds(self) -> float:
        return max((self.end_ns - self.begin_ns) / SECOND, 1e-3)


@dataclass(frozen=True, slots=True)
class News:
    """Reports from other machines about one server in a round."""

    lost: int = 0
    """Number of clients and servers that lost the connection to this server and have not recovered it."""
    is_away: bool = False
    """Whether the server's targets are served by another server."""
    faults: tuple[str, ...] = ()
    """Kinds of events that began and are not over: arrays, paths, links."""
    is_checked: bool = False
    """Whether an array is being checked by a scrub, which is not a fault."""
    probe_s: float | None = None
    """Duration of a probe's round."""
    has_no_answer: bool = False
    """Whether a probe failed or got no answer in time."""
    client_wait_s: float | None = None
    """Mean response time for clients."""
    backlog: float | None = None
    """Mean number of clients' requests without an answer."""
    is_recovering: bool = False
    """Whether a target on the server waits for its clients to reconnect, according to the server's own
    log."""
    evictions: int = 0
    """Number of recently evicted clients, according to the server's own log."""


NOTHING = News()


@dataclass(frozen=True, slots=True)
class Round:
    """All data that arrived since the previous round."""

    now_ns: int
    """Time of the round by the collector's clock."""
    observations: tuple[Observation, ...]
    news: Mapping[str, News] = field(default_factory=dict)
    """Reports from other machines about each host."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests of one job to one server in a period."""

    job: str
    metadata: float = 0.0
    """Metadata operations, including opens and creates."""
    opens: float = 0.0
    creates: float = 0.0
    object_creates: float | None = None
    """Objects created for the job's files; None: no object server reports by job."""
    moved_bytes: float = 0.0
    requests: float = 0.0
    """Number of reads and writes."""
    node_bytes: float = 0.0
    """Bytes that the job's processes read and wrote on any file system. It is used if no server reports the
    job's requests."""


class Jobs(Protocol):
    """The interface that provides the requests of jobs to servers."""

    def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
        """Returns the requests of each job to the server HOST from BEGIN_NS to END_NS by the server's clock.
        If WITH_OBJECTS is true and HOST is a metadata server, the objects created on all object servers are
        included, which takes longer."""
