"""A progress bar on stderr, with rate and remaining time, for work that takes over a second. It is only shown
on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from iodock.cli.spoken import language

PATIENCE_S = 1.0
_DAY_S = 86400.0


class ProgressBar:
    """Must be called with (bytes, total bytes or None, calls), as often as desired, and used as a context
    manager."""

    def __init__(self, label: str, quiet: bool, noun: str = "calls", rated: bool = True) -> None:
        """RATED: show the rate in millions per second."""
        self._label = label
        self._noun = noun
        self._rated = rated
        self._shown = not quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int | None, calls: int) -> None:
        if not self._shown or time.monotonic() - self._started < PATIENCE_S:
            return
        if self._bar is None:
            self._start()
        rate = calls / (time.monotonic() - self._started)
        said = f"{calls:,} {self._noun}" + (f", {rate / 1e6:.2f} M/s" if self._rated else "")
        self._bar.update(self._task, completed=done, total=total, rate=said)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn(language().gettext("left")),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            # The default of rich is half a minute. Steps may take minutes each, so none would end within it.
            speed_estimate_period=30.0 if self._rated else _DAY_S,
        )
        self._bar.start()
        self._task = self._bar.add_task(language().told(self._label), total=None, rate="")

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
