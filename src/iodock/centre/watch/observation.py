"""What is known of servers in one round: what each agent read, what others said meanwhile, and what jobs
asked for. Times in ns since the epoch. None: nobody read it. docs/explanation/server-states.md says why each
is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Kind = Literal["metadata", "object", "client"]
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Observation:
    """One interval of one server, by its own agent; of kind `client` by clients' agents."""

    host: str
    file_system: str
    kind: Kind
    begin_ns: int
    end_ns: int
    """Both by the agent's clock, which may be wrong."""
    handled: float | None = None
    """Requests, as what follows in this interval."""
    opens: float | None = None
    closes: float | None = None
    creates: float | None = None
    object_creates: float | None = None
    """On object targets: its own, or of a metadata server those of its file system."""
    moved_bytes: float | None = None
    waiting: float | None = None
    """Requests that waited, on average; of clients those that had no answer yet."""
    wait_s: float | None = None
    """How long those handled had waited; of clients how long an answer took."""
    operation_s: float | None = None
    """Mean time of one operation, once it was begun."""
    threads: float | None = None
    """Busy service threads, on average."""
    cpu: float | None = None
    """Share of all its processors, 0 to 1."""
    pressure: float | None = None
    """Share of the time in which some task waited for I/O."""
    load: float | None = None
    uptime_s: float | None = None
    evictions: int = 0
    """Clients that it gave up."""
    is_recovering: bool = False
    """A target on it waits for its clients."""
    answer_s: float | None = None
    """How long its service took to answer the agent beside it, or has taken until that gave up."""
    has_no_answer: bool = False
    """The agent gave up."""
    has_guests: bool = False
    """It serves targets whose home is another server."""

    @property
    def seconds(self) -> float:
        return max((self.end_ns - self.begin_ns) / SECOND, 1e-3)


@dataclass(frozen=True, slots=True)
class News:
    """What others said about one server in a round."""

    lost: int = 0
    """Connections to it that clients or other servers lost and have not got back."""
    is_away: bool = False
    """Its targets are served by another server."""
    faults: tuple[str, ...] = ()
    """Kinds of events that began and are not over: arrays, paths, links."""
    is_checked: bool = False
    """An array is being checked: a scrub, no fault."""
    probe_s: float | None = None
    """How long a probe's round took."""
    has_no_answer: bool = False
    """A probe failed or got no answer in time."""
    client_wait_s: float | None = None
    """How long clients waited for an answer, on average."""
    backlog: float | None = None
    """Requests that clients had no answer to, on average."""
    is_recovering: bool = False
    """As the server's own log says: a target on it waits for its clients."""
    evictions: int = 0
    """Clients that it gave up a moment ago, by its own log."""


NOTHING = News()


@dataclass(frozen=True, slots=True)
class Round:
    """All that came since the round before."""

    now_ns: int
    """By the collector's clock."""
    observations: tuple[Observation, ...]
    news: Mapping[str, News] = field(default_factory=dict)
    """By host."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one job asked one server for in a while."""

    job: str
    metadata: float = 0.0
    """Operations on metadata, opens and creates among them."""
    opens: float = 0.0
    creates: float = 0.0
    object_creates: float | None = None
    """Objects made for its files; None: no object server reports by job."""
    moved_bytes: float = 0.0
    requests: float = 0.0
    """Reads and writes."""
    node_bytes: float = 0.0
    """Read and written by its processes on any file system, where no server says what the job asked for."""


class Jobs(Protocol):
    """Where what jobs asked for is looked up."""

    def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
        """Between two moments by the agent's clock, a row for each job. WITH_OBJECTS: of a metadata server
        also the objects that were made for it on all object servers, which costs more."""
