"""Reads and checks a store's manifest.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from iodock import _native
from iodock.program.store.schema import SCHEMA_VERSION
from iodock.shared.answer import Clock, Loss
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import DocumentError, from_json
from iodock.shared.bounded.limits import MANIFEST
from iodock.shared.engine import checksums
from iodock.shared.errors import StoreError, meant
from iodock.shared.language import N_

CLOCKS = ("epoch", "day", "relative", "none")
_LIGHT_COUNTERS = N_(
    "this store has counters by process and file, not calls (record --light): times are sums over all "
    "processes and threads, and values that are not counted are empty"
)
_COUNTERS = N_(
    "this store has counters of Darshan, not calls: the same bytes are counted in each interface that "
    "they pass, times are sums over all ranks, and values that are not counted are empty"
)
_NO_LIGHT_COUNTERS = N_("no call on a file was counted; there may have been calls that were not counted")
_NO_COUNTERS = N_(
    "the log contains no counters of any file: Darshan counted none, or they could not be read; "
    "the job may have done I/O nevertheless"
)


@dataclass(frozen=True, slots=True)
class InProgress:
    """Describes a recording in progress at the time when it was read."""

    so_far_seconds: float | None
    """Time since the recording began, s."""
    behind_seconds: float | None
    """Age of the data, s. Calls that ended more recently are missing."""

    @property
    def so_far(self) -> str:
        """Returns the time since the recording began, as text."""
        return _tenths(self.so_far_seconds)

    @property
    def behind(self) -> str:
        """Returns the age of the data, as text."""
        return _tenths(self.behind_seconds)


def _tenths(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds:,.1f} s"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Describes a store, with the contents of its manifest.json."""

    state: str
    """State of the store: `complete`, `recording` or `cut`."""
    clock: Clock
    first_ts: int | None
    last_ts: int | None
    source: Mapping[str, Any]
    losses: tuple[Loss, ...]
    rows: Mapping[str, int]
    """Number of rows of the tables `events`, `files` and `processes`."""
    raw: Mapping[str, Any]
    """All keys of manifest.json."""

    @property
    def checksums(self) -> Mapping[str, str]:
        """Returns the checksum of each file of a table, by its name in the store. The result is empty if
        the store was written without checksums."""
        found: Mapping[str, str] = self.raw.get("checksums") or {}
        return found

    @property
    def durations(self) -> bool:
        """Returns whether any call has an elapsed time."""
        return bool(self.source.get("durations"))

    @property
    def counts_only(self) -> bool:
        """Returns whether the source has only counts for each kind of system call, as `strace -c` prints,
        and no single calls."""
        return bool(self.rows.get("call_totals"))

    @property
    def profiles_only(self) -> bool:
        """Returns whether the source has counters by file and process instead of calls (Darshan), even if
        there are no counters."""
        return "profiles" in self.rows and not self.rows.get("events")

    @property
    def is_light(self) -> bool:
        """Returns whether calls were counted instead of recorded (`iodock record --light`)."""
        return self.profiles_only and "light" in self.source

    @property
    def is_partly_counted(self) -> bool:
        """Returns whether some processes were recorded and others only counted (`iodock record --ranks`)."""
        return "light" in self.source and bool(self.rows.get("profiles") and self.rows.get("events"))

    @property
    def counted_ranks(self) -> str:
        """Returns the ranks that have only counters, such as `1-6,8`; an empty text if none is known."""
        return str(self.source.get("counted_ranks") or "") if self.is_partly_counted else ""

    @property
    def _whose_calls_are_missing(self) -> str:
        if not self.counted_ranks:
            return (
                "processes without a rank were counted and not recorded: tables and sums of calls lack "
                "theirs; iodock show profiles has their counters"
            )
        return (
            f"counted and not recorded: ranks {self.counted_ranks}. Tables and sums of calls lack "
            "theirs; iodock show ranks and iodock show profiles have their sums"
        )

    @property
    def calls_hint(self) -> str:
        """Returns the hint for a command that needs calls if the store has only counters."""
        return "record without --light" if "light" in self.source else "record the program"

    @property
    def in_progress(self) -> InProgress | None:
        """Returns the state of a recording that was in progress when it was read; None if it had ended."""
        said = self.raw.get("in_progress")
        if not isinstance(said, dict) or not isinstance(said.get("read_ns"), int):
            return None
        read, since, until = said["read_ns"], said.get("since_ns"), said.get("until_ns")
        so_far = max(0, read - since) / 1e9 if isinstance(since, int) else None
        return InProgress(so_far, max(0, read - until) / 1e9 if isinstance(until, int) else None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns notes that apply to every result of this store."""
        found = []
        if now := self.in_progress:
            found.append(f"still being recorded: {now.so_far} so far, including calls up to {now.behind} ago")
        if self.counts_only:
            found.append("these are counts by call, on files or not; values that are not counted are empty")
        if self.counts_only and not self.durations:
            found.append(
                "strace -c counts system CPU time; a table made with -w has times inside the calls: import "
                "it with --format strace-c-w"
            )
        elif self.source.get("calls") and not self.durations:
            found.append("this source has no call durations, so times are empty")
        if self.profiles_only:
            found.append(_LIGHT_COUNTERS if self.is_light else _COUNTERS)
            if not self.rows["profiles"]:
                found.append(_NO_LIGHT_COUNTERS if self.is_light else _NO_COUNTERS)
        if self.is_partly_counted:
            found.append(self._whose_calls_are_missing)
        if not self.checksums and self.rows:
            found.append(checksums.NONE)
        return tuple(found)

    @property
    def wall_ns(self) -> int | None:
        """Returns the run's duration, in ns: as recorded, otherwise from the first to the last event of
        any process."""
        captured = self.raw.get("captured") or {}
        if captured.get("wall_ns") is not None:
            return int(captured["wall_ns"])
        if self.first_ts is None or self.last_ts is None:
            return None
        return self.last_ts - self.first_ts


def read_manifest(folder: Path) -> Manifest:
    """Reads and checks FOLDER/manifest.json. Raises StoreError."""
    path = folder / "manifest.json"
    try:
        document = files.content(path, MANIFEST, StoreError)
        raw = from_json(document)
    except FileNotFoundError as error:
        raise _not_a_store(folder) from error
    except NotADirectoryError as error:
        raise _not_a_store(folder) from error
    except OSError as error:
        raise StoreError(
            f"{path}: can't be read: {error}", "import or record again into a new store"
        ) from error
    except DocumentError as error:
        message = f"{path}{error.at}: can't be read: it {error}"
        raise StoreError(message, "import or record again into a new store") from error
    if _native.is_whole_document(document) is False:
        raise StoreError(f"{path}: {checksums.DIFFERS}", f"{checksums.AGAIN}; {checksums.CHANGED}")
    if not isinstance(raw, dict) or not isinstance(raw.get("schema"), int):
        raise StoreError(f"{path}: is not the manifest of an iodock store")
    if raw["schema"] > SCHEMA_VERSION:
        message = (
            f"{folder}: written by a newer iodock ({raw.get('writer', 'unknown')}, schema {raw['schema']})"
        )
        raise StoreError(message, f"this iodock reads up to schema {SCHEMA_VERSION}: install the newer one")
    try:
        # The manifest's own checksum is removed, because it no longer applies if these contents are changed
        # and written again.
        raw.pop("checksum", None)
        return _checked(raw)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        message = f"{path}: is damaged: {type(error).__name__}: {error}"
        raise StoreError(message, "import or record again into a new store") from error


def _meant(folder: Path) -> str:
    """Returns the hint for a missing store: the name of a similar store, or how to make one."""
    try:
        beside = [one.name for one in folder.parent.iterdir() if (one / "manifest.json").is_file()]
    except OSError:
        beside = []
    # iodock names stores NAME.iodock, and the user may have left out the ending.
    otherwise = "create one with iodock import LOG or iodock record CMD"
    named = f"{folder.name}.iodock"
    if named in beside:
        return f"did you mean {folder.parent / named}"
    near = meant(folder.name, beside, "")
    return f"did you mean {folder.parent / near.removeprefix('did you mean ')}" if near else otherwise


def _not_a_store(folder: Path) -> StoreError:
    if not folder.exists():
        return StoreError(f"{folder}: no such store", _meant(folder))
    if folder.is_file():
        return StoreError(f"{folder}: is a file, not a store", f"if it is a log: iodock import {folder}")
    return StoreError(f"{folder}: is not a store: it has no manifest.json")


def _expect(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name} is a {type(value).__name__}")


def _checked(raw: dict[str, Any]) -> Manifest:
    clock = raw.get("clock")
    for name in ("source", "captured", "host", "checksums"):
        _expect(name, raw.get(name), dict)
    for name in ("first_ts", "last_ts"):
        _expect(name, raw.get(name), int)
    losses = tuple(
        Loss(str(loss["name"]), int(loss["count"]), str(loss.get("cure", "")))
        for loss in raw.get("losses") or ()
        if loss.get("count")
    )
    return Manifest(
        state=str(raw.get("state", "complete")),
        clock=cast(Clock, clock if clock in CLOCKS else "none"),
        first_ts=raw.get("first_ts"),
        last_ts=raw.get("last_ts"),
        source=raw.get("source") or {},
        losses=losses,
        rows={name: int(count) for name, count in (raw.get("tables") or {}).items()},
        raw=raw,
    )
