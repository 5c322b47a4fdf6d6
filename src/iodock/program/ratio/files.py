"""Reads several files, each with the reader for its format. Collects their losses and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from iodock.program.ratio.reader import Reader, Reading, ReadOptions
from iodock.program.ratio.record import Losses, Record, checked
from iodock.program.ratio.registry import find, node_names, recognise
from iodock.program.ratio.source import Progress, RatioError, Source, source_of
from iodock.shared.errors import RequestError

_TICK_RECORDS = 1 << 13


@dataclass(slots=True)
class Files:
    """Reads several files one after the other. `losses` and `notes` are complete after the last record of
    `records`."""

    paths: Sequence[str]
    form: str | None = None
    """Name of the reader; None: the format of each file is detected."""
    options: ReadOptions = field(default_factory=ReadOptions)
    standard_input: BinaryIO | None = None
    losses: Losses = field(default_factory=Losses)
    notes: dict[str, None] = field(default_factory=dict)
    readers: dict[str, Reader] = field(default_factory=dict)
    """The readers that were used, by name."""

    def __post_init__(self) -> None:
        if self.options.time_format is not None:
            if self.form not in (None, "time-format"):
                raise RequestError(
                    f"--time-format can't be combined with --from {self.form}", "leave one out"
                )
            self.form = "time-format"

    def records(self, progress: Progress | None = None) -> Iterator[Record]:
        """Yields the records of all files. Raises RatioError, StoreError or RequestError."""
        nodes = node_names(self.paths)
        count = 0
        for path, node in zip(self.paths, nodes, strict=True):
            source = source_of(path, self.standard_input)
            reader = self._reader(source)
            reading = Reading(source, self.options, self.losses, self.notes)
            total, several = source.total(), len(self.paths) > 1
            found = 0
            for record in checked(reader.read(reading), self.losses):
                found += 1
                if progress is not None and not (count + found) % _TICK_RECORDS:
                    progress(source.seen, total, count + found)
                yield record if record.node or not several else record._replace(node=node)
            count += found
            if not found:
                self.notes[f"{path}: has no times in the form of {reader.title}"] = None
        if not count:
            raise RatioError(
                "; ".join(self.notes), "check whether the files are of the kind given with --from"
            )

    def file_names(self) -> list[str]:
        """Returns the names of the files without their folders, for headings."""
        return [Source(path).name for path in self.paths]

    def _reader(self, source: Source) -> Reader:
        if self.form is not None:
            reader = find(self.form)
        else:
            reader, others = recognise(source)
            for other in others:
                self.notes[f"{source.path} also has times by {other.title}: --from {other.name}"] = None
        self.readers[reader.name] = reader
        return reader

    def usual_grouping(self) -> str:
        """Returns the default grouping. It is `command` if a reader returns one record per process, because
        there are then many records."""
        return "command" if any(one.by == "command" for one in self.readers.values()) else "record"
