"""Defines filters, which select the calls of a request. A filter never changes the columns of an answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iodock.shared.errors import RequestError, meant

Outcome = Literal["any", "failed", "succeeded"]

PATH_KINDS = ("file", "regular", "directory", "symlink", "device", "fifo")
"""Kinds of files that have a path. `--kind file`, the default, shows these."""
KINDS = (
    *PATH_KINDS,
    *("pipe", "socket", "memfd", "eventfd", "epoll", "timerfd", "signalfd", "inotify", "pidfd", "io_uring"),
    *("standard", "unknown", "other"),
)


@dataclass(frozen=True, slots=True)
class Filters:
    """Holds the filters that every analysis accepts. If a filter is a list, a call passes if one of the
    values applies."""

    file: tuple[str, ...] = ()
    """Names or globs: `*` matches within a folder, `**` across folders. If a file with exactly this name
    exists, only that file is meant."""
    exclude_folder: tuple[str, ...] = ()
    exclude_ending: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    """Names or globs of calls, and also `family:NAME` and `class:NAME`."""
    kind: tuple[str, ...] = ()
    """Kinds of files. Empty means `file`: everything that has a path, and any file whose exact name is in
    `file`."""
    pid: tuple[int, ...] = ()
    tid: tuple[int, ...] = ()
    rank: tuple[int, ...] = ()
    host: tuple[str, ...] = ()
    job: tuple[str, ...] = ()
    user_files: bool = False
    since: str | None = None
    """Start of the period, as seconds from the start of the run or as a clock time."""
    until: str | None = None
    outcome: Outcome = "any"
    min_time_ns: int | None = None
    direction: str | None = None
    """`read` or `write` selects calls, and ends of calls, that move bytes in that direction."""

    def __post_init__(self) -> None:
        for kind in self.kind:
            if kind != "all" and kind not in KINDS:
                listed = f"kinds: file, all, {', '.join(KINDS[1:])}"
                raise RequestError(f"no such kind of file: {kind}", meant(kind, ("all", *KINDS), listed))

        if self.direction not in (None, "read", "write"):
            raise RequestError(f"direction is read or write, not {self.direction}")

    def given(self) -> dict[str, Any]:
        """Returns the filters that differ from their defaults."""
        pairs = ((field.name, getattr(self, field.name), field.default) for field in dataclasses.fields(self))
        return {name: value for name, value, default in pairs if value != default}

    def without_calls(self) -> Filters:
        """Returns the filters on files, tasks and times. Rows that are not calls, such as page faults or
        loaded pages, have only these."""
        return dataclasses.replace(self, call=(), outcome="any", direction=None, min_time_ns=None)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Filters:
        """Makes filters from keyword arguments in Python, each of which is one value or a list. Raises
        RequestError for an unknown name or a wrong value."""
        for name in values:
            if name not in _NAMES:
                message = f"no such filter or option: {name}"
                raise RequestError(message, f"filters: {', '.join(sorted(_NAMES))}")
        chosen = {name: _normal(name, value) for name, value in values.items()}
        failed, succeeded = (bool(chosen.pop(name, False)) for name in ("failed", "succeeded"))
        if failed and succeeded:
            raise RequestError("failed and succeeded exclude each other")
        if failed or succeeded:
            chosen["outcome"] = "failed" if failed else "succeeded"
        if (seconds := chosen.pop("min_time", None)) is not None:
            chosen["min_time_ns"] = duration_ns(seconds)
        return cls(**chosen)


_LISTS = ("file", "exclude_folder", "exclude_ending", "call", "kind", "host", "job")
_NUMBER_LISTS = ("pid", "tid", "rank")
_NAMES = (
    *("min_time", "direction"),
    *_LISTS,
    *_NUMBER_LISTS,
    "user_files",
    "since",
    "until",
    "failed",
    "succeeded",
)
"""Names of filters that callers may use."""


def _normal(name: str, value: Any) -> Any:
    if name in _NUMBER_LISTS:
        return tuple(number for item in _listed(value, apart=True) for number in _numbers(name, item))
    if name in _LISTS:
        return tuple(str(item) for item in _listed(value, apart=name != "file"))
    if name in ("since", "until") and value is not None:
        return str(value)
    return value


_MOST_NUMBERS = 1_000_000
"""Largest count of numbers in a range such as `0-7`."""


def _numbers(name: str, value: Any) -> Sequence[int]:
    first, dash, last = str(value).partition("-")
    if not (dash and first and last):
        return (_number(name, value),)
    numbers = range(_number(name, first), _number(name, last) + 1)
    if not 0 < len(numbers) <= _MOST_NUMBERS:
        raise RequestError(
            f"{name} must be a number or a range such as 0-7, not {value}", "write the smaller number first"
        )
    return numbers


def _number(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise RequestError(f"{name} must be a number, not {value}") from None


def _listed(value: Any, apart: bool) -> Sequence[Any]:
    """Returns a tuple for a single value or a list. If APART is true, a text is split at commas."""
    if value is None:
        return ()
    if isinstance(value, str) and apart:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return (value,) if isinstance(value, (str, int)) else tuple(value)


_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


def duration_ns(text: str | float) -> int:
    """Converts a duration such as `0.1`, `250ms` or `3us` to nanoseconds. A number without a unit is in
    seconds. Raises RequestError for other texts."""
    plain = str(text).strip()
    unit = plain.lstrip("0123456789.eE+-") if not plain[-1:].isdigit() else ""
    number = plain[: len(plain) - len(unit)] if unit else plain
    try:
        value = float(number) * _UNITS[unit.strip() or "s"]
        if not 0 <= value < 2**63:
            raise ValueError
    except (KeyError, ValueError, OverflowError):
        raise RequestError(f"not a length of time: {text}", "write seconds, or 250ms, 3us") from None
    return round(value)
