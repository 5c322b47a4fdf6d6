"""Interface to the Rust code that makes stores from logs and from recordings. Errors become IodockErrors."""

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
"""(bytes done, total bytes if known, calls so far)."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Result of an import."""

    store: Path
    formats: tuple[str, ...]
    lines: int
    calls: int
    files: int
    processes: int
    profiles: int | None
    """Counters by process and file instead of calls; None if the source has calls."""
    cut: bool
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class UnknownModule:
    """A file of code that gave no lines."""

    module: str
    build_id: str | None
    why: str
    """not-found or no-debug-information."""
    sites: int
    """Places in it that calls came from."""
    is_installed: bool


@dataclass(frozen=True, slots=True)
class Symbolized:
    """Places that calls came from, and how many of them have a function or a line."""

    sites: int
    functions: tuple[int, int]
    """Before and after."""
    lines: tuple[int, int]
    unknown: tuple[UnknownModule, ...]


@contextmanager
def native_errors() -> Iterator[None]:
    """NativeError as IodockError, or as RequestError if the request was wrong."""
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
    """Imports logs (`-` is standard input) into a new store; from a single log only `lines` (first, last) if
    given. Raises IodockError and then leaves nothing of the store."""
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
    """Whether it is a Darshan log or its text form, which becomes a store of its own."""
    return _native.is_darshan(Path(log))


def _each_once(logs: Sequence[str]) -> None:
    """The same log twice would count every call twice. Raises RequestError."""
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
        return log  # Standard input, or a file whose error is reported when it is opened.
    return found.st_dev, found.st_ino


@dataclass(frozen=True, slots=True)
class HostClock:
    """The difference between the clock of a host and that of the first host of a run."""

    host: str
    offset_ns: int | None
    """To be added to its times; None: not known."""
    within_ns: int | None
    """The difference is at most so much more or less."""
    calls: int
    """Calls that it was found by."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of merging parts."""

    found: Imported
    ranks: int
    """Ranks that have a part."""
    expected_ranks: int | None
    clocks: tuple[HostClock, ...]


def merge(
    parts: Sequence[Path], store: Path, *, force: bool = False, progress: Progress | None = None
) -> Merged:
    """Makes a new store of finished stores, the parts of one run. Raises IodockError, RequestError; nothing
    of the store is left then."""
    with native_errors():
        found = _native.merge_stores(list(parts), store, force=force, progress=progress)
    ranks, expected = found["ranks"]
    clocks = tuple(HostClock(*clock) for clock in found["clocks"])
    return Merged(imported(found), ranks, expected, clocks)


def finish(store: Path, progress: Progress | None = None) -> Imported:
    """Makes a recording's tables from its journal. Raises IodockError; the journal then remains."""
    with native_errors():
        return imported(_native.finish_recording(store, progress=progress))


def read_in_progress(store: Path, into: Path) -> bool:
    """Makes a store at INTO from what has been flushed so far of a recording in progress, without changing
    the recording; False if none is in progress. Raises IodockError."""
    with native_errors():
        return _native.read_in_progress(store, into) is not None


def imported(found: _native.ImportSummary | _native.MergeSummary) -> Imported:
    """The native summary as a dataclass."""
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
    """Names functions and lines of a store again, by files of code in their places or in FOLDERS. Raises
    IodockError."""
    with native_errors():
        found = _native.symbolize(store, list(folders))
    unknown = tuple(UnknownModule(*one) for one in found["unknown"])
    return Symbolized(found["sites"], found["functions"], found["lines"], unknown)
