"""What a comparison of two runs, or of several runs of each, says: data only."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from iodock.program.findings import Finding
from iodock.shared.answer import Loss
from iodock.shared.message import Message


class Sureness(enum.Enum):
    """What can be said of a difference, given the runs that there are."""

    SAME = "same"
    """No difference in any run."""
    CLEAR = "clear"
    """With at least 4 runs of each, an exact test says that chance gives such a difference in less than 5 %
    of all cases."""
    NOISE = "noise"
    """The difference lies within the spread of the runs."""
    FEW = "few-runs"
    """The runs of one side all lie apart from those of the other, but there are too few to be sure."""
    SINGLE = "single-runs"
    """One run of each: how much runs differ anyway is not known."""
    UNKNOWN = "unknown"
    """One of the sides is not known."""


@dataclass(frozen=True, slots=True)
class Change:
    """One quantity before and after: its value in each run, in the unit that its name says."""

    before_runs: tuple[float | None, ...]
    after_runs: tuple[float | None, ...]
    sureness: Sureness
    p_value: float | None = None
    """Two-sided, of the exact test; None with fewer than 4 runs of each."""

    @property
    def before(self) -> float | None:
        """The median of the runs before; None where no run knows it."""
        return middle(self.before_runs)

    @property
    def after(self) -> float | None:
        """The median of the runs after."""
        return middle(self.after_runs)

    @property
    def difference(self) -> float | None:
        """After less before."""
        before, after = self.before, self.after
        return None if before is None or after is None else after - before

    @property
    def ratio(self) -> float | None:
        """After through before; None where there was nothing before."""
        before, after = self.before, self.after
        return None if before is None or after is None or before == 0 else after / before

    @property
    def spread(self) -> float | None:
        """Half the range of the runs, as a share of their median: that of the side whose runs differ more."""
        spreads = [_spread(side) for side in (self.before_runs, self.after_runs)]
        return max((one for one in spreads if one is not None), default=None)


def _spread(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    centre = middle(known)
    return (max(known) - min(known)) / 2 / centre if centre else None


def middle(values: Sequence[float | None]) -> float | None:
    """The median of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


MEASURES = ("total_time_ns", "count", "failed", "read_bytes", "written_bytes")
"""Of a call or a file: time summed over tasks, calls, failed calls, bytes read and written."""


@dataclass(frozen=True, slots=True)
class Row:
    """A call, a sort of I/O, or a file (or the files of a name pattern), before and after."""

    name: str
    changes: Mapping[str, Change]
    """By name, as in `MEASURES`."""
    matched: str = ""
    """How files were found to be the same ones: `name`, `place` (same path below the working directory),
    `star` (same but for what varies from run to run), `pattern`; `before` or `after` where only one side has
    them."""
    files: tuple[int, int] = (1, 1)
    """Files before and after, the most in any one run."""
    calls: tuple[Row, ...] = ()
    """Of a file: the calls whose change matters most to it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The first rows of a ranking, the others summed up, and the sum of all."""

    rows: tuple[Row, ...]
    other: Row | None
    total: Row
    of: int
    """Rows that there are in all."""
    files: int = 0
    """Of files: how many they stand for, before or after, whichever is more."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Files that changed by too little to be called faster or slower."""

    files: int
    change: Change
    """Of all of them together: time, or numbers of calls where times can't be compared."""
    least_ns: float
    """Less than this is noise,"""
    share: float
    """and less than this share of the file's time. Of several runs also what they differ by anyway."""


@dataclass(frozen=True, slots=True)
class SizeChange:
    """Accesses of one size class."""

    direction: str
    """`read` or `write`."""
    upper_bytes: int
    """The largest size of the class: 0, 1, 2, 4, 8, ... bytes."""
    count: Change
    total_time_ns: Change


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding that is gone, new, still there, or of which only one side can tell."""

    state: str
    """`gone`, `new`, `still`; `unseen` where the rule could not look on the side that lacks the finding."""
    before: Finding | None
    """The finding in that of the runs where it costs most; None where no run has it."""
    after: Finding | None
    cost_seconds: Change
    """A run without the finding counts as 0."""
    seen: tuple[int, int]
    """In how many runs before and after."""

    @property
    def finding(self) -> Finding:
        """The finding, as it is after, else as it was before."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Remark:
    """What stands beside the numbers, since it may explain or spoil them."""

    kind: str
    """`work`, `durations`, `capture`, `clock`, `losses`, `end`, `machine`, `runs` or `program`."""
    message: Message


@dataclass(frozen=True, slots=True)
class Work:
    """What numbers are divided by, so that runs that did unequal work can be compared."""

    name: str
    """`records`, `files`, `MiB`: singular or plural as the user wrote it."""
    before: tuple[float, ...]
    """Units of work of each run."""
    after: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunLabel:
    """One of the runs that were compared."""

    store: str
    command: str
    captured: str
    """`strace`, `ptrace`, ...; empty where not known."""
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that `iodock diff` says."""

    before: tuple[RunLabel, ...]
    after: tuple[RunLabel, ...]
    headline: Message
    sentences: tuple[Message, ...]
    remarks: tuple[Remark, ...]
    time: str | None
    """What times are: `elapsed`, `system-cpu` (truss -E), or None where they can't be compared."""
    work: Work | None
    """None: numbers are those of whole runs."""
    totals: Mapping[str, Change]
    """`wall_time_ns`, `io_time_ns` (wall time in I/O), `waiting_time_ns` (only in pipes and sockets),
    `rest_time_ns` (neither), then sums over all calls but those that wait: `MEASURES`, `files` (touched)."""
    parts: tuple[Row, ...]
    """By sort of I/O: data, metadata, seek, sync, map, other, waiting."""
    calls: Listing
    faster: Listing
    """Files whose calls take less time than before (make fewer calls, where times can't be compared)."""
    slower: Listing
    same_files: int
    """Files that did not change."""
    noise: Noise
    sizes: tuple[SizeChange, ...]
    findings: tuple[FindingChange, ...]
    files: Sequence[Row] = field(default=())
    """Every file, for the table in full; empty unless asked for."""
