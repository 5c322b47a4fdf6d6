"""Calls the Rust code that makes stores from logs and recordings, and turns its errors into IodockErrors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iodock import _native
from iodock.shared.answer import Loss
from iodock.shared.errors import IodockError, RequestError

Progress = Callable[[int, int | None, int], None]
"""Reports progress: called with the bytes done, the total bytes if known, and the calls so far."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Holds the result of an import."""

    store: Path
    formats: tuple[str, ...]
    lines: int
    calls: int
    files: int
    processes: int
    profiles: int | None
    """Number of profiles, which are counters by process and file; None if the source has calls."""
    cut: bool
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class UnknownModule:
    """Describes a program file or library for which no source lines were found, and the reason."""

    module: str
    build_id: str | None
    why: str
    """Either not-found or no-debug-information."""
    sites: int
    """Number of places in this file from which calls were made."""
    is_installed: bool


@dataclass(frozen=True, slots=True)
class Symbolized:
    """Holds the number of places from which calls were made, and how many of them have a function or a source
    line."""

    sites: int
    functions: tuple[int, int]
    """Number of places with a function, before and after."""
    lines: tuple[int, int]
    unknown: tuple[UnknownModule, ...]


@contextmanager
def native_errors() -> Iterator[None]:
    """Turns a NativeError into an IodockError, or into a RequestError if the request was wrong."""
    try:
        yield
    except _native.NativeError as error:
        kind = RequestError if error.usage else IodockError
        raise kind(str(error), error.hint) from None


def import_logs(
    logs: Sequence[str],
    store: Path,
    *,
    format: str | None = None,
    working_directories: Sequence[str] = (),
    rank_from: str | None = None,
    lines: tuple[int, int | None] | None = None,
    force: bool = False,
    coverage_bytes: int | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Imports logs into a new store. `-` stands for standard input. LINES are the first and last line to
    import from a single log. Raises IodockError, in which case the unfinished store is deleted."""
    _each_once(logs)
    with native_errors():
        found = _native.import_logs(
            list(logs),
            store,
            format=format,
            working_directories=[os.fsencode(Path(name).absolute()) for name in working_directories],
            rank_from=rank_from,
            lines=lines,
            force=force,
            coverage_bytes=coverage_bytes,
            progress=progress,
        )
    return imported(found)


def is_darshan(log: str) -> bool:
    """Returns whether the log is Darshan's binary log or its text form. Such a log becomes a store of its
    own."""
    return _native.is_darshan(Path(log))


def _each_once(logs: Sequence[str]) -> None:
    """Raises RequestError if a log is named twice, because every call in it would count twice."""
    seen: dict[tuple[int, int] | str, str] = {}
    for log in logs:
        first = seen.setdefault(_identity(log), log)
        if log != first:
            raise RequestError(f"{log} is the same log as {first}", "give each log once")
    if len(seen) < len(logs):
        twice = next(log for log in logs if logs.count(log) > 1)
        raise RequestError(f"{twice} is given twice", "give each log once")


def _identity(log: str) -> tuple[int, int] | str:
    try:
        found = Path(log).stat()
    except (OSError, ValueError):
        return log  # This is standard input, or a file whose error is reported when it is opened.
    return found.st_dev, found.st_ino


@dataclass(frozen=True, slots=True)
class HostClock:
    """Holds the difference between the clock of one host and the clock of the first host of a run."""

    host: str
    offset_ns: int | None
    """Offset to add to the host's times; None: not known."""
    within_ns: int | None
    """Precision: the true offset differs from `offset_ns` by at most this."""
    calls: int
    """Number of calls from which the offset was computed."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Holds the result of merging the parts of a run."""

    found: Imported
    ranks: int
    """Number of ranks that have a part."""
    expected_ranks: int | None
    clocks: tuple[HostClock, ...]


def merge(
    parts: Sequence[Path], store: Path, *, force: bool = False, progress: Progress | None = None
) -> Merged:
    """Makes a new store from finished stores, which are the parts of one run. Raises IodockError or
    RequestError, in which case the unfinished new store is deleted."""
    with native_errors():
        found = _native.merge_stores(list(parts), store, force=force, progress=progress)
    ranks, expected = found["ranks"]
    clocks = tuple(HostClock(*clock) for clock in found["clocks"])
    return Merged(imported(found), ranks, expected, clocks)


def finish(store: Path, progress: Progress | None = None) -> Imported:
    """Makes a recording's tables from its journal. Raises IodockError, in which case the journal is kept."""
    with native_errors():
        return imported(_native.finish_recording(store, progress=progress))


def read_in_progress(store: Path, into: Path) -> bool:
    """Makes a store at INTO from the data that a running recording has written so far. Does not change the
    recording. Returns False if no recording is in progress. Raises IodockError."""
    with native_errors():
        return _native.read_in_progress(store, into) is not None


def imported(found: _native.ImportSummary | _native.MergeSummary) -> Imported:
    """Converts the summary that Rust returns to a dataclass."""
    return Imported(
        store=Path(found["store"]),
        formats=tuple(found["formats"]),
        lines=found["lines"],
        calls=found["calls"],
        files=found["files"],
        processes=found["processes"],
        profiles=found["profiles"],
        cut=found["cut"],
        losses=tuple(Loss(*loss) for loss in found["losses"]),
    )


def symbolize(store: Path, folders: Sequence[Path] = ()) -> Symbolized:
    """Searches again for the functions and source lines of a store's calls. Reads program files and libraries
    where they were during the run, or in FOLDERS. Raises IodockError."""
    with native_errors():
        found = _native.symbolize(store, list(folders))
    unknown = tuple(UnknownModule(*one) for one in found["unknown"])
    return Symbolized(found["sites"], found["functions"], found["lines"], unknown)
