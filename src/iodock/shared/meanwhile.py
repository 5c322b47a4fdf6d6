"""Defines data types for the state of servers while a program ran. The analysis of programs queries it, and
the monitor of a site answers; these types allow both parts to work without importing each other. Times are in
ns since the epoch, by the clock of the recording. A value is None if it was not read. See docs/decisions/0038
for the reasons."""

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
    """A file system that the recorded program may have used."""

    mount_point: str
    fs_type: str | None
    source: str | None
    """The file system's device or server, as the kernel writes it: `nas:/export/home`,
    `10.0.0.1@tcp:/work`."""
    monitored_as: str | None = None
    """The file system's name in the monitor, if the site's settings give one."""


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """The samples of one counter of the kernel that a recording took."""

    source: str
    target: str
    metric: str
    points: tuple[tuple[int, float], ...]
    """Time and value of each sample, in order."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """When and where a program ran."""

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
    """The difference between the monitor's and the recording's clocks. It is positive if the monitor's clock
    is ahead."""

    offset_ns: int
    within_ns: int
    """Uncertainty of the difference."""
    is_measured: bool
    """Whether the difference was measured; False: the settings state that the clocks agree."""
    host: str | None = None
    """The host whose counters were compared."""


@dataclass(frozen=True, slots=True)
class ServerMoment:
    """The state of one server while one call was running."""

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
    """A period in which a server remained in one state."""

    file_system: str
    server: str
    state: ServerState
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class ServerCurve:
    """The values of one quantity of a server during the run."""

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
    """Another job or user that transferred data on the machine of the recording."""

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
    """The states of the servers during the whole run."""

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
    """The interface through which the monitor of a site is queried."""

    @property
    def store(self) -> str:
        """Returns the name of the monitor's store in the settings."""

    def meanwhile(self) -> Meanwhile | None:
        """Returns the states of the servers during the whole run. Returns None if the recording's times can't
        be converted to the monitor's clock; `why_not` then contains the reason. Raises IodockError if the
        store can't be read."""

    @property
    def why_not(self) -> NotJoined | None:
        """Returns the reason why the recording's times can't be converted to the monitor's clock, or None if
        they can."""

    def at(self, begin_ns: int, end_ns: int) -> Sequence[ServerMoment]:
        """Returns the state of every server of `systems` between BEGIN_NS and END_NS, the time of a call.
        Raises IodockError."""

    def others(self, begin_ns: int, end_ns: int) -> Sequence[OtherUser] | None:
        """Returns other users that transferred data on the machine of the recording, sorted by bytes in
        descending order. Returns None if no agent on that machine sent samples. Raises IodockError."""


NotJoined = Literal["no-date", "no-host", "no-agent", "too-few", "no-match", "too-vague", "too-coarse"]
