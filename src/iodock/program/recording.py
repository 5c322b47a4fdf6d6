"""The door to the Rust side that records programs.

Loads next to nothing, as `iodock.cli.recording` which uses it: what is loaded is part of what recording a
short program costs.
"""

from __future__ import annotations

from iodock import _native
from iodock.shared.errors import IodockError

TYPE_CHECKING = False
"""As typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


BACKENDS = ("auto", "ptrace", "rewrite", "bpf")
PAGE_FAULTS = ("auto", "always", "never")
INTERFACES = ("auto", "always", "never")
STACKS = ("off", "sites", "all")
LIGHT = (1 << 20, 64)
"""What a light recording takes: bytes of counters a process, and accesses that are kept whole."""


_holds: dict[str, _native.StoreHold] = {}
"""Of stores whose tables this process has still to make: no other recorder replaces them meanwhile."""


class RecordRefused(IodockError):
    """Nothing was recorded. `exit_status` is what a shell would give: 127 not found, 126 not executable,
    else 1. `in_the_way`: because a store that is there can't make way, which is no reason not to run."""

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
    interfaces: str = "auto",
    stacks: str = "off",
) -> _native.RecordSummary:
    """Runs a command and records it; COMPLETE: also what is done before a recorder inside of a program is
    there; LIGHT: calls are counted, in so many bytes a process, and its first so many accesses kept;
    INTERFACES: when calls of MPI-IO are recorded, too; STACKS: which frames of each call. What it gives
    names the store, which need not be called as was asked. Raises RecordRefused."""
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
            interfaces=interfaces,
            stacks=stacks,
        )
    except _native.NativeError as error:
        raise RecordRefused(error, _is_store(command[0])) from None
    _holds[recorded["store"]] = recorded["hold"]
    return recorded


def begin_counting(store: str, light: tuple[int, int]) -> list[tuple[str, str]]:
    """Makes a store for programs that others start, and gives the variables that these are to have. Raises
    RecordRefused."""
    try:
        return _native.begin_counting(store, *light)[1]
    except _native.NativeError as error:
        raise RecordRefused(error) from None


def _is_store(program: str) -> str | None:
    """What to do where a store was given in place of a program."""
    from pathlib import Path

    if not (Path(program) / "manifest.json").is_file():
        return None
    return f"it is a store: iodock diagnose {program}; record runs a program, and -o names its store"


def attach(
    pids: Sequence[int],
    store: str,
    *,
    backend: str = "auto",
    force: bool = False,
    group: str | None = None,
    page_faults: str = "auto",
) -> _native.RecordSummary:
    """Records running processes until they end, or all of the cgroup `group`; until a signal asks to stop.
    Raises RecordRefused."""
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
    """Makes a recording's tables of its journal. Raises IodockError; the journal stays then."""
    try:
        _native.finish_recording(store, progress=progress)
    except _native.NativeError as error:
        raise IodockError(str(error), error.hint) from None
    finally:
        _let_go(store)
