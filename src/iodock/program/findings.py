"""Defines the result of a diagnosis as data. It does not depend on rules, output formats or languages."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from iodock.shared.message import Message, Scalar

IO_FINE = 0.05
"""If I/O takes a smaller share of the wall time than this, it is not the problem."""
IO_HEAVY = 0.4
"""If I/O takes at least this share of the wall time, it dominates the run."""
REDUNDANT_FACTOR = 2.0
"""If the volume is at least this multiple of the expected one, the same bytes were moved more than once."""
HIDES_CALLS = frozenset(
    {
        "cut-lines",
        "darshan-cut-region",
        "darshan-damaged-region",
        "darshan-newer-module",
        "darshan-partial-module",
        "darshan-unclaimed-bytes",
        "darshan-unread-module",
        "dropped-records",
        "foreign-calls",
        "io-uring-contents",
        "journal-cut",
        "missing-nodes",
        "missing-ranks",
        "own-system-calls",
        "stopped-processes",
        "too-many-requests",
        "unreached-programs",
        "unseen-calls",
    }
)
"""Losses that may hide any number of calls. If a store has one of them, the recorded calls may not be typical
of the run's I/O."""


class Severity(enum.Enum):
    """Classifies a finding by the share of the run that its change would save. The limits are settings
    (`[severity]`)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NOTE = "note"
    """The finding is worth knowing, but not worth changing."""

    @property
    def rank(self) -> int:
        """Returns a number for sorting, from 0 for `high` to 3 for `note`."""
        return list(Severity).index(self)

    def at_least(self, other: Severity) -> bool:
        """Returns whether this severity is at least as high as OTHER."""
        return self.rank <= other.rank


@dataclass(frozen=True, slots=True)
class Advice:
    """Describes a change to make, in one programming language or interface."""

    language: str
    """`any`, `C`, `C++`, `Fortran`, `Python`, `shell`, `MPI-IO`, `HDF5` or `administrator`."""
    message: Message
    library: str | None = None
    """Library of the language, if the advice is only for programs that use this library."""
    program: str | None = None
    """The program that the advice is for, if programs in several languages have the problem."""

    @property
    def heading(self) -> str:
        """Returns a heading such as `C++` or `Python, pandas`. It is empty if the advice is for all
        languages."""
        if self.language == "any":
            return ""
        return self.language if self.library is None else f"{self.language}, {self.library}"


@dataclass(frozen=True, slots=True)
class Gain:
    """Holds the expected gain of a change, in seconds of wall time. A negative value means that the change
    may make the run slower by this time."""

    low_seconds: float
    high_seconds: float
    of_seconds: float | None = None
    """Duration of the run, without the overhead of a tracer that stops it at each call."""

    @property
    def middle_seconds(self) -> float:
        """Returns the middle of the expected gain in seconds, by which findings are ranked."""
        return (self.low_seconds + self.high_seconds) / 2


@dataclass(frozen=True, slots=True)
class Caller:
    """Describes the line that calls the function in which a location is."""

    place: str
    function: str | None
    file: str | None
    line: int | None
    share: float
    """Share of the location's calls, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Location:
    """Describes a line of the program from which calls of a finding were made."""

    place: str
    """The place as text: `solver.c:412`; without debug information it is the function, or the offset in the
    binary."""
    function: str | None
    module: str | None
    """Path of the program or library."""
    file: str | None
    """The source file."""
    line: int | None
    calls: int
    share: float
    """Share of the finding's calls, 0 to 1."""
    called_from: Caller | None = None
    """The program's line that most of these calls came through; None if it is unknown or in a library."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Holds one problem with its cost, its evidence, and the change that solves it."""

    rule: str
    """Name of the rule, which is also the name of the pattern: `small-requests`."""
    severity: Severity
    confidence: float
    """How certain it is that the pattern is present and has this cost, from 0 to 1."""
    cost_seconds: float | None
    """Wall time that the pattern costs. In a live recording it includes the overhead of tracing these calls.
    None: the source has no durations."""
    cost_share: float | None
    """Cost as a share of the run's wall time, from 0 to 1."""
    node_hours: float | None
    """`cost_seconds` times the nodes of the job, if their number is known."""
    gain: Gain | None
    title: Message
    message: Message
    """The observation, in one or two sentences with the numbers."""
    files: tuple[str, ...]
    """Names of the costliest files, or of patterns of names; at most `MOST_FILES`."""
    file_count: int
    """Number of files concerned, including those not in `files`."""
    call: str | None
    evidence: Mapping[str, Scalar]
    """Numbers that support the finding, by name. A name contains the unit: `count`, `time_ns`, `read_bytes`,
    ..."""
    query: str
    """SQL for `iodock query` that returns the evidence."""
    advice: tuple[Advice, ...]
    fine_when: Message
    case: str | None
    """The page of the casebook that shows a similar case."""
    work_seconds: float = 0.0
    """The part of `gain` that is outside of calls, at most: work of the program and its libraries around the
    calls, or processes that are no longer started. The rest is time inside calls."""
    meanwhile: tuple[Message, ...] = ()
    """For single calls that hung: the state of their server at that time, and other users of the machine's
    disks and mounts, as the site's monitor recorded them. Empty: no monitor was queried, or its times can't
    be aligned with the run."""
    locations: tuple[Location, ...] = ()
    """Places from which most of the calls were made, at most `MOST_LOCATIONS`. Empty: the source does not
    contain places."""


