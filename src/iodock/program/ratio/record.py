"""Defines the result of a reader: the times of one program, process or job. Counts the input that readers
could not use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from iodock.shared.answer import Loss
from iodock.shared.bounded.doubts import MOST_SECONDS


class Record(NamedTuple):
    """Holds the times of one program, process or job, in seconds. None means that a value is not known.

    This is a tuple instead of a dataclass, because a year of accounting has millions of records, and Python
    creates tuples in half the time.
    """

    name: str
    """Command or job name, or else the place of the measurement."""
    real: float | None
    """Elapsed time; for several processes, the sum of their elapsed times. Below 0: the clock ran
    backwards."""
    user: float | None
    system: float | None
    cores: float | None = None
    """Number of cores over which the user time is distributed; None: the source does not say; 0: the source
    says that it does not know."""
    runs: int = 1
    """Number of processes, runs or jobs that were summed."""
    owner: str = ""
    """User name, or id if the source has only that."""
    node: str = ""
    at: str = ""
    """Where the record was read, as `FILE:LINE` or `FILE`."""
    both: float | None = None
    """Sum of user and system time, if the source does not separate them."""
    io_bytes: int | None = None
    """Bytes of file I/O, if the source counts them."""
    io_share: float | None = None
    """Share of the elapsed time in calls on files, if the source recorded it."""


CURES: Mapping[str, str] = {
    "damaged-line": "the file was not read; check the line that is named, or write the file again",
    "damaged-record": "bytes that are not accounting records were skipped: the file was cut or overwritten",
    "cut-record": "the file ends inside a record: it was copied while written, or the disk was full",
    "double-row": "a row that appears twice is counted once: overlapping files were concatenated",
    "no-times": "the source has no elapsed time for it, or an impossible one",
    "not-ended": "jobs without an end were left out: read the records again when the jobs have ended",
    "clock-ran-back": "the end lies before the start: correct the node's clock, or leave these out",
    "no-cpu-time": (
        "no CPU time was counted although the job ran: task accounting is off, sacct was "
        "called with -X, or the job did nothing"
    ),
    "no-cores": (
        "the source has 0 cores, or an impossible number, so there is no ratio; give the number "
        "with --cores N"
    ),
    "cut-node": (
        "a job's node is missing or lacks its times: the job's own I/O volume is used, and its "
        "CPU times are those of the other nodes; copy the file again"
    ),
    "zero-elapsed": "shorter than the resolution of the clock, so there is no ratio: measure a longer run",
}
"""Maps the name of a loss to what the user can do about it."""

_MOST_CORES = 1 << 31
"""No machine has this number of cores: batch systems write 4294967294 and 4294967295 for unknown values."""


@dataclass(slots=True)
class Losses:
    """Counts the input that a reader could not use, by kind of loss. Keeps the place of the first loss of
    each kind."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def count(self, name: str, where: str) -> None:
        """Counts one loss. NAME is a key of CURES, and WHERE has the form `FILE:LINE`."""
        self.counts[name] = self.counts.get(name, 0) + 1
        self.first.setdefault(name, where)

    def listed(self) -> tuple[Loss, ...]:
        """Returns the losses with their cures. A kind of loss that occurred earlier comes first."""
        return tuple(
            Loss(name, count, f"{CURES[name]} (first: {self.first[name]})")
            for name, count in self.counts.items()
        )


def checked(records: Iterable[Record], losses: Losses) -> Iterator[Record]:
    """Yields all records, in which impossible values are replaced by None (or 0 for the number of cores). A
    record whose ratio can't be computed counts as a loss named after the reason."""
    for record in records:
        real = record.real
        if real is not None and real >= MOST_SECONDS:
            real, record = None, record._replace(real=None)
        if record.cores is not None and record.cores >= _MOST_CORES:
            record = record._replace(cores=0)
        if real is None:
            losses.count("no-times", record.at)
        elif real < 0:
            losses.count("clock-ran-back", record.at)
        elif real == 0:
            losses.count("zero-elapsed", record.at)
        elif record.user is None and record.both is None:
            losses.count("no-cpu-time", record.at)
        elif record.cores == 0:
            losses.count("no-cores", record.at)
        yield record


def utilisation(record: Record, cores: float | None = None) -> float | None:
    """Returns (user / cores) / real. If the source does not separate user and system time, their sum takes
    the place of the user time. If the record has no number of cores, CORES is used; if this is also None, one
    core is assumed. Returns None without an elapsed time, or if the record has 0 cores and CORES is None."""
    spent = record.user if record.user is not None else record.both
    return _share(record, spent, cores)


def system_share(record: Record, cores: float | None = None) -> float | None:
    """Returns (system / cores) / real, with the same rules for cores as `utilisation`."""
    return _share(record, record.system, cores)


def _share(record: Record, spent: float | None, cores: float | None) -> float | None:
    if spent is None or not record.real or record.real < 0:
        return None
    among = core_count(record, cores)
    return None if among is None else spent / among / record.real


def core_count(record: Record, cores: float | None = None) -> float | None:
    """Returns the number of cores by which user time is divided: the record's number, else CORES, else 1.
    Returns None if the record has 0 cores and CORES is None."""
    if record.cores:
        return record.cores
    return cores if cores is not None or record.cores == 0 else 1.0
