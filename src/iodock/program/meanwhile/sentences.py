"""Turns a monitor's answers into sentences, for the whole run and for one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from iodock.program.meanwhile import words
from iodock.shared.clock import NS, clock_text
from iodock.shared.errors import IodockError
from iodock.shared.meanwhile import (
    TROUBLE,
    ClockOffset,
    Meanwhile,
    OtherUser,
    ServerMoment,
    Servers,
    ServerStretch,
)
from iodock.shared.message import Message, Scalar

_TIMES_CALL = 2
"""If a sample is longer than this multiple of the call, it says nothing about the call."""
_MOST_NAMED = 3
"""Largest number of servers in trouble, and of other users, that are named."""


def of_run(servers: Servers) -> tuple[Message, ...]:
    """Describes the state of the servers while the program ran. If the store can't be read, one sentence says
    so."""
    try:
        found = servers.meanwhile()
        if found is None:
            return (Message(words.NOT_JOINED[servers.why_not or "no-agent"]),)
        return (*_systems(found), _clock(found.clock))
    except IodockError as error:
        return (Message(words.BROKEN, {"error": str(error)}),)


def in_short(servers: Servers) -> tuple[Message, ...]:
    """Describes the servers without remarks on clocks, for a check-up on one screen. Empty for a run that
    can't be joined."""
    try:
        found = servers.meanwhile()
        return () if found is None else tuple(_systems(found))
    except IodockError as error:
        return (Message(words.BROKEN, {"error": str(error)}),)


def of_call(servers: Servers, name: str, lasted: tuple[int, int], mount: str | None) -> tuple[Message, ...]:
    """Describes the state of the servers during one call on the file NAME. MOUNT: mount point of the file;
    None: not known. Empty if the data can't be read or joined, because the text for the whole run says so."""
    try:
        found = servers.meanwhile()
        if found is None:
            return ()
        on = mount or _mount_of(name, found)
        return (*_at(servers, found, lasted, on), *_others(servers.others(*lasted), found.knows_job))
    except IodockError:
        return ()


def _mount_of(name: str, found: Meanwhile) -> str | None:
    """A log may not contain the mount point, so it is found with the settings' mount points."""
    above = [one for one in found.by_mount if name.startswith(f"{one.rstrip('/')}/")]
    return max(above, key=len, default=None)


def _at(servers: Servers, found: Meanwhile, lasted: tuple[int, int], mount: str | None) -> Iterator[Message]:
    systems: Sequence[str] = found.systems
    if mount is not None and found.are_chosen:
        if mount not in found.by_mount:
            yield Message(words.AT_NOT_MONITORED, {"mount": mount})
            return
        systems = (found.by_mount[mount],)
    moments = servers.at(*lasted)
    for system in systems:
        own = [one for one in moments if one.file_system == system]
        yield from _of_system(system, own, lasted[1] - lasted[0])
        yield from _of_arrays(system, found, lasted)


def _of_system(system: str, moments: Sequence[ServerMoment], lasted: int) -> Iterator[Message]:
    """Describes the servers in trouble, with their numbers. If there are none, it gives the numbers of the
    metadata server, or of the busiest server."""
    unwell = sorted(
        (one for one in moments if one.state in TROUBLE),
        key=lambda one: (one.is_brief, TROUBLE.index(one.state), one.server),
    )
    for one in unwell[:_MOST_NAMED]:
        said = words.AT_BRIEFLY if one.is_brief else words.AT_STATES
        yield Message(said[one.state], {"server": one.server, "file_system": system})
        yield from _numbers(one)
    if unwell:
        return
    read = [one for one in moments if one.state != "no-samples"]
    if not read:
        yield Message(words.AT_UNREAD, {"file_system": system})
        return
    shown = min(read, key=lambda one: (one.kind != "metadata", -(one.handled_per_s or 0.0), one.server))
    values: dict[str, Scalar] = {"file_system": system, "servers": len(moments)}
    sample_s = _sample_s(shown)
    if unsure := sum(one.state == "no-usual" for one in read):
        yield Message(words.AT_NO_USUAL, {**values, "unsure": unsure})
        if len(read) < len(moments):
            yield Message(words.AT_ALSO_UNREAD, {**values, "unread": len(moments) - len(read)})
    elif len(read) < len(moments):
        yield Message(words.AT_PARTLY, {**values, "read": len(read)})
    elif sample_s is None or sample_s * NS > _TIMES_CALL * lasted:
        yield Message(words.AT_TOO_COARSE, {**values, "sample_s": sample_s})
    else:
        said_of = words.AT_ALL_HEALTHY if len(read) == 1 else words.AT_SEVERAL_HEALTHY
        yield Message(said_of, {**values, "server": shown.server, "sample_s": sample_s})
    yield from _numbers(shown)


def _of_arrays(system: str, found: Meanwhile, lasted: tuple[int, int]) -> Iterator[Message]:
    """Describes the busiest controllers of the file system's storage arrays."""
    busy: list[tuple[float, float, str]] = []
    for one in found.curves:
        if one.file_system == system and one.metric == "busy_share":
            ends = [end for end, _ in one.points]
            # The value of a point covers the time since the previous point.
            at = [
                value
                for (end, value), before in zip(one.points, [None, *ends], strict=False)
                if end > lasted[0] and (before or end) < lasted[1]
            ]
            if at:
                busy.append((max(at), median(value for _, value in one.points), one.server))
    for share, usual, server in sorted(busy, key=lambda each: (-each[0], each[2]))[:_MOST_NAMED]:
        values: dict[str, Scalar] = {"server": server, "file_system": system}
        yield Message(words.AT_ARRAY, {**values, "busy_share": share, "median_share": usual})


