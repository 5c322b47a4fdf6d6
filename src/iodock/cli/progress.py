"""Shows a progress bar on stderr, with the rate and the remaining time. It appears only on a terminal, and
only if the work takes more than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from iodock.cli.spoken import language

PATIENCE_S = 1.0
_DAY_S = 86400.0


class ProgressBar:
    """A progress bar, which is used as a context manager. Callers call the object with the amount done, the
    total amount (or None), and the number of items, as often as they like."""

    def __init__(self, label: str, quiet: bool, noun: str = "calls", rated: bool = True) -> None:
        """NOUN is the plural of the items. RATED states whether the rate is shown, in millions of items per
        second."""
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
            # rich estimates the remaining time from the last half minute by default. If single steps take
            # minutes, that period may contain no completed step.
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
