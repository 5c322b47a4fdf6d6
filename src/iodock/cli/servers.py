"""Obtains the state of file servers while a program ran. Recordings and the monitor are independent parts of
iodock; only this module connects them (docs/decisions/0038), and they exchange plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iodock.cli.monitor_store import StoreOptions
    from iodock.program.store import Store
    from iodock.shared.errors import IodockError
    from iodock.shared.meanwhile import Meanwhile, NotJoined, OtherUser, RunTime, ServerMoment, Servers
    from iodock.shared.settings import ServerReadings, Settings

_PROMETHEUS_S = 1.0
"""Time limit for an answer of a Prometheus, s. A thread that was given up ends after it. Prometheus requires
whole seconds."""


def servers_of(store: Store, settings: Settings) -> Servers | None:
    """Opens the monitor for a run. Returns None if the settings name no store of a monitor. If the store
    can't be opened, the error is raised only when the result is queried, so that other parts of the output
    are still printed."""
    if settings.servers.store is None:
        return None
    from iodock.program.meanwhile.run_time import run_time

    run = run_time(store, settings)
    return _Unasked(settings.servers.store, "no-date") if run is None else _asked(run, settings)


def servers_in_time(store: Store, settings: Settings) -> Servers | None:
    """Opens the monitor in the same way as `servers_of`, but waits at most half a second for its answers.
    After that, queries raise IodockError."""
    if settings.servers.store is None:
        return None
    from iodock.cli.patience import Patient
    from iodock.program.meanwhile.run_time import run_time

    run = run_time(store, settings)
    if run is None:
        return _Unasked(settings.servers.store, "no-date")
    return Patient(settings.servers.store, lambda: _asked(run, settings, _PROMETHEUS_S))


def _asked(run: RunTime, settings: Settings, patience_s: float | None = None) -> Servers:
    from iodock.centre.alongside.run import Alongside
    from iodock.centre.monitor.questions.ids import job_ids
    from iodock.shared.errors import IodockError

    readings = settings.servers
    try:
        place = _place(readings)
        return Alongside(
            place.opened(patience_s), run, settings.states, place.store, readings.clocks_agree_s,
            job_ids(readings.jobid_name),
        )  # fmt: skip
    except IodockError as error:
        return _Unasked(str(readings.store), None, error)


def _place(readings: ServerReadings) -> StoreOptions:
    from iodock.cli.monitor_store import StoreOptions

    def file(name: str | None) -> Path | None:
        return None if name is None else Path(name).expanduser()

    named = str(readings.store)
    folder = named if "://" in named else str(Path(named).expanduser())
    return StoreOptions(
        folder, file(readings.store_token), readings.store_user or "", file(readings.store_password),
        file(readings.store_ca),
    )  # fmt: skip


@dataclass(frozen=True)
class _Unasked:
    """Represents a monitor that can't be queried, with the reason."""

    store: str
    why_not: NotJoined | None
    trouble: IodockError | None = None

    def meanwhile(self) -> Meanwhile | None:
        """Implements `Servers.meanwhile`. Returns None, or raises IodockError if the store could not be
        opened."""
        if self.trouble is not None:
            raise self.trouble
        return None

    def at(self, begin_ns: int, end_ns: int) -> Sequence[ServerMoment]:
        """Implements `Servers.at`. The result is always empty."""
        return ()

    def others(self, begin_ns: int, end_ns: int) -> Sequence[OtherUser] | None:
        """Implements `Servers.others`. The result is always None."""
        return None
