"""Reads a site's settings from a TOML file: thresholds of rules, limits of severities, and typical values of
file systems.

    [severity]
    high = 0.2                      # shares of the wall time
    [rules.small-requests]
    below_bytes = 32768
    [file_systems."/home"]
    kind = "network"                # local, network or parallel
    link_bytes_per_s = 125_000_000
    [ratio]
    io_below = 0.1
    [states]
    wait_s = 0.1
    [agents]
    names_per_s = 100
    [connections]
    at_once_per_address = 1024

`response.py` defines the sections `[response]`, `[notices]` and `[privacy]`.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from iodock.shared.bounded import files
from iodock.shared.bounded.documents import DocumentError, from_toml
from iodock.shared.bounded.limits import SETTINGS
from iodock.shared.errors import RequestError, meant
from iodock.shared.response import Intervention, LanguageCode, Notices, Privacy, Recipient
from iodock.shared.units import number_text

T = TypeVar("T")
FileSystemKind = Literal["local", "network", "parallel"]
NETWORK_TYPES = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "virtiofs", "davfs"),
        *("fuse.sshfs", "fuse.glusterfs", "glusterfs"),
    )
)
PARALLEL_TYPES = frozenset(
    ("lustre", "gpfs", "fefs", "beegfs", "pvfs2", "orangefs", "panfs", "wekafs", "daos", "fuse.daos")
)
"""Types of file systems, as the kernel names them."""
VARIABLE = "IODOCK_SETTINGS"
PLACES = ("~/.config/iodock/settings.toml", "/etc/iodock/settings.toml")
"""Paths of the settings file if the environment variable is not set. The first existing file is used."""


@dataclass(frozen=True, slots=True)
class SeverityLimits:
    """Minimum cost of a finding for each severity, as a share of the run's wall time. A finding below `low`
    is only a note."""

    high: float = 0.20
    medium: float = 0.05
    low: float = 0.01
    least_seconds: float = 0.002
    """A finding that costs less than this is a note even if its share would make it low, because it is not
    worth changing."""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Typical values of one file system, as the site states them. A value is None if the site does not state
    it."""

    kind: FileSystemKind | None = None
    read_bytes_per_s: float | None = None
    """Rate of one stream of large requests."""
    write_bytes_per_s: float | None = None
    small_read_per_s: float | None = None
    """Number of 4 KiB reads per second of one process."""
    small_write_per_s: float | None = None
    metadata_per_s: float | None = None
    """Number of open, stat or unlink calls per second of one process."""
    link_bytes_per_s: float | None = None
    """Bandwidth of the link or device. If a higher rate was measured, the data came from a cache."""
    read_knee_bytes: int | None = None
    """Reads of one process are slower if their requests are smaller than this."""
    write_knee_bytes: int | None = None
    stat_knee_processes: int | None = None
    """Metadata calls become slower if more processes than this make them."""
    stripe_count: int | None = None
    probe_store: str | None = None
    """Folder with the results of `iodock probe run` for this file system."""
    monitored_as: str | None = None
    """Name of this file system for the monitor's agents, if it does not follow from the mount."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Limits of CPU utilisation (user time / elapsed time / cores). A run below `io_below` is bound by I/O,
    and one above `compute_above` by computing."""

    io_below: float = 0.1
    compute_above: float = 0.8


@dataclass(frozen=True, slots=True)
class ServerStates:
    """Limits from which a file server counts as busy, overloaded, stalled or degraded. See
    docs/explanation/server-states.md."""

    wait_s: float = 0.1
    """A request that waits longer than this counts as waiting long."""
    collapsed_share: float = 0.2
    """If the rate is below this share of the usual one, the server handles hardly any requests."""
    drain_s: float = 30.0
    """The server also handles hardly any requests if the waiting ones would take longer than this at the
    present rate."""
    cpu_share: float = 0.5
    """If the use of the server's processors is at least this, they are busy."""
    slow_times: float = 4.0
    """If an operation takes at least this multiple of its usual time, it is slow."""
    busy_times: float = 3.0
    """If requests or bytes are at least this multiple of the usual ones, the server is busy."""
    samples: int = 2
    """Number of consecutive samples that must agree."""
    silent_samples: int = 3
    """If this number of samples is missing, the server's state is unknown."""
    usual_hours: float = 6.0
    """Time over which the median is taken that is the usual value."""
    sample_s: float = 10.0
    """Length of a sample, which is the agents' interval."""
    scheduler: Literal["auto", "none", "slurm", "pbs", "pjm", "nqsv", "grid-engine"] = "auto"
    """Scheduler that is queried for owners and names of jobs. `auto`: the one whose commands are on the
    collector's machine."""


