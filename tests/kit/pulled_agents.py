"""Creates agents from which a collector pulls."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from batches import Part, frame
from collector_site import BEGIN, SECOND, sums, written
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.targets import Shown, Target
from iodock.centre.portal.puller import Pulling, pulling
from iodock.shared.settings import AgentLimits

PATIENCE_S = 60.0


def made(host: str, count: int) -> tuple[list[tuple[int, bytes]], int]:
    """Returns the frames of machine HOST, on which a job of the same name writes, and the number of bytes
    written."""
    frames = [(1, frame(1, [Part(BEGIN, [], full=True)], host=host))]
    for number in range(2, count + 1):
        at = BEGIN + number * SECOND
        frames.append((number, frame(number, [Part(at, [written(host, number * 100, at)])], host=host)))
    return frames, count * 100


def wait_for(what: str, is_there: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < ends, what
        time.sleep(0.02)


@contextlib.contextmanager
def pulled(
    folder: Path, *targets: Target, shown: Shown | None = None, limits: AgentLimits | None = None
) -> Iterator[tuple[Collector, list[str]]]:
    collector, said = Collector(folder), list[str]()
    wanted = Pulling(targets, shown or Shown(), 0.05)
    with pulling(collector, wanted, limits or AgentLimits(), said.append):
        yield collector, said
    collector.flush()
    # Deleting the collector releases the lock on its store, so that another one can use it.
    del collector
    gc.collect()


def stored(collector: Collector) -> dict[str, int]:
    collector.flush()
    return sums(collector.store)
