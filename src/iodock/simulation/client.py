"""Simulates the counters of `llite` on the login node, which count the operations of its users outside of
jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodock.simulation.counters import Tallies, add_all
from iodock.simulation.population import LOGIN_NODE

if TYPE_CHECKING:
    from iodock.simulation.centre import Centre

_CALLS = ("read_bytes", "write_bytes", "open", "close", "getattr", "setattr", "mknod", "mkdir", "unlink")


def client_tallies(centre: Centre) -> Tallies:
    """Returns the tally of each operation since the simulation began. A reboot of a server does not reset the
    counters of a client."""
    done: Tallies = {}
    for stream in centre.streams:
        if stream.job.nodes == (LOGIN_NODE,):
            add_all(done, stream.truth_at(centre.now_ns))
    return {name: done[name] for name in _CALLS if name in done}
