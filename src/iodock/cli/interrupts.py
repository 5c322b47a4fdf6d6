"""Handles Ctrl-C while the SQL engine runs: the engine checks signals only between its tasks, and one task
can take hours."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from functools import cache

# An interrupt has no effect on a query that is about to start, so it is repeated a few times.
REPEATS, PAUSE_S = 20, 0.1


@cache
def watch() -> None:
    """Makes Ctrl-C stop the queries of every engine, in any thread. Only the main thread may call this."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Python writes the signal's number to this descriptor immediately, even while the main thread is inside
    # the engine.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_stop_queries, args=(reading,), name="interrupts", daemon=True).start()


def _stop_queries(reading: int) -> None:
    while numbers := os.read(reading, 64):
        if signal.SIGINT not in numbers:
            continue
        for _ in range(REPEATS):
            # If no engine was used so far, or if its module is still being imported, there is nothing to
            # stop.
            engines = sys.modules.get("iodock.program.store.engine")
            if stop := getattr(engines, "interrupt_all", None):
                # An engine may be created or closed at this moment. The next repetition then handles it.
                with contextlib.suppress(RuntimeError):
                    stop()
            time.sleep(PAUSE_S)
