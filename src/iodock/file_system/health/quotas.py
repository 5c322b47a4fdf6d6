"""Defines the data types for quotas of a user, group, project or fileset, and checks whether the quotas have
enough space for a check-up."""

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
    """States whether the soft limit is exceeded, and whether its grace period has ended."""

    NONE = "none"
    """The soft limit is not exceeded."""
    RUNNING = "running"
    OVER = "over"
    """No further space is granted."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Used amount and limits, either in bytes or in files. A limit is None if there is none."""

    used: int | None
    """Amount that is used; None: the tool does not report it."""
    soft: int | None
    hard: int | None
    grace: Grace = Grace.NONE
    is_exact: bool = True
    """Whether the amount is complete. The tool itself reports if it is not."""

    @property
    def limit(self) -> int | None:
        """Returns the lower of the soft and the hard limit, or None if there is no limit."""
        return min((one for one in (self.soft, self.hard) if one is not None), default=None)

    @property
    def left(self) -> int | None:
        """Returns the amount that is still available, or None if it is not known or not limited. The soft
        limit matters only after its grace period has ended; nothing is available then."""
        if not self.is_exact:
            return None
        if self.grace is Grace.OVER:
            return 0
        return None if self.hard is None or self.used is None else max(self.hard - self.used, 0)


@dataclass(frozen=True, slots=True)
class Quota:
    """The quota of one owner on one file system."""

    kind: Kind
    owner: str
    """Name of the owner, or its number if it has no name."""
    bytes: Allowance
    files: Allowance


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas that the quota commands reported."""

    known: tuple[Quota, ...] = ()
    unknown: tuple[Message, ...] = ()
    """Reasons why further quotas are unknown: a tool is missing, hangs or fails."""


KINDS: Mapping[str, str] = {
    "user": N_("user"),
    "group": N_("group"),
    "project": N_("project"),
    "fileset": N_("fileset"),
}
"""Names of the kinds of owners, listed for translation."""
_INEXACT = N_("quota of {kind} {owner}: the quota tool says that its numbers are uncertain")
_SOFT = N_(
    "quota of {kind} {owner}: this check-up needs {wanted_bytes}, which is more than the soft limit "
    "leaves ({left_bytes}); its files are removed at the end"
)
_SOFT_FILES = N_(
    "quota of {kind} {owner}: this check-up needs {wanted} files, which is more than the soft limit "
    "leaves ({left}); they are removed at the end"
)


def check_room(quotas: Quotas, place: str, need_bytes: int, need_files: int) -> Iterator[Message]:
    """Yields warnings for a check-up that needs at most NEED_BYTES and NEED_FILES at any time in PLACE. Both
    are increased by the safety margin of crates/iodock-load/src/space.rs. Raises IodockError if a quota does
    not have enough space. A quota that is not known causes only a warning."""
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
        "free space, request more, take a smaller class, or fewer --processes and smaller --sizes",
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
    """Yields each quota with the share of its limit that is used: the larger of the shares of bytes and of
    files. Quotas that have a limit but no known use are left out."""
    for quota in quotas:
        both = (quota.bytes, quota.files)
        shares = [one.used / one.limit for one in both if one.limit and one.used is not None]
        if shares or not any(one.limit for one in both):
            yield quota, max(shares, default=0.0)
