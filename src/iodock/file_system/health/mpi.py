"""Synchronises ranks through MPI, if mpi4py is installed. No files are used, so the synchronisation does not
disturb the file system that is measured."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from typing import Any, Protocol

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.0001, 0.005


class Meeting(Protocol):
    """A barrier at which all ranks wait for each other."""

    def wait(self, on: Callable[[], bool]) -> bool:
        """Waits until all ranks have called it, and then returns True. Returns False as soon as ON returns
        False."""


def meeting(size: int) -> Meeting | None:
    """Returns a barrier over MPI for SIZE ranks. Returns None if mpi4py or its MPI library is missing. It
    also returns None if another MPI started the ranks, because each rank then finds itself alone."""
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
        """Implements `Meeting.wait`. It polls MPI_Ibarrier, because Python handles no signals while
        MPI_Barrier waits."""
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
        """Aborts MPI at exit if this rank is still waiting at a barrier. MPI_Finalize would otherwise wait
        for a rank that never arrives."""
        if self._waits:
            self._communicator.Abort(1)
