"""Calls the Rust code that records programs. This module and `iodock.cli.recording` import almost nothing at
their start, because each import delays the recording of a short program."""

from __future__ import annotations

from iodock import _native
from iodock.shared.errors import IodockError

TYPE_CHECKING = False
"""The same value as typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


BACKENDS = ("auto", "ptrace", "rewrite", "bpf")
PAGE_FAULTS = ("auto", "always", "never")
INTERFACES = ("auto", "always", "stdio", "never")
STACKS = ("auto", "off", "sites", "all")
LIGHT = (1 << 20, 64)
"""Limits of a light recording: bytes of counters per process, and number of first accesses that are recorded
one by one."""


_holds: dict[str, _native.StoreHold] = {}
"""Locks on stores whose tables this process still has to make, so that no other recorder replaces them."""


class RecordRefused(IodockError):
    """Is raised if nothing was recorded. `exit_status` is the status that a shell would return: 127 if the
    program was not found, 126 if it is not executable, else 1. `in_the_way` is true if an existing store
    could not be moved. In that case the program may be run without a recording."""

    def __init__(self, error: _native.NativeError, hint: str | None = None) -> None:
        super().__init__(str(error), hint or error.hint)
        self.exit_status = error.exit_status
        self.in_the_way = bool(getattr(error, "in_the_way", False))


def record(
    command: Sequence[str],
    store: str,
    *,
    backend: str = "auto",
    force: bool = False,
    page_faults: str = "auto",
    complete: bool = False,
    light: tuple[int, int] | None = None,
    ranks: tuple[str, bool] | None = None,
    interfaces: str = "auto",
    stacks: str = "auto",
) -> _native.RecordSummary:
    """Runs a command and records it. With COMPLETE, the recorder also records the calls before its library is
    loaded into the program. LIGHT makes it count calls, in this number of bytes per process, and record this
    number of first accesses. RANKS are the ranks whose calls it records nevertheless, and whether it counts
    calls of processes without a rank. INTERFACES decides whether it records calls of MPI-IO, too. STACKS
    decides which frames of each call it records. The result contains the name of the store, which may differ
    from the requested one. Raises RecordRefused."""
    _let_go(store)
    try:
        recorded = _native.record(
            list(command),
            store,
            backend=backend,
            force=force,
            page_faults=page_faults,
            complete=complete,
            light=light,
            ranks=ranks,
            interfaces=interfaces,
            stacks=stacks,
        )
    except _native.NativeError as error:
        raise RecordRefused(error, _is_store(command[0])) from None
    _holds[recorded["store"]] = recorded["hold"]
    return recorded


def begin_counting(store: str, light: tuple[int, int]) -> list[tuple[str, str]]:
    """Creates a store for programs that other processes start. Returns the environment variables that these
    programs need. Raises RecordRefused."""
    try:
        return _native.begin_counting(store, *light)[1]
    except _native.NativeError as error:
        raise RecordRefused(error) from None


def _is_store(program: str) -> str | None:
    """Returns a hint if the user named a store in place of a program. Otherwise returns None."""
    from pathlib import Path

    if not (Path(program) / "manifest.json").is_file():
        return None
    return f"this is a store: iodock diagnose {program}; record runs a program, and -o names its store"


def attach(
    pids: Sequence[int],
    store: str,
    *,
    backend: str = "auto",
    force: bool = False,
    group: str | None = None,
    page_faults: str = "auto",
) -> _native.RecordSummary:
    """Records running processes until they end or a stop signal arrives. If GROUP is given, records all
    processes of this cgroup instead. Raises RecordRefused."""
    _let_go(store)
    try:
        recorded = _native.attach(
            list(pids), store, backend=backend, force=force, group=group, page_faults=page_faults
        )
    except _native.NativeError as error:
        raise RecordRefused(error) from None
    _holds[recorded["store"]] = recorded["hold"]
    return recorded


def _let_go(store: str) -> None:
    hold = _holds.pop(store, None)
    if hold:
        hold.release()


def finish(store: str, progress: Callable[[int, int | None, int], None] | None = None) -> None:
    """Makes a recording's tables from its journal. Raises IodockError, in which case the journal is kept."""
    try:
        _native.finish_recording(store, progress=progress)
    except _native.NativeError as error:
        raise IodockError(str(error), error.hint) from None
    finally:
        _let_go(store)
