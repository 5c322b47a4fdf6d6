"""File servers during a program's run. Only this module connects the parts for programs and for centres
(docs/decisions/0038). They exchange plain data."""

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
    """Opens the monitor for this run; None: the settings name no store. If a store can't be opened,
    IodockError is raised when it is queried and not here, so that the rest of the result is still shown."""
    if settings.servers.store is None:
        return None
    from iodock.program.meanwhile.run_time import run_time

    run = run_time(store, settings)
    return _Unasked(settings.servers.store, "no-date") if run is None else _asked(run, settings)


def servers_in_time(store: Store, settings: Settings) -> Servers | None:
    """Does the same as `servers_of`, but gives up after half a second and prints one line about it."""
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
    """Stands for a store that can't be queried, and gives the reason."""

    store: str
    why_not: NotJoined | None
    trouble: IodockError | None = None

    def meanwhile(self) -> Meanwhile | None:
        """See `Servers`. Raises IodockError."""
        if self.trouble is not None:
            raise self.trouble
        return None

    def at(self, begin_ns: int, end_ns: int) -> Sequence[ServerMoment]:
        """See `Servers`."""
        return ()

    def others(self, begin_ns: int, end_ns: int) -> Sequence[OtherUser] | None:
        """See `Servers`."""
        return None
