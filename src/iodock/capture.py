"""The doors to the Rust side that make stores: logs imported, programs recorded. Errors become
IodockErrors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iodock import _native
from iodock.answer import Loss
from iodock.errors import IodockError, RequestError

Progress = Callable[[int, int | None, int], None]
"""(bytes done, bytes in all if known, calls so far)."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import found."""

    store: Path
    formats: tuple[str, ...]
    lines: int
    calls: int
    files: int
    processes: int
    cut: bool
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that took place."""

    store: Path
    exit_code: int | None
    """The program's; None if a signal ended it, or it runs on."""
    exit_signal: int | None
    must_finish: bool
    """This process has to call `finish`; of several ranks in one store only the last one."""
    warnings: tuple[str, ...]
    failure: str | None
    """Recording stopped early (full disk) while the program went on."""
    written_bytes: int


class RecordRefused(IodockError):
    """Nothing was recorded. `exit_status` is what a shell would give: 127 not found, 126 not executable,
    else 1."""

    def __init__(self, message: str, hint: str | None, exit_status: int) -> None:
        super().__init__(message, hint)
        self.exit_status = exit_status


@contextmanager
def native_errors() -> Iterator[None]:
    """NativeError as IodockError, or RequestError where the question was wrong."""
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
    force: bool = False,
    coverage_bytes: int | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Imports logs (`-` is standard input) into a new store. Raises IodockError; nothing of the store is
    left then."""
    with native_errors():
        found = _native.import_logs(
            list(logs),
            store,
            format=format,
            working_directories=[os.fsencode(Path(name).absolute()) for name in working_directories],
            rank_from=rank_from,
            force=force,
            coverage_bytes=coverage_bytes,
            progress=progress,
        )
    return imported(found)


def record(command: Sequence[str], store: Path, *, backend: str = "auto", force: bool = False) -> Recorded:
    """Runs a command and records it. Raises RecordRefused."""
    try:
        return _recorded(_native.record(list(command), store, backend=backend, force=force))
    except _native.NativeError as error:
        raise RecordRefused(str(error), error.hint, error.exit_status) from None


def attach(pids: Sequence[int], store: Path, *, backend: str = "auto", force: bool = False) -> Recorded:
    """Records running processes until they end, or a signal asks to stop. Raises RecordRefused."""
    try:
        return _recorded(_native.attach(list(pids), store, backend=backend, force=force))
    except _native.NativeError as error:
        raise RecordRefused(str(error), error.hint, error.exit_status) from None


def _recorded(found: _native.RecordSummary) -> Recorded:
    return Recorded(
        store=Path(found["store"]),
        exit_code=found["exit_code"],
        exit_signal=found["exit_signal"],
        must_finish=found["must_finish"],
        warnings=tuple(found["warnings"]),
        failure=found["failure"],
        written_bytes=found["written_bytes"],
    )


def finish(store: Path, progress: Progress | None = None) -> Imported:
    """Makes a recording's tables of its journal. Raises IodockError; the journal stays then."""
    with native_errors():
        return imported(_native.finish_recording(store, progress=progress))


def imported(found: _native.ImportSummary) -> Imported:
    """The native summary as a dataclass."""
    return Imported(
        store=Path(found["store"]),
        formats=tuple(found["formats"]),
        lines=found["lines"],
        calls=found["calls"],
        files=found["files"],
        processes=found["processes"],
        cut=found["cut"],
        losses=tuple(Loss(*loss) for loss in found["losses"]),
    )
