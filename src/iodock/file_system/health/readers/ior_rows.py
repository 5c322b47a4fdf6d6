"""The content of IOR's output before it becomes measurements. It is the same for text, JSON and CSV."""

from __future__ import annotations

from dataclasses import dataclass, field

from iodock.file_system.health.readers.base import sample_spread

MIB = 1 << 20


@dataclass
class Row:
    """One line of a result: an operation of one iteration, or of all of them."""

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
    """One test: its settings under IOR's names, and its rows."""

    settings: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    command: str | None = None


@dataclass
class Result:
    """The content of a whole file. If several outputs were appended, the general information is that of the
    first."""

    version: str | None = None
    began: str | None = None
    finished: str | None = None
    command: str | None = None
    machine: str | None = None
    runs: list[Run] = field(default_factory=list)
    last_command: str | None = None
    """Command line of the output to which the following tests belong."""

    def commanded(self, command: str | None) -> None:
        """Notes the command line of the following tests, if it is known."""
        self.command = self.command or command
        self.last_command = command

    def test(self, settings: dict[str, str]) -> None:
        """Begins a test."""
        self.runs.append(Run(settings, command=self.last_command))


def spread_of_population(deviation: float | None, mean: float, count: int | None) -> float | None:
    """Converts the population standard deviation that IOR prints (of 2 runs: half their distance) to a
    spread."""
    return sample_spread(deviation, mean, count)
