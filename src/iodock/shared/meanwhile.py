"""What a site's monitor knows about the time in which a program ran, as plain data. The part for programs
queries it, the part for centres answers, and neither imports the other. Times are in ns since the epoch by
the recording's clock. None is a value that was not read. docs/decisions/0038 explains why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

ServerState = Literal[
    "healthy", "busy", "overload", "stall", "failover", "degraded", "no-usual", "no-samples"
]
"""States as in docs/explanation/server-states.md. `no-usual`: no trouble was seen, but too few samples from
before the run show what is usual."""
TROUBLE: tuple[ServerState, ...] = ("stall", "overload", "failover", "degraded")
"""States of trouble, the worst first."""


@dataclass(frozen=True, slots=True)
class MountedAs:
    """A file system that the recorded program could use."""

    mount_point: str
    fs_type: str | None
    source: str | None
    """The file system's device or server, as the kernel writes it: `nas:/export/home`,
    `10.0.0.1@tcp:/work`."""
    monitored_as: str | None = None
    """The file system's name in the monitor, if the site's settings give one."""


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """A counter of the kernel, as a recording sampled it."""

    source: str
    target: str
    metric: str
    points: tuple[tuple[int, float], ...]
    """Time and value of each sample, in order."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """Time and place of a program's run."""

    hosts: tuple[str, ...]
    """Hosts of the run. The host whose clock gives the times comes first; empty: not known."""
    begin_ns: int
    end_ns: int
    mounts: tuple[MountedAs, ...] = ()
    """File systems that the program used; empty: the recording does not say on which file system its files
    are."""
    counters: tuple[CounterSeries, ...] = ()
    """Counters that were sampled on the first host."""
    job: str | None = None


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Difference between the clocks. It is positive if the monitor's clock is ahead of the recording's."""

    offset_ns: int
    within_ns: int
    """Uncertainty of the difference."""
    is_measured: bool
    """Whether the difference was measured; False: the settings state that the clocks agree."""
    host: str | None = None
    """The host whose counters were compared."""


@dataclass(frozen=True, slots=True)
class ServerMoment:
    """The state of one server around one call."""

    file_system: str
    server: str
    kind: Literal["metadata", "object", "client"]
    state: ServerState
    """State of the server. `no-samples`: no agent read the server at that time."""
    is_brief: bool = False
    """Whether only one sample shows this state, which is too few to be certain."""
    begin_ns: int | None = None
    end_ns: int | None = None
    """Time of the samples that gave the numbers."""
    handled_per_s: float | None = None
    usual_handled_per_s: float | None = None
    waiting: float | None = None
    wait_s: float | None = None
    cpu_share: float | None = None


@dataclass(frozen=True, slots=True)
class ServerStretch:
    """A period in which a server was in one state."""

    file_system: str
    server: str
    state: ServerState
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class ServerCurve:
    """One quantity of a server over the run."""

    file_system: str
    server: str
    metric: str
    """Name of the quantity: `handled_per_s`, `waiting`, `wait_s`, `cpu_share`, `moved_bytes_per_s` or `load`.
    For a storage array, `server` is the array's name and the controller's, and the quantities are
    `busy_share` and others."""
    points: tuple[tuple[int, float], ...]
    """End of each sample, and its value."""


@dataclass(frozen=True, slots=True)
class OtherUser:
    """Another job or user that moved data from the same machine."""

    name: str
    """A job id, or else the session or the command."""
    user: str | None
    read_bytes: int
    written_bytes: int
    begin_ns: int
    end_ns: int
    """Time of the agent's readings that gave these numbers."""
    commands: tuple[str, ...] = ()
    """The programs of this user, the one with most bytes first; empty: the agent does not report them."""


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """The state of the servers over the whole run."""

    clock: ClockOffset
    systems: tuple[str, ...]
    """File systems of the monitor that the run used. If the run does not say which, all are listed."""
    are_chosen: bool
    """Whether the recording says which file systems it used."""
    stretches: tuple[ServerStretch, ...]
    curves: tuple[ServerCurve, ...]
    by_mount: Mapping[str, str]
    """Maps a mount point to the file system of the monitor."""
    sample_s: float
    kept_s: float | None = None
    """Length of the sums that the monitor keeps for that time, s; None: it keeps readings as agents sent
    them."""
    is_coarse: bool = False
    """Whether the states come from samples that are longer than the agents' own."""
    brief: tuple[str, ...] = ()
    """Servers for which a single sample shows trouble, which is too few to be certain."""
    knows_job: bool = False
    """Whether the run's own job is known, and therefore left out of `Servers.others`."""


class Servers(Protocol):
    """A monitor that can be queried."""

    @property
    def store(self) -> str:
        """Name of the monitor's store in the settings."""

    def meanwhile(self) -> Meanwhile | None:
        """Returns the servers over the whole run; None: the run can't be joined, and `why_not` gives the
        reason. Raises IodockError if the store can't be read."""

    @property
    def why_not(self) -> NotJoined | None:
        """Returns the reason why the recording's times can't be converted to the monitor's; None: they
        can."""

    def at(self, begin_ns: int, end_ns: int) -> Sequence[ServerMoment]:
        """Returns the state of every server of `systems` while a call was running. Raises IodockError."""

    def others(self, begin_ns: int, end_ns: int) -> Sequence[OtherUser] | None:
        """Returns other users that moved data on the recording's machine, the one with most bytes first;
        None: no agent there reported. Raises IodockError."""


NotJoined = Literal["no-date", "no-host", "no-agent", "too-few", "no-match", "too-vague", "too-coarse"]
