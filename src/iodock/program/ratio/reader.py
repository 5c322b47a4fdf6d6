"""A reader: its name, a function that rates how well it fits a file, and a function from file to records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from iodock.program.ratio.record import Losses, Record
from iodock.program.ratio.source import Source

_NUL_SHARE = 0.01
LONGEST_LINE = 4096
"""No line of times is longer; regular expressions may take time in the square of a line's length."""


@dataclass(frozen=True)
class Sample:
    """The parts of a file that a reader may use to recognise it."""

    path: str
    data: bytes
    """The first and the last MiB, decompressed; empty for folders."""
    is_folder: bool = False

    @cached_property
    def text(self) -> str:
        """As text; empty if there are more NUL bytes than in a damaged text: then the file is binary."""
        if self.data.count(b"\0") > len(self.data) * _NUL_SHARE + 1:
            return ""
        return self.data.decode("utf-8", "replace").replace("\r\n", "\n")

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines, without those that are too long for times."""
        return [line if len(line) <= LONGEST_LINE else "" for line in self.text.splitlines()]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Facts that the user must supply because files do not contain them."""

    time_format: str | None = None
    """As passed to GNU `time -f`."""
    assistant_cores: int | None = None
    """Cores of each node that PJM counts but the job can't use; None: derived from the kind of node."""
    nodes_apart: bool = False
    """Whether to return a job's nodes separately, if the source has them."""


@dataclass(slots=True)
class Reading:
    """One file being read, with its losses and notes."""

    source: Source
    options: ReadOptions
    losses: Losses
    notes: dict[str, None]
    """Sentences without duplicates, in order of appearance."""

    def at(self, line: int) -> str:
        """`FILE:LINE`."""
        return f"{self.source.path}:{line}"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Number and text of lines that are short enough for times; longer lines are a program's own
        output."""
        return ((number, line) for number, line in self.source.lines() if len(line) <= LONGEST_LINE)

    def note(self, text: str) -> None:
        """Adds a note that is shown with the numbers."""
        self.notes[text] = None


@dataclass(frozen=True, slots=True)
class Reader:
    """One format."""

    name: str
    title: str
    """Program that writes it."""
    sniff: Callable[[Sample], float]
    """How well the reader fits the file: 0 not at all, 1 certain."""
    read: Callable[[Reading], Iterator[Record]]
    by: str = "record"
    """Default grouping of its records: `record` or `command`."""
