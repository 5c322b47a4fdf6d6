"""Quotas: what a user, group, project or fileset holds and may hold, and if a check-up has room there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from iodock.shared.errors import IodockError
from iodock.shared.language import N_
from iodock.shared.message import Message

Kind = Literal["user", "group", "project", "fileset"]


class Grace(StrEnum):
    """How long more than the soft limit may be held."""

    NONE = "none"
    """It is not exceeded."""
    RUNNING = "running"
    OVER = "over"
    """Nothing more is granted."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Of bytes, or of files; None: no limit."""

    used: int | None
    """None where the tool does not know."""
    soft: int | None
    hard: int | None
    grace: Grace = Grace.NONE
    is_exact: bool = True
    """False where the tool itself says that it does not know all."""

    @property
    def limit(self) -> int | None:
        """Where trouble begins: the lower of both."""
        return min((one for one in (self.soft, self.hard) if one is not None), default=None)

    @property
    def left(self) -> int | None:
        """What is still granted; None where nothing says that there is an end. The soft limit alone refuses
        nobody until its time is over."""
        if not self.is_exact:
            return None
        if self.grace is Grace.OVER:
            return 0
        return None if self.hard is None or self.used is None else max(self.hard - self.used, 0)


@dataclass(frozen=True, slots=True)
class Quota:
    """Of one owner on one file system."""

    kind: Kind
    owner: str
    """A name, or a number where there is none."""
    bytes: Allowance
    files: Allowance


@dataclass(frozen=True, slots=True)
class Quotas:
    """What the file system's tools said."""

    known: tuple[Quota, ...] = ()
    unknown: tuple[Message, ...] = ()
    """Why others are not: a tool that is missing, hangs or fails."""


KINDS: Mapping[str, str] = {
    "user": N_("user"),
    "group": N_("group"),
    "project": N_("project"),
    "fileset": N_("fileset"),
}
"""What an owner is, to be translated."""
_INEXACT = N_("quota of {kind} {owner}: the tool itself says that its numbers are not sure")
_SOFT = N_(
    "quota of {kind} {owner}: this check-up needs {wanted_bytes}, which is more than the soft limit leaves "
    "({left_bytes}); its files are gone again at the end"
)
_SOFT_FILES = N_(
    "quota of {kind} {owner}: this check-up needs {wanted} files, which is more than the soft limit leaves "
    "({left}); they are gone again at the end"
)


def check_room(quotas: Quotas, place: str, need_bytes: int, need_files: int) -> Iterator[Message]:
    """What to say before a check-up that needs so much at one time in PLACE, with the margin that
    crates/iodock-load/src/space.rs keeps too. Raises IodockError where a quota has no room for it; what is
    not known refuses nothing."""
    wanted_bytes = need_bytes + need_bytes // 20 + (1 << 20)
    wanted_files = need_files + need_files // 20 + 16
    for quota in quotas.known:
        _check(quota, place, quota.bytes.left, wanted_bytes, "bytes")
        _check(quota, place, quota.files.left, wanted_files, "files")
    yield from quotas.unknown
    for quota in quotas.known:
        yield from _notes(quota, wanted_bytes, wanted_files)


def _check(quota: Quota, place: str, left: int | None, wanted: int, what: str) -> None:
    if left is None or left >= wanted:
        return
    of = f"the quota of {quota.kind} {quota.owner}"
    raise IodockError(
        f"{place}: {left} {what} left of {of}, and this check-up needs {wanted}",
        "make room, ask for more, take a smaller class, or fewer --processes and smaller --sizes",
    )


def _notes(quota: Quota, wanted_bytes: int, wanted_files: int) -> Iterator[Message]:
    who = {"kind": quota.kind, "owner": quota.owner}
    if not (quota.bytes.is_exact and quota.files.is_exact):
        yield Message(_INEXACT, who)
    if (left := _below_soft(quota.bytes)) is not None and left < wanted_bytes:
        yield Message(_SOFT, {**who, "wanted_bytes": wanted_bytes, "left_bytes": left})
    if (left := _below_soft(quota.files)) is not None and left < wanted_files:
        yield Message(_SOFT_FILES, {**who, "wanted": wanted_files, "left": left})


def _below_soft(one: Allowance) -> int | None:
    if not one.is_exact or one.soft is None or one.used is None:
        return None
    return max(one.soft - one.used, 0)


def shares_used(quotas: Iterable[Quota]) -> Iterator[tuple[Quota, float]]:
    """How much of its quota each owner holds, of bytes or of files, whichever is more; without those of whom
    that is not known."""
    for quota in quotas:
        both = (quota.bytes, quota.files)
        shares = [one.used / one.limit for one in both if one.limit and one.used is not None]
        if shares or not any(one.limit for one in both):
            yield quota, max(shares, default=0.0)