def _sample_s(one: ServerMoment) -> float | None:
    return None if one.begin_ns is None or one.end_ns is None else round((one.end_ns - one.begin_ns) / NS, 1)


def _numbers(one: ServerMoment) -> Iterator[Message]:
    """Describes a server that an agent read."""
    if one.begin_ns is None or one.end_ns is None:
        return
    yield Message(words.SAMPLED, {"server": one.server, **_between(one.begin_ns, one.end_ns)})
    if one.handled_per_s is not None:
        values = {"handled": _count(one.handled_per_s), "usual": _count(one.usual_handled_per_s)}
        said = words.HANDLED if one.usual_handled_per_s is None else words.HANDLED_USUALLY
        yield Message(said, values)
    if one.waiting is not None:
        yield Message(words.WAITING, {"waiting": _count(one.waiting)})
    if one.wait_s is not None:
        yield Message(words.WAITED, {"wait_s": one.wait_s})
    if one.cpu_share is not None:
        yield Message(words.CPU, {"cpu_share": one.cpu_share})


def _between(begin: int, end: int) -> dict[str, Scalar]:
    """Formats begin and end as times of day."""
    return {"begin": clock_text(begin, "epoch")[11:19], "end": clock_text(end, "epoch")[11:19]}


def _count(value: float | None) -> Scalar:
    """Converts a large number to an integer."""
    return value if value is None or value < 10 else round(value)


def _others(found: Sequence[OtherUser] | None, knows_job: bool) -> Iterator[Message]:
    if found is None:
        yield Message(words.OTHERS_UNKNOWN)
    elif not found:
        yield Message(words.OTHERS_NONE)
    for one in (found or ())[:_MOST_NAMED]:
        values: dict[str, Scalar] = {
            "name": one.name, "user": one.user, "read_bytes": one.read_bytes,
            "written_bytes": one.written_bytes, **_between(one.begin_ns, one.end_ns),
        }  # fmt: skip
        yield Message(words.OTHER_OF if one.user else words.OTHER, values)
        if commands := [command for command in one.commands if command != one.name]:
            yield Message(words.OTHER_RUNS, {"commands": ", ".join(commands)})
    if found and not knows_job:
        yield Message(words.OTHERS_OWN)


def _systems(found: Meanwhile) -> Iterator[Message]:
    if not found.systems:
        yield Message(words.RUN_NO_SYSTEM if found.are_chosen else words.RUN_NO_SERVER)
        return
    if not found.are_chosen:
        yield Message(words.RUN_NOT_CHOSEN)
    if found.kept_s is not None:
        yield Message(words.RUN_KEPT, {"kept_s": found.kept_s})
    for system in found.systems:
        own = [one for one in found.stretches if one.file_system == system]
        yield from _of_stretches(system, own, found)


def _of_stretches(system: str, stretches: Sequence[ServerStretch], found: Meanwhile) -> Iterator[Message]:
    by_server: dict[str, list[ServerStretch]] = {}
    for one in stretches:
        by_server.setdefault(one.server, []).append(one)
    whole = max((sum(map(_length, each)) for each in by_server.values()), default=0)
    values: dict[str, Scalar] = {
        "file_system": system,
        "servers": len(by_server),
        "of_s": _seconds(whole),
        "sample_s": found.sample_s,
    }
    troubles = sorted(_troubles(by_server), key=lambda each: (TROUBLE.index(each[0].state), -_sum(each)))
    for each in troubles[:_MOST_NAMED]:
        first = clock_text(each[0].begin_ns, "epoch")[:19]
        shown: dict[str, Scalar] = {"server": each[0].server, "part_s": _seconds(_sum(each)), "when": first}
        yield Message(words.RUN_STATES[each[0].state], {**values, **shown})
    if troubles:
        return
    if brief := [name for name in found.brief if name in by_server]:
        yield Message(words.RUN_BRIEF, {**values, "server": brief[0]})
        return
    gaps = {name: _sum(one for one in each if one.state == "no-samples") for name, each in by_server.items()}
    unread = [name for name, gap in gaps.items() if gap]
    if not any(one.state != "no-samples" for one in stretches):
        yield Message(words.RUN_UNREAD, values)
    elif unread:
        server = max(unread, key=lambda name: gaps[name])
        more: dict[str, Scalar] = {"server": server, "part_s": _seconds(gaps[server]), "unread": len(unread)}
        yield Message(words.RUN_PARTLY, {**values, **more})
    elif unsure := sum(any(one.state == "no-usual" for one in each) for each in by_server.values()):
        yield Message(words.RUN_NO_USUAL, {**values, "unsure": unsure})
    else:
        yield Message(words.RUN_COARSE_HEALTHY if found.is_coarse else words.RUN_HEALTHY, values)


def _troubles(by_server: dict[str, list[ServerStretch]]) -> Iterator[list[ServerStretch]]:
    """Yields the periods of each server in each state of trouble."""
    for each in by_server.values():
        for state in TROUBLE:
            if alike := [one for one in each if one.state == state]:
                yield alike


def _length(one: ServerStretch) -> int:
    return one.end_ns - one.begin_ns


def _sum(stretches: Iterable[ServerStretch]) -> int:
    return sum(map(_length, stretches))


def _seconds(ns: int) -> float:
    return ns / NS


def _clock(clock: ClockOffset) -> Message:
    values: dict[str, Scalar] = {"offset_s": abs(clock.offset_ns) / NS, "within_s": clock.within_ns / NS}
    if not clock.is_measured:
        return Message(words.CLOCK_ASSUMED, values)
    said = words.CLOCK_BEHIND if clock.offset_ns < 0 else words.CLOCK_MEASURED
    said = said if clock.offset_ns else words.CLOCK_SAME
    return Message(said, {**values, "host": clock.host})
