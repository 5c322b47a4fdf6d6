"""Creates made-up histories of probes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from iodock.file_system.probe.daily import HOUR_NS, local_hour
from iodock.file_system.probe.history import Watch
from iodock.file_system.probe.judge import DAY_NS
from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.records import Kind, Outcome, Round

START = 1_700_000_000_000_000_000 // DAY_NS * DAY_NS


EVERY_S = 600.0


OPERATIONS = (Operation.CREATE, Operation.FSYNC)


Level = Callable[[int], float]
"""Time since the start in ns -> factor of the usual time."""


def made_up(seed: int, days: float, level: Level = lambda _: 1.0, spread: float = 0.4) -> Watch:
    """Returns a history of probes whose times are log-normally distributed, like measured ones."""
    chance = random.Random(seed)
    watch = Watch("node1", "/work", False, EVERY_S, 30.0)
    for number in range(int(days * 86400 / EVERY_S)):
        at = int(number * EVERY_S * 1e9)
        spans = {
            one: Outcome(Kind.ANSWERED, int(2e6 * level(at) * math.exp(chance.gauss(0, spread))))
            for one in OPERATIONS
        }
        watch.add(Round(START + at, "r", number, spans))
    watch.finish()
    return watch


def hours_of(at: int) -> int:
    return local_hour((START + at) // HOUR_NS)[1]
