"""Defines the interface of a reader for one format of times. A reader has a name, a function that returns how
well it fits a file, and a function that yields the records of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from iodock.program.ratio.record import Losses, Record
from iodock.program.ratio.source import Source

_NUL_SHARE = 0.01
LONGEST_LINE = 4096
"""Longer lines are ignored: no line of times is longer, and the time of regular expressions may grow with the
square of the length."""


@dataclass(frozen=True)
class Sample:
    """Holds the parts of a file from which a reader may recognise its format."""

    path: str
    data: bytes
    """The first and the last MiB of the file, decompressed; empty for folders."""
    is_folder: bool = False

    @cached_property
    def text(self) -> str:
        """Returns the sample as text. Returns an empty text if the sample has so many NUL bytes that the file
        must be binary and not a damaged text."""
        if self.data.count(b"\0") > len(self.data) * _NUL_SHARE + 1:
            return ""
        return self.data.decode("utf-8", "replace").replace("\r\n", "\n")

    @cached_property
    def lines(self) -> list[str]:
        """Returns the lines of the text. Lines that are too long to contain times are replaced by empty
        lines."""
        return [line if len(line) <= LONGEST_LINE else "" for line in self.text.splitlines()]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Holds facts that a file does not contain and that the user must therefore provide."""

    time_format: str | None = None
    """The format that was passed to GNU `time -f`."""
    assistant_cores: int | None = None
    """Number of cores of each node that PJM counts but the job can't use; None: it follows from the kind of
    node."""
    nodes_apart: bool = False
    """Whether to return a job's nodes separately, if the source has them."""


@dataclass(slots=True)
class Reading:
    """Holds one file that is being read, with the losses and notes of all files so far."""

    source: Source
    options: ReadOptions
    losses: Losses
    notes: dict[str, None]
    """Sentences about the file, without duplicates, in order of appearance."""

    def at(self, line: int) -> str:
        """Formats a position as `FILE:LINE`."""
        return f"{self.source.path}:{line}"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yields number and text of each line that is not too long to contain times. Longer lines are output
        of the measured program."""
        return ((number, line) for number, line in self.source.lines() if len(line) <= LONGEST_LINE)

    def note(self, text: str) -> None:
        """Adds a note for the answer, unless the same note exists."""
        self.notes[text] = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Describes the reader of one format."""

    name: str
    title: str
    """Name of the program that writes the format."""
    sniff: Callable[[Sample], float]
    """Returns how well the reader fits the file, from 0 (not at all) to 1 (certain)."""
    read: Callable[[Reading], Iterator[Record]]
    by: str = "record"
    """Default grouping of the reader's records: `record` or `command`."""
