"""What a reader is: a name, how sure it is of a file, and a function from file to records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from iodock.program.ratio.record import Losses, Record
from iodock.program.ratio.source import Source

_NUL_SHARE = 0.01
LONGEST_LINE = 4096
"""No line of times is longer; regular expressions may take the square of a line's length."""


@dataclass(frozen=True)
class Sample:
    """What a reader may look at to recognise a file."""

    path: str
    data: bytes
    """The first and the last MiB, unpacked; empty for folders."""
    is_folder: bool = False

    @cached_property
    def text(self) -> str:
        """As text; empty where there are more NUL bytes than damage to a text leaves: that is binary."""
        if self.data.count(b"\0") > len(self.data) * _NUL_SHARE + 1:
            return ""
        return self.data.decode("utf-8", "replace").replace("\r\n", "\n")

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines; of those that are too long for times nothing."""
        return [line if len(line) <= LONGEST_LINE else "" for line in self.text.splitlines()]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user must say because no file does."""

    time_format: str | None = None
    """As given to GNU `time -f`."""
    assistant_cores: int | None = None
    """Cores of each node that PJM counts and the job can't use; None: taken from the kind of node."""
    nodes_apart: bool = False
    """Whether a job's nodes are wanted one by one, where the source has them."""


@dataclass(slots=True)
class Reading:
    """One file being read: what was lost, and what must be said about it."""

    source: Source
    options: ReadOptions
    losses: Losses
    notes: dict[str, None]
    """Sentences, each once, in the order in which they came up."""

    def at(self, line: int) -> str:
        """`FILE:LINE`."""
        return f"{self.source.path}:{line}"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Number and text of lines that are short enough for times; others are a program's own output."""
        return ((number, line) for number, line in self.source.lines() if len(line) <= LONGEST_LINE)

    def note(self, text: str) -> None:
        """Something that must stand beside the numbers."""
        self.notes[text] = None


@dataclass(frozen=True, slots=True)
class Reader:
    """One format."""

    name: str
    title: str
    """What writes it."""
    sniff: Callable[[Sample], float]
    """How sure it is that the file is its own: 0 not at all, 1 certain."""
    read: Callable[[Reading], Iterator[Record]]
    by: str = "record"
    """How its records are shown unless the user says: `record` or `command`."""