@dataclass(frozen=True, slots=True)
class ServerReadings:
    """Settings for the connection to a monitor, which is queried for the state of file servers during a
    run."""

    store: str | None = None
    """The monitor's store: a collector's folder, or `prometheus://HOST:PORT`. None: no monitor is queried."""
    store_token: str | None = None
    """File that contains a bearer token for Prometheus."""
    store_user: str | None = None
    store_password: str | None = None
    """File that contains the store's password."""
    store_ca: str | None = None
    """File with certificates (PEM) of an authority to trust."""
    clocks_agree_s: float | None = None
    """Largest difference between the clocks of nodes and servers that the site guarantees; None: no
    guarantee, and a run is joined only if counters show the difference."""
    jobid_name: str | None = None
    """Format of the servers' job ids; None: it is inferred from the ids."""


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Limits for the data that one agent sends. An agent is identified by its token and address, or by the
    address from which the collector fetches data. The defaults are far above what a machine sends. An agent
    that exceeds a limit has to wait."""

    bytes_per_s: float = 32e6
    """Bytes of batches per second, after decompression."""
    values_per_s: float = 500e3
    """Number of values per second: entries and their values, losses and events."""
    saved_s: float = 60.0
    """An agent that has not sent for some time may exceed the rates, by up to this number of seconds."""
    names_per_s: float = 100.0
    """Number of new names per second: jobs, users, sessions, commands, targets and machines."""
    names_at_once: float = 1e6
    """Number of new names that a new agent may send at once."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits for connections to the collector. If `at_once` connections are open, the collector closes the
    one that has been idle longest, and accepts the new one."""

    at_once: int = 4096
    """Largest number of connections. It is also limited by the number of files that the process may open."""
    at_once_per_address: int = 1024
    """Largest number of connections of an IPv4 address or an IPv6 network of 64 bits. Addresses of --proxy
    have no such limit."""
    head_s: float = 10.0
    """Time limit for the TLS handshake, and again until a request's first line and headers have arrived."""
    request_s: float = 60.0
    """Time limit for the rest of a request."""
    idle_s: float = 75.0
    """Time limit between two requests."""
    answer_s: float = 30.0
    """Time limit for the client to accept each piece of a response."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a site. Settings that are missing in the file have default values."""

    source: Path | None = None
    severity: SeverityLimits = SeverityLimits()
    ratio: Ratio = Ratio()
    states: ServerStates = ServerStates()
    servers: ServerReadings = ServerReadings()
    agents: AgentLimits = AgentLimits()
    connections: ConnectionLimits = ConnectionLimits()
    response: Intervention = field(default_factory=Intervention)
    notices: Notices = field(default_factory=Notices)
    privacy: Privacy = field(default_factory=Privacy)
    file_systems: Mapping[str, FileSystem] = field(default_factory=dict)
    """Typical values of the file system at each mount point."""
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Thresholds of each rule, as written in the file."""

    def of_rule(self, name: str, kind: type[T]) -> T:
        """Returns a rule's thresholds, with the values of the file in place of the defaults. Raises
        RequestError if the file has an unknown or invalid value."""
        return _filled(kind, self.rules.get(name, {}), f"[rules.{name}]", self.source)

    def file_system(self, mount_point: str | None) -> FileSystem | None:
        """Returns the typical values of the file system that is mounted at MOUNT_POINT, or None if the site
        states none."""
        return self.file_systems.get(mount_point) if mount_point else None


def kind_of(fs_type: str | None) -> FileSystemKind:
    """Returns the kind of a file system from its type. It is used if the site does not state the kind."""
    if fs_type in PARALLEL_TYPES:
        return "parallel"
    return "network" if fs_type in NETWORK_TYPES else "local"


def load(path: str | os.PathLike[str] | None = None) -> Settings:
    """Reads the settings file at PATH, or else at $IODOCK_SETTINGS, or else at the first of PLACES that
    exists. Without a file, all settings have their defaults. Raises RequestError with file and key."""
    found = _find(path)
    if found is None:
        return Settings()
    try:
        raw = from_toml(files.text(found, SETTINGS))
    except OSError as error:
        raise RequestError(f"{found}: {error.strerror}", "name another settings file") from error
    except UnicodeDecodeError as error:
        raise RequestError(
            f"{found}: is not TOML: {error}", "correct the line named in the message"
        ) from error
    except DocumentError as error:
        raise RequestError(f"{found}: {error}", "correct the line named in the message") from error
    return _checked(raw, found)


def _find(path: str | os.PathLike[str] | None) -> Path | None:
    named = path or os.environ.get(VARIABLE)
    if named:
        return Path(named)
    places = (Path(place).expanduser() for place in PLACES)
    return next((place for place in places if place.is_file()), None)


def _checked(raw: dict[str, Any], source: Path) -> Settings:
    known = {"severity", "ratio", "states", "agents", "connections", "file_systems", "rules"}
    known |= {"response", "notices", "privacy", "servers"}
    if "monitor" in raw:
        hint = "write [states]; docs/how-to/settings.md has what it takes"
        raise RequestError(f"{source}: section [monitor] is no longer used", hint)
    for name in raw:
        if name not in known:
            raise _unknown(f"section [{name}]", name, known, source)
    systems, rules = (_section(raw, name, source) for name in ("file_systems", "rules"))
    severity = _filled(SeverityLimits, _section(raw, "severity", source), "[severity]", source)
    ratio = _filled(Ratio, _section(raw, "ratio", source), "[ratio]", source)
    _check_rising("[severity]", severity, ("low", "medium", "high"), source)
    _check_rising("[ratio]", ratio, ("io_below", "compute_above"), source)
    return Settings(
        source=source,
        severity=severity,
        ratio=ratio,
        states=_filled(ServerStates, _section(raw, "states", source), "[states]", source),
        servers=_filled(ServerReadings, _section(raw, "servers", source), "[servers]", source),
        agents=_filled(AgentLimits, _section(raw, "agents", source), "[agents]", source),
        connections=_filled(ConnectionLimits, _section(raw, "connections", source), "[connections]", source),
        response=_filled(Intervention, _section(raw, "response", source), "[response]", source),
        notices=_notices(_section(raw, "notices", source), source),
        privacy=_filled(Privacy, _section(raw, "privacy", source), "[privacy]", source),
        file_systems=_by_mount(systems, source),
        rules={name: _section(rules, name, source) for name in rules},
    )


def _notices(raw: Mapping[str, Any], source: Path) -> Notices:
    plain = {name: value for name, value in raw.items() if name not in ("to", "languages")}
    recipients, languages = (_section(raw, name, source) for name in ("to", "languages"))
    to = {name: _filled(Recipient, one, f"[notices.to.{name}]", source) for name, one in recipients.items()}
    for user, code in languages.items():
        if not _fits(code, LanguageCode):
            raise RequestError(
                f"{source}: [notices.languages] {user} = {code!r} is not {_shown(LanguageCode)}"
            )
    return replace(_filled(Notices, plain, "[notices]", source), to=to, languages=languages)


def _by_mount(systems: Mapping[str, Any], source: Path) -> Mapping[str, FileSystem]:
    """Returns the typical values by mount point. Mount points are normalised to the form of the kernel,
    without a slash at the end."""
    found: dict[str, FileSystem] = {}
    for given, values in systems.items():
        where = f'[file_systems."{given}"]'
        if not given.startswith("/"):
            raise RequestError(f"{source}: {where} is not a mount point", "mount points begin with /")
        mount = "/" + os.path.normpath(given).strip("/")
        if mount in found:
            raise RequestError(
                f"{source}: {where} is given twice",
                f'merge them into one section [file_systems."{mount}"]',
            )
        found[mount] = _filled(FileSystem, values, where, source)
    return found


def _check_rising(where: str, limits: object, names: tuple[str, ...], source: Path) -> None:
    """Checks that limits are in ascending order. For example, `low` must not be larger than `medium`."""
    for lower, upper in pairwise(names):
        least, most = getattr(limits, lower), getattr(limits, upper)
        if least > most:
            raise RequestError(
                f"{source}: {where} {upper} = {number_text(most, 6)} is below {lower} = "
                f"{number_text(least, 6)}",
                f"{' <= '.join(names)}; what the file leaves out has its default",
            )


def _section(raw: Mapping[str, Any], name: str, source: Path) -> Mapping[str, Any]:
    section = raw.get(name, {})
    if not isinstance(section, dict):
        raise RequestError(f"{source}: {name} = {section!r} is not a section", f"write [{name}]")
    return section


def _filled(kind: type[T], values: object, where: str, source: Path | None) -> T:
    """Returns an object of the dataclass KIND, with VALUES in place of its defaults. Raises RequestError for
    an unknown name or an invalid value. WHERE is the section for messages."""
    if not isinstance(values, Mapping):
        raise RequestError(f"{source}: {where} is not a section")
    hints = get_type_hints(kind)
    names = {one.name for one in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name, value in values.items():
        if name not in names:
            raise _unknown(f"{where} {name}", name, names, source)
        if not _fits(value, hints[name]):
            raise RequestError(f"{source}: {where} {name} = {value!r} is not {_shown(hints[name])}")
        if limit := _beyond(kind, name, value):
            raise RequestError(f"{source}: {where} {name} = {value!r} is not {limit}")
    # Lists become tuples, because the fields of settings must not be changed.
    taken = {name: tuple(one) if isinstance(one, list) else one for name, one in values.items()}
    return kind(**taken)


def _beyond(kind: type, name: str, value: Any) -> str | None:
    """Returns a description of the allowed values if VALUE is out of range, or else None. The class of
    settings and the field's name determine the range."""
    if isinstance(value, (bool, str, list)):
        return None
    if kind in (FileSystem, ServerStates, AgentLimits, ConnectionLimits) and value <= 0:
        return "a number above 0"
    is_share = kind in (SeverityLimits, Ratio) and name != "least_seconds"
    if (is_share or name.rpartition("_")[2] in ("share", "confidence")) and value > 1:
        return "a share from 0 to 1"
    return None


