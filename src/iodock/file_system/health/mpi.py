"""Synchronises ranks through MPI, if mpi4py is installed, without any access to the file system under
test."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from typing import Any, Protocol

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.0001, 0.005


class Meeting(Protocol):
    """A barrier for all ranks."""

    def wait(self, on: Callable[[], bool]) -> bool:
        """Waits until all ranks are here. Returns False as soon as ON returns that waiting is useless."""


def meeting(size: int) -> Meeting | None:
    """Returns a barrier over MPI with SIZE ranks. None if mpi4py or its MPI is missing, or is not the MPI
    that started the ranks, in which case each rank finds itself alone."""
    try:
        from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]
    except (ImportError, RuntimeError):
        return None
    world = MPI.COMM_WORLD
    return _World(world) if world.Get_size() == size else None


class _World:
    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self._waits = False
        atexit.register(self._give_up)

    def wait(self, on: Callable[[], bool]) -> bool:
        """See `Meeting`. MPI_Barrier is not used, because no signal is handled while it waits."""
        request = self._communicator.Ibarrier()
        self._waits, pause = True, _FIRST_PAUSE_S
        while not request.Test():
            if not on():
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE_S)
        self._waits = False
        return True

    def _give_up(self) -> None:
        """Exits without MPI's finalisation, which would wait for a rank that will never come."""
        if self._waits:
            self._communicator.Abort(1)
