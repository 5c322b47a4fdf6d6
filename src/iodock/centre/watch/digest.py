"""Defines the data of a job's digest: the job's I/O on the file systems, whether the job was slower than
usual, and possible reasons."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from iodock.centre.monitor.usual import Judgement, Run
from iodock.centre.watch.episodes import Episode, worse
from iodock.centre.watch.verdict import State, Suspect
from iodock.shared.errors import RequestError
from iodock.shared.message import Message
from iodock.shared.response import Intervention

_SECOND = 1_000_000_000
_LOOKED_BACK = 29 * 86_400 * _SECOND
_ID = re.compile(r"(?s:(.+))@([0-9]{8}T[0-9]{6}Z)")
_MOMENT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Sums:
    """Counts of a job at one place. A count is None if the quantity is not counted there."""

    place: str
    read_bytes: float | None
    write_bytes: float | None
    reads: float | None
    writes: float | None
    metadata: float | None
    operations: tuple[tuple[str, float], ...]
    """Metadata operations by kind, the most frequent first, without those that are 0."""
    is_exact: bool
    """Whether the counts are exact; False: they are lower bounds."""


@dataclass(frozen=True)
class Trouble:
    """The time in which a file system had problems while the job was active."""

    file_system: str
    state: State
    """The worst state in that time."""
    is_all: bool
    """Whether the file system was in this state all the time; False: partly in another state of trouble."""
    seconds: float
    by_clients: bool
    """Whether the state is based on clients only."""


@dataclass(frozen=True)
class Blame:
    """An episode that the job may have caused."""

    state: State
    kind: str
    suspect: Suspect


@dataclass(frozen=True)
class Recorded:
    """Results of a recording of the job's program."""

    store: str
    wall_seconds: float | None
    io_share: float | None
    """I/O time as a share of the wall time; None: not known."""
    is_whole: bool
    """Whether all I/O was recorded; False: there may have been more."""
    finding: tuple[Message, Message] | None = None
    """The finding with the largest gain: title and observation."""
    advice: Message | None = None


@dataclass(frozen=True)
class Digest:
    """The digest of one job."""

    job: str
    """The scheduler's id, as servers or agents reported it; not validated."""
    users: tuple[str, ...]
    name: str | None
    """Name of the job; None: no agent reported one."""
    begin: int
    """First and last reading with growth, ns since the epoch."""
    end: int
    is_over: bool
    """Whether the job has ended; False: it still runs, and may only compute at the moment."""
    sums: tuple[Sums, ...]
    """Counts at each place, servers first. The same bytes are counted at several places."""
    file_systems: tuple[str, ...] = ()
    run: Run | None = None
    """The job as it is compared with runs of the same name; None, like `judgement`, if no name was
    reported."""
    judgement: Judgement | None = None
    troubles: tuple[Trouble, ...] | None = None
    """Trouble of the file systems; None: episodes of servers are not stored."""
    blame: Blame | None = None
    rules: Intervention = field(default_factory=Intervention)
    """The site's settings, which contain the folder on a node for temporary files."""
    recorded: Recorded | None = None
    is_synthetic: bool = False
    written: str | None = None
    """The job's id as users write it, if that differs: `1234_7` for a task of an array."""
    again: int = 0
    """Number of restarts by the scheduler. The digest is about the last run."""
    earlier: int | None = None
    """Time since which the job was active before this run. The earlier time is not part of the digest."""

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin) / _SECOND, 1.0)

    @property
    def id(self) -> str:
        """Returns the id of the digest, with which `iodock bundle` collects the job's data. It contains the
        job's begin, because schedulers reuse job ids."""
        return f"{self.job}@{time.strftime(_MOMENT, time.gmtime(self.begin // _SECOND))}"


def parsed_id(text: str) -> tuple[str, int | None]:
    """Splits the id of a digest into the job's id and its begin in ns since the epoch. If TEXT is a job's id
    without a time, the begin is None. Raises RequestError if the time is invalid."""
    found = _ID.fullmatch(text)
    if not found:
        return text, None
    try:
        return found[1], calendar.timegm(time.strptime(found[2], _MOMENT)) * _SECOND
    except ValueError:
        raise RequestError(
            f"{found[2]}: not a time", "id as 20261122T050000Z, from the last line of the digest"
        ) from None


def looked_back_from(began: int, now: int) -> int | None:
    """Returns the end of a search for a job that began at BEGAN (ns), in s since the epoch, or None if the
    search can end now. A search covers the 30 days before its end, so it must end earlier for older jobs."""
    until = began + _LOOKED_BACK
    return until // _SECOND if until < now else None


def is_id(text: str) -> bool:
    """Returns whether the text has the form of an id from a digest."""
    return _ID.fullmatch(text) is not None


def troubles(
    episodes: Iterable[Episode], file_systems: Sequence[str], begin: int, end: int
) -> tuple[Trouble, ...]:
    """Returns the problems of these file systems from BEGIN to END (ns since the epoch), the longest first.
    Time in which several servers of a file system had problems counts once."""
    of_system: dict[str, list[Episode]] = {}
    for one in episodes:
        if one.file_system in file_systems and _overlap(one, begin, end) > 0:
            of_system.setdefault(one.file_system, []).append(one)
    found = [_trouble(name, several, begin, end) for name, several in of_system.items()]
    return tuple(sorted(found, key=lambda one: (-one.seconds, one.file_system)))


def _trouble(name: str, episodes: list[Episode], begin: int, end: int) -> Trouble:
    worst = episodes[0].worst
    for one in episodes[1:]:
        worst = worse(worst, one.worst)
    seconds, until = 0.0, begin
    for one in sorted(episodes, key=lambda one: one.begin_ns):
        first, last = max(one.begin_ns, until), min(_end(one), end)
        seconds += max(0, last - first) / _SECOND
        until = max(until, last)
    is_all = all(one.state == one.worst == worst for one in episodes)
    return Trouble(name, worst, is_all, seconds, all(one.kind == "client" for one in episodes))


def blame(episodes: Iterable[Episode], job: str, begin: int, end: int) -> Blame | None:
    """Returns the episode that the job most likely caused. Only the job's owner and operators may see it."""
    found = [
        (suspect.share, one, suspect)
        for one in episodes
        if _overlap(one, begin, end) > 0
        for suspect in one.suspects
        if suspect.job == job
    ]
    if not found:
        return None
    _, episode, suspect = max(found, key=lambda one: one[0])
    return Blame(episode.worst, episode.kind, suspect)


def _overlap(episode: Episode, begin: int, end: int) -> int:
    return min(_end(episode), end) - max(episode.begin_ns, begin)


def _end(episode: Episode) -> int:
    """Returns the end of an episode; if it continues, the time of its last verdict that was based on data."""
    return episode.seen_ns if episode.end_ns is None else episode.end_ns