def _fits(value: object, hint: Any) -> bool:
    """Returns whether a value of the TOML file has the type HINT of a field."""
    for kind in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        if get_origin(kind) is tuple:
            return isinstance(value, list) and all(_fits(one, get_args(kind)[0]) for one in value)
        if get_origin(kind) is Literal and isinstance(value, str) and value in get_args(kind):
            return True
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind is float and is_number and 0 <= value < math.inf:  # type: ignore[operator]
            return True
        if kind is int and type(value) is int and value >= 0:
            return True
        if kind in (bool, str) and isinstance(value, kind):
            return True
    return False


def _shown(hint: Any) -> str:
    """Describes the values that a field of type HINT accepts, for messages."""
    if get_origin(hint) is tuple:
        return f"a list, each {_shown(get_args(hint)[0])}"
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return " or ".join(
        _KINDS.get(kind) or ", ".join(get_args(kind)) for kind in kinds if kind is not type(None)
    )


_KINDS = {
    float: "a number from 0 on",
    int: "a whole number from 0 on",
    bool: "true or false",
    str: "a text in quotes",
}


def _unknown(what: str, name: str, known: set[str], source: Path | None) -> RequestError:
    return RequestError(
        f"{source}: {what} is not known", meant(name, known, f"known: {', '.join(sorted(known))}")
    )
