"""Defines the result of a comparison of two runs, or of several runs on each side. This module contains only
data."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from iodock.program.findings import Finding
from iodock.shared.answer import Loss
from iodock.shared.message import Message


class Sureness(enum.Enum):
    """Lists the conclusions that the runs allow about a difference."""

    SAME = "same"
    """There is no difference in any run."""
    CLEAR = "clear"
    """The difference is significant. There are at least 4 runs on each side, and in an exact test chance
    gives such a difference in less than 5 % of all cases."""
    NOISE = "noise"
    """The difference is within the spread of the runs."""
    FEW = "few-runs"
    """All runs of one side differ from all runs of the other, but there are too few to be sure."""
    SINGLE = "single-runs"
    """There is one run on each side, so the spread of runs is not known."""
    UNKNOWN = "unknown"
    """The value of one side is not known."""


@dataclass(frozen=True, slots=True)
class Change:
    """Holds the values of one quantity in each run before and after the change. The name of the quantity
    contains the unit."""

    before_runs: tuple[float | None, ...]
    after_runs: tuple[float | None, ...]
    sureness: Sureness
    p_value: float | None = None
    """Two-sided p-value of the exact test; None if there are fewer than 4 runs on each side."""

    @property
    def before(self) -> float | None:
        """Returns the median of the runs before the change, or None if it is not known for any run."""
        return middle(self.before_runs)

    @property
    def after(self) -> float | None:
        """Returns the median of the runs after the change, or None if it is not known for any run."""
        return middle(self.after_runs)

    @property
    def difference(self) -> float | None:
        """Returns the median after the change minus the median before it, or None if one of them is not
        known."""
        before, after = self.before, self.after
        return None if before is None or after is None else after - before

    @property
    def ratio(self) -> float | None:
        """Returns the median after the change divided by the median before it. Returns None if one is not
        known or the median before is 0."""
        before, after = self.before, self.after
        return None if before is None or after is None or before == 0 else after / before

    @property
    def spread(self) -> float | None:
        """Returns half the range of the runs as a share of their median, for the side on which this is
        larger. Returns None if it is not known for any side."""
        spreads = [_spread(side) for side in (self.before_runs, self.after_runs)]
        return max((one for one in spreads if one is not None), default=None)


def _spread(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    centre = middle(known)
    return (max(known) - min(known)) / 2 / centre if centre else None


def middle(values: Sequence[float | None]) -> float | None:
    """Returns the median of the known values, or None if no value is known."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


MEASURES = ("total_time_ns", "count", "failed", "read_bytes", "written_bytes")
"""Quantities of a call or a file: time summed over tasks, calls, failed calls, bytes read and written."""


@dataclass(frozen=True, slots=True)
class Row:
    """Holds the changes of a call, a kind of I/O, a file, or all files of a name pattern."""

    name: str
    changes: Mapping[str, Change]
    """Change of each quantity in `MEASURES`, by its name."""
    matched: str = ""
    """How the file was matched: `name`, `place` (same path below the working directory), `star` (same except
    for parts that vary from run to run), `pattern`; `before` or `after` if only one side has it."""
    files: tuple[int, int] = (1, 1)
    """Number of files before and after. Each is the maximum over the runs."""
    calls: tuple[Row, ...] = ()
    """For a file, the calls that contribute most to its change."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Holds the first rows of a ranking, the sum of the other rows, and the sum of all rows."""

    rows: tuple[Row, ...]
    other: Row | None
    total: Row
    of: int
    """Total number of rows."""
    files: int = 0
    """Number of files that the rows represent, before or after, whichever is more; 0 if rows are not
    files."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Describes the files that changed by too little to be called faster or slower."""

    files: int
    change: Change
    """Sum of the changes of these files: of time, or of numbers of calls if times are not comparable."""
    least_ns: float
    """A difference below this is noise, ns."""
    share: float
    """A difference below this share of the file's time is noise. With several runs, a difference within their
    spread is noise, too."""


@dataclass(frozen=True, slots=True)
class LineChange:
    """Holds the change of one source line of the program. The line may have another number after the
    change."""

    file: str
    """Name of the source file, without its folder."""
    function: str | None
    lines: tuple[int | None, int | None]
    """Number of the line before and after; None: the line makes no calls in that version."""
    changes: Mapping[str, Change]
    """Change of each quantity in `MEASURES`, by its name."""


@dataclass(frozen=True, slots=True)
class SizeChange:
    """Holds the change in the number and time of accesses of one size class."""

    direction: str
    """`read` or `write`."""
    upper_bytes: int
    """The largest size in the class: 0, 1, 2, 4, 8, ... bytes."""
    count: Change
    total_time_ns: Change


@dataclass(frozen=True, slots=True)
class FindingChange:
    """Describes a finding that disappeared, is new or remains, or whose rule could run on one side only."""

    state: str
    """`gone`, `new`, `still`; `unseen` if the rule could not run on the side without the finding."""
    before: Finding | None
    """The finding in the run in which it costs most; None if no run has it."""
    after: Finding | None
    cost_seconds: Change
    """Cost of the finding. A run without the finding counts as 0."""
    seen: tuple[int, int]
    """Number of runs that have the finding, before and after."""

    @property
    def finding(self) -> Finding:
        """Returns the finding in a run after the change. If no such run has it, returns the finding before
        the change."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Remark:
    """Holds a note on a fact that may explain or distort the numbers."""

    kind: str
    """`work`, `durations`, `capture`, `clock`, `losses`, `end`, `machine`, `runs` or `program`."""
    message: Message


@dataclass(frozen=True, slots=True)
class Work:
    """Describes the unit of work by which numbers are divided. It makes runs comparable that did different
    amounts of work."""

    name: str
    """Name of the unit, such as `records`, `files`, `MiB`: singular or plural as the user wrote it."""
    before: tuple[float, ...]
    """Number of units of work in each run."""
    after: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunLabel:
    """Describes one of the runs that were compared."""

    store: str
    command: str
    captured: str
    """How the run was captured: `strace`, `ptrace`, ...; empty if not known."""
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds the result of `iodock diff`."""

    before: tuple[RunLabel, ...]
    after: tuple[RunLabel, ...]
    headline: Message
    sentences: tuple[Message, ...]
    remarks: tuple[Remark, ...]
    time: str | None
    """Kind of the times: `elapsed`, `system-cpu` (truss -E), or None if they are not comparable."""
    work: Work | None
    """Unit of work; None: the numbers are those of whole runs."""
    totals: Mapping[str, Change]
    """`wall_time_ns`, `io_time_ns` (wall time in I/O), `waiting_time_ns` (only in pipes and sockets),
    `rest_time_ns` (neither), then sums over all calls except those that wait: `MEASURES`, `files`
    (accessed)."""
    parts: tuple[Row, ...]
    """Changes by kind of I/O: data, metadata, seek, sync, map, other, waiting."""
    calls: Listing
    faster: Listing
    """Files whose calls take less time than before (or make fewer calls, if times are not comparable)."""
    slower: Listing
    same_files: int
    """Number of files that did not change."""
    noise: Noise
    sizes: tuple[SizeChange, ...]
    findings: tuple[FindingChange, ...]
    lines: tuple[LineChange, ...] = ()
    """Lines whose calls changed most; empty if a run has no source lines."""
    files: Sequence[Row] = field(default=())
    """All files, for the full table; empty unless requested."""
