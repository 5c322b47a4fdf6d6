"""What a site's monitor knows of the time in which a program ran, as plain data: the wing of programs asks,
the wing of centres answers, and neither knows the other. Times are ns since the epoch by the recording's
clock; None is what nobody read. docs/decisions/0038 has the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

ServerState = Literal[
    "healthy", "busy", "overload", "stall", "failover", "degraded", "no-usual", "no-samples"
]
"""As docs/explanation/server-states.md has them; `no-usual`: no trouble was seen, but too few samples from
before the run say what is usual."""
TROUBLE: tuple[ServerState, ...] = ("stall", "overload", "failover", "degraded")
"""The worst first."""


@dataclass(frozen=True, slots=True)
class MountedAs:
    """A file system that the recorded program could use."""

    mount_point: str
    fs_type: str | None
    source: str | None
    """Its device or server, as the kernel names it: `nas:/export/home`, `10.0.0.1@tcp:/work`."""
    monitored_as: str | None = None
    """How the monitor names it, where the site's settings say so."""


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """A counter of the kernel, as a recording sampled it."""

    source: str
    target: str
    metric: str
    points: tuple[tuple[int, float], ...]
    """Time and value, in order."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """When and where a program ran."""

    hosts: tuple[str, ...]
    """Whose clock the times are of comes first; empty: not known."""
    begin_ns: int
    end_ns: int
    mounts: tuple[MountedAs, ...] = ()
    """Those that it used; empty: the recording does not say what lies where."""
    counters: tuple[CounterSeries, ...] = ()
    """Of the first host."""
    job: str | None = None


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the monitor's clock is ahead of the recording's."""

    offset_ns: int
    within_ns: int
    """It is known up to this much."""
    is_measured: bool
    """False: the site's settings say that clocks agree."""
    host: str | None = None
    """Whose counters were compared."""


@dataclass(frozen=True, slots=True)
class ServerMoment:
    """One server around one call."""

    file_system: str
    server: str
    kind: Literal["metadata", "object", "client"]
    state: ServerState
    """`no-samples`: nobody read it then."""
    is_brief: bool = False
    """A single sample says so, too few for a state to be told."""
    begin_ns: int | None = None
    end_ns: int | None = None
    """Of the samples that the numbers are of."""
    handled_per_s: float | None = None
    usual_handled_per_s: float | None = None
    waiting: float | None = None
    wait_s: float | None = None
    cpu_share: float | None = None


@dataclass(frozen=True, slots=True)
class ServerStretch:
    """A while in which a server was in one state."""

    file_system: str
    server: str
    state: ServerState
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class ServerCurve:
    """One number of a server over the run."""

    file_system: str
    server: str
    metric: str
    """`handled_per_s`, `waiting`, `wait_s`, `cpu_share`, `moved_bytes_per_s` or `load`; of a storage array,
    whose `server` is its name and the controller's, `busy_share` and others."""
    points: tuple[tuple[int, float], ...]
    """End of each sample, and the value."""


@dataclass(frozen=True, slots=True)
class OtherUser:
    """Who else moved data from the same machine."""

    name: str
    """A job's number, else the session or the command."""
    user: str | None
    read_bytes: int
    written_bytes: int
    begin_ns: int
    end_ns: int
    """Of the agent's readings that these are of."""
    commands: tuple[str, ...] = ()
    """What it ran, the most bytes first; empty: the agent does not tell."""


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """The whole run."""

    clock: ClockOffset
    systems: tuple[str, ...]
    """File systems of the monitor that the run used, or all, if the run does not say."""
    are_chosen: bool
    """False: the recording does not say which file systems it used."""
    stretches: tuple[ServerStretch, ...]
    curves: tuple[ServerCurve, ...]
    by_mount: Mapping[str, str]
    """Mount point -> file system of the monitor."""
    sample_s: float
    kept_s: float | None = None
    """Of which length the monitor keeps sums of that time; None: readings as agents sent them."""
    is_coarse: bool = False
    """Judged by samples that are longer than the agents'."""
    brief: tuple[str, ...] = ()
    """Servers of which a single sample speaks for trouble, too few for a state to be told."""
    knows_job: bool = False
    """Whether the run's own job is known, and so left out of `Servers.others`."""


class Servers(Protocol):
    """Who can be asked."""

    @property
    def store(self) -> str:
        """How the settings name the monitor's store."""

    def meanwhile(self) -> Meanwhile | None:
        """Of the whole run; None: it can't be joined, and `why_not` says why. Raises IodockError: the store
        can't be read."""

    @property
    def why_not(self) -> NotJoined | None:
        """Why times of the recording have no place among those of the monitor."""

    def at(self, begin_ns: int, end_ns: int) -> Sequence[ServerMoment]:
        """Every server of `systems` while a call lasted. Raises IodockError."""

    def others(self, begin_ns: int, end_ns: int) -> Sequence[OtherUser] | None:
        """Who else moved data on the recording's machine, the most first; None: no agent there told. Raises
        IodockError."""


NotJoined = Literal["no-date", "no-host", "no-agent", "too-few", "no-match", "too-vague", "too-coarse"]
