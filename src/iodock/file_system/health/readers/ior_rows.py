"""Defines the rows and settings in IOR's output. The readers of text, JSON and CSV fill the same types."""

from __future__ import annotations

from dataclasses import dataclass, field

from iodock.file_system.health.readers.base import sample_spread

MIB = 1 << 20


@dataclass
class Row:
    """One row of a result: an operation of one iteration, or the summary of an operation over all
    iterations."""

    operation: str
    line: int
    bandwidth: float | None
    """Bandwidth in bytes/s."""
    seconds: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    spread: float | None = None
    of_all: bool = False
    size_bytes: int | None = None
    processes: int | None = None


@dataclass
class Run:
    """One test of IOR: its settings under IOR's names, and its rows."""

    settings: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    command: str | None = None


@dataclass
class Result:
    """All tests in a file. If the file contains the output of several commands, version, times, command and
    machine are those of the first one."""

    version: str | None = None
    began: str | None = None
    finished: str | None = None
    command: str | None = None
    machine: str | None = None
    runs: list[Run] = field(default_factory=list)
    last_command: str | None = None
    """Command line of the output to which the following tests belong."""

    def commanded(self, command: str | None) -> None:
        """Stores the command line to which the following tests belong, or None if it is not known."""
        self.command = self.command or command
        self.last_command = command

    def test(self, settings: dict[str, str]) -> None:
        """Starts a test with these settings."""
        self.runs.append(Run(settings, command=self.last_command))


def spread_of_population(deviation: float | None, mean: float, count: int | None) -> float | None:
    """Converts the standard deviation that IOR prints, which is that of a population (n), to a spread (n - 1,
    divided by the mean)."""
    return sample_spread(deviation, mean, count)
