"""Follows a recording in progress: computes sums and rates from the data that the recorder has flushed so
far. Does not change the recording."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from iodock import _native
from iodock.shared.errors import IodockError

MOST = 5
"""Number of files, and number of calls, that are shown."""
_LEAST_NS = 800_000_000
"""Shortest time over which rates are averaged, ns."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Holds sums over the calls on one file, or over the calls of one name, since the recording began."""

    name: str
    calls: int
    time_ns: int
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Holds rates per second over the last interval between two readings."""

    calls: float
    metadata_calls: float
    read_bytes: float
    written_bytes: float


@dataclass(frozen=True, slots=True)
class Sight:
    """Holds the state of a recording at one moment. Only calls on files with a path count."""

    so_far_seconds: float | None
    """Time since the recording began, s."""
    behind_seconds: float | None
    """Age of the data, s. Calls that ended more recently are missing."""
    rates: Rates | None
    """Recent rates; None at the first look, because there are no previous values."""
    files: tuple[Sums, ...]
    """The files with most time in calls, largest first."""
    by_call: tuple[Sums, ...]


class Follower:
    """Follows the recording in the folder of a store. Does not change that folder."""

    def __init__(self, store: Path) -> None:
        """Opens the recording. Raises IodockError if the recorder has not written anything readable yet."""
        self._followed = _opened(store)
        self._before: _native.SoFar | None = None
        self._rates: Rates | None = None

    def look(self) -> Sight:
        """Reads the data that the recorder has flushed since the last call of this method. Raises
        IodockError."""
        try:
            now = self._followed.look(MOST)
        except _native.NativeError as error:
            raise IodockError(str(error), error.hint) from None
        self._note_rates(now)
        return Sight(
            _seconds_since(now["since_ns"]), _seconds_since(now["until_ns"]), self._rates,
            tuple(_sums(now["files"])), tuple(_sums(now["by_call"])),
        )  # fmt: skip

    def _note_rates(self, now: _native.SoFar) -> None:
        before = self._before
        if before is None:
            # A rate is a difference between two readings, so the first reading gives none.
            self._before = now
            return
        if now["until_ns"] is None or before["until_ns"] is None:
            return
        passed = now["until_ns"] - before["until_ns"]
        if passed < _LEAST_NS:
            return
        seconds = passed / 1e9
        self._before = now
        self._rates = Rates(
            (now["calls"] - before["calls"]) / seconds,
            (now["metadata_calls"] - before["metadata_calls"]) / seconds,
            (now["read_bytes"] - before["read_bytes"]) / seconds,
            (now["written_bytes"] - before["written_bytes"]) / seconds,
        )


def is_in_progress(store: Path) -> bool:
    """Returns whether a recorder is writing to this folder."""
    return _native.is_in_progress(store)


def _opened(store: Path) -> _native.RecordingFollowed:
    try:
        return _native.RecordingFollowed(store)
    except _native.NativeError as error:
        raise IodockError(str(error), error.hint) from None


def _seconds_since(moment_ns: int | None) -> float | None:
    return None if moment_ns is None else max(0, time.time_ns() - moment_ns) / 1e9


def _sums(rows: Iterable[tuple[str, int, int, int, int]]) -> Iterable[Sums]:
    return (Sums(*row) for row in rows)
