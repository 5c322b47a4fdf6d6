"""The content of IOR's output before it becomes measurements, the same for text, JSON and CSV."""

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
    """Bytes/s."""
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
    """A whole output; for several concatenated ones the general information of the first."""

    version: str | None = None
    began: str | None = None
    finished: str | None = None
    command: str | None = None
    machine: str | None = None
    runs: list[Run] = field(default_factory=list)
    last_command: str | None = None
    """Command of the output that contains the following tests."""

    def commanded(self, command: str | None) -> None:
        """The command line of the following tests, if it is known."""
        self.command = self.command or command
        self.last_command = command

    def test(self, settings: dict[str, str]) -> None:
        """A test begins."""
        self.runs.append(Run(settings, command=self.last_command))


def spread_of_population(deviation: float | None, mean: float, count: int | None) -> float | None:
    """IOR prints the population's standard deviation (of 2 runs: half their distance)."""
    return sample_spread(deviation, mean, count)
