"""Ctrl-C while the SQL engine works: the engine looks at signals only between its tasks, and one task can
take hours."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from functools import cache

# An interrupt that comes just before a query starts is lost on it, so some more follow.
REPEATS, PAUSE_S = 20, 0.1


@cache
def watch() -> None:
    """From now on Ctrl-C stops the queries of every engine, in whatever thread. Only for the main thread."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Python writes the signal's number there at once, even while the main thread is in the engine.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_stop_queries, args=(reading,), name="interrupts", daemon=True).start()


def _stop_queries(reading: int) -> None:
    while numbers := os.read(reading, 64):
        if signal.SIGINT not in numbers:
            continue
        for _ in range(REPEATS):
            # Nothing to stop where no engine was needed so far, or its module is being imported just now.
            engines = sys.modules.get("iodock.program.store.engine")
            if stop := getattr(engines, "interrupt_all", None):
                # An engine that comes or goes just then: there is a next time.
                with contextlib.suppress(RuntimeError):
                    stop()
            time.sleep(PAUSE_S)
