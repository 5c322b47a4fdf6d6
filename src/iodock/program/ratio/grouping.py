"""Sums records by command, user or node. Process accounting has one record per process, which is too many to
list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from re import compile as compiled

from iodock.program.ratio.record import Record

_KEYS: dict[str, Callable[[Record], str]] = {
    "command": lambda record: record.name,
    "user": lambda record: record.owner or "(not known)",
    "node": lambda record: record.node or "(not known)",
}


def chosen(records: Iterable[Record], name: str | None, owner: str | None) -> Iterator[Record]:
    """Yields the records with the given name and owner. NAME is a glob for the whole name, or for one word of
    it, because names of jobs have the form `JOBID JOBNAME`. OWNER is the name of a user."""
    fits = compiled(translate(name)).match if name is not None else None
    for record in records:
        if owner is not None and record.owner != owner:
            continue
        if fits is None or fits(record.name) or any(map(fits, record.name.split())):
            yield record


@dataclass(slots=True)
class _Sum:
    """Sums the records of a group one by one, without storing them."""

    at: str
    owner: str
    node: str
    count: int = 0
    real: float = 0.0
    core_seconds: float = 0.0
    user: float = 0.0
    system: float | None = 0.0
    io_bytes: int | None = 0
    cores_known: bool = True
    mixed: bool = False

    def add(self, record: Record, real: float, spent: float) -> None:
        self.count += record.runs
        self.real += real
        self.core_seconds += real * (record.cores or 1.0)
        self.user += spent
        self.mixed |= record.user is None
        self.cores_known &= record.cores is not None
        self.system = None if self.system is None or record.system is None else self.system + record.system
        known = self.io_bytes is not None and record.io_bytes is not None
        self.io_bytes = (self.io_bytes or 0) + (record.io_bytes or 0) if known else None
        self.owner = self.owner if self.owner == record.owner else ""
        self.node = self.node if self.node == record.node else ""


def added(records: Iterable[Record], by: str) -> list[Record]:
    """Returns one record per group, sorted by elapsed time, the longest first. BY is command, user or node.
    Times are summed. `cores` is the mean weighted by elapsed time, so that the utilisation is that of the
    whole group. Records without a ratio are not summed, because their unknown values would make the sums
    unknown; they follow the groups."""
    key, groups, rest = _KEYS[by], dict[str, _Sum](), []
    for record in records:
        spent = record.user if record.user is not None else record.both
        if record.real is None or record.real < 0 or spent is None or record.cores == 0:
            rest.append(record)
            continue
        name = key(record)
        group = groups.get(name)
        if group is None:
            group = groups[name] = _Sum(record.at, record.owner, record.node)
        group.add(record, record.real, spent)
    ordered = sorted(groups.items(), key=lambda one: -one[1].real)
    return [_record(name, group) for name, group in ordered] + rest


def _record(name: str, group: _Sum) -> Record:
    return Record(
        name=name,
        real=group.real,
        user=None if group.mixed else group.user,
        system=group.system,
        cores=group.core_seconds / group.real if group.cores_known and group.real else None,
        runs=group.count,
        owner=group.owner,
        node=group.node,
        at=group.at,
        both=group.user if group.mixed else None,
        io_bytes=group.io_bytes,
    )