MOST_FILES = 5
MOST_LOCATIONS = 3


@dataclass(frozen=True, slots=True)
class Silence:
    """Names a rule that could not run, and the reason."""

    rule: str
    why: Message


@dataclass(frozen=True, slots=True)
class Verdict:
    """Describes a run in a few numbers, and interprets them."""

    wall_seconds: float | None
    io_seconds: float | None
    """Wall time in which at least one thread was in an I/O call, except for calls that wait; None: not
    known."""
    io_share: float | None
    waiting_seconds: float | None
    """Wall time that was spent only in calls on pipes and sockets."""
    unseen_calls: int | None
    """Number of calls that were not recorded; None: there are such calls, but their number is not known."""
    judges: bool
    """Whether enough was recorded to conclude that the I/O is fine."""
    text: Message
    alone_seconds: float | None = None
    """Estimated duration of the run without a tracer that stops it at each call; `wall_seconds` if there was
    none."""
    gain: Gain | None = None
    """Time that all worthwhile changes together save."""
    before: tuple[Message, ...] = ()
    """Facts that a reader should know first: that the program failed, or the overhead of the tracer."""


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """Holds the result of `iodock diagnose`. Findings are sorted by gain, and notes come last."""

    store: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    silent: tuple[Silence, ...]
    remarks: tuple[Message, ...]
    """Facts that are needed to interpret the costs."""
    next_step: Message
    """The next step of the method, and the reason for it."""
    losses: tuple[tuple[str, int, str], ...] = ()
    """Data that is missing from the store: name of the loss, number, cure."""

    def with_texts(self, change: Callable[[str], str], store: str) -> Diagnosis:
        """Returns the diagnosis for a store with the name STORE. Applies CHANGE to every text that may
        contain names, and removes the source lines of programs."""

        def scalars(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
            return {key: change(one) if isinstance(one, str) else one for key, one in values.items()}

        def message(one: Message) -> Message:
            return replace(one, values=scalars(one.values))

        def advice(one: Advice) -> Advice:
            program = None if one.program is None else change(one.program)
            return replace(one, message=message(one.message), program=program)

        def finding(one: Finding) -> Finding:
            return replace(
                one,
                title=message(one.title),
                message=message(one.message),
                meanwhile=tuple(map(message, one.meanwhile)),
                locations=(),
                files=tuple(map(change, one.files)),
                evidence=scalars(one.evidence),
                query=change(one.query),
                advice=tuple(map(advice, one.advice)),
                fine_when=message(one.fine_when),
            )

        return replace(
            self,
            store=store,
            verdict=replace(
                self.verdict,
                text=message(self.verdict.text),
                before=tuple(map(message, self.verdict.before)),
            ),
            findings=tuple(map(finding, self.findings)),
            silent=tuple(replace(one, why=message(one.why)) for one in self.silent),
            remarks=tuple(map(message, self.remarks)),
            next_step=message(self.next_step),
        )

    def texts(self) -> list[str]:
        """Returns every text that may contain names."""
        found: list[str] = []

        def note(text: str) -> str:
            found.append(text)
            return text

        self.with_texts(note, self.store)
        return found

    def __repr__(self) -> str:
        names = ", ".join(f"{one.rule} {one.severity.value}" for one in self.findings) or "nothing found"
        return f"<iodock diagnosis of {self.store}: {names}>"

    @property
    def worth_changing(self) -> tuple[Finding, ...]:
        """Returns the findings that are more than notes."""
        return tuple(one for one in self.findings if one.severity is not Severity.NOTE)
