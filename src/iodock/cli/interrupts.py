"""Handles Ctrl-C while the SQL engine executes a query. The engine itself checks for signals only between its
tasks, and a single task may take hours."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from functools import cache

# The engine ignores an interrupt while a query is starting, so the interrupt is repeated every 0.1 s, 20
# times in total.
REPEATS, PAUSE_S = 20, 0.1


@cache
def watch() -> None:
    """Starts a thread that interrupts the queries of all engines at Ctrl-C. This function must be called in
    the main thread, because Python accepts signal settings only there."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Python's C signal handler writes the number of the signal to this descriptor at once, even while the
    # main thread executes a query.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_stop_queries, args=(reading,), name="interrupts", daemon=True).start()


def _stop_queries(reading: int) -> None:
    while numbers := os.read(reading, 64):
        if signal.SIGINT not in numbers:
            continue
        for _ in range(REPEATS):
            # `engines` is None if no engine was used so far. The attribute may be missing while the module is
            # being imported. No query is running in either case.
            engines = sys.modules.get("iodock.program.store.engine")
            if stop := getattr(engines, "interrupt_all", None):
                # The set of engines may change while `interrupt_all` iterates over it. The next repetition
                # then interrupts the queries.
                with contextlib.suppress(RuntimeError):
                    stop()
            time.sleep(PAUSE_S)
