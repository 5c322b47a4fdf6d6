"""What a diagnosis says, as data: no rule, no output and no language is named here."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from iodock.shared.message import Message, Scalar

IO_FINE = 0.05
"""Below this share of the wall time in I/O, I/O is not the problem."""
IO_HEAVY = 0.4
"""From this share on I/O dominates."""
REDUNDANT_FACTOR = 2.0
"""From this multiple of the expected volume on, bytes move more than once."""
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
"""Losses behind which there may be any number of calls: what was seen need not be the run's I/O."""


class Severity(enum.Enum):
    """How much of the run its change saves; the limits are settings (`[severity]`)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NOTE = "note"
    """Worth knowing, not worth changing."""

    @property
    def rank(self) -> int:
        """0 for `high`, 3 for `note`."""
        return list(Severity).index(self)

    def at_least(self, other: Severity) -> bool:
        """Whether this is as severe as OTHER, or more."""
        return self.rank <= other.rank


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change, in one programming language or interface."""

    language: str
    """`any`, `C`, `C++`, `Fortran`, `Python`, `shell`, `MPI-IO`, `HDF5` or `administrator`."""
    message: Message
    library: str | None = None
    """Of the language, which it is about: only for programs that use it."""
    program: str | None = None
    """Where programs of several languages share a fault: the one that this is for."""

    @property
    def heading(self) -> str:
        """`C++`; `Python, pandas`; empty where it is for all."""
        if self.language == "any":
            return ""
        return self.language if self.library is None else f"{self.language}, {self.library}"


@dataclass(frozen=True, slots=True)
class Gain:
    """What the change is expected to bring, seconds of wall time. Negative: it may cost that much."""

    low_seconds: float
    high_seconds: float
    of_seconds: float | None = None
    """How long the run takes: without the tracer, where one stopped it at each call."""

    @property
    def middle_seconds(self) -> float:
        """The one number by which findings are ranked."""
        return (self.low_seconds + self.high_seconds) / 2


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the program from which calls of a finding came."""

    place: str
    """`solver.c:412`; without debug information the function, or the place in the file of code."""
    function: str | None
    module: str | None
    """The file of the program or library."""
    file: str | None
    """The source file."""
    line: int | None
    calls: int
    share: float
    """Of the finding's calls, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, what it costs, how that is known, and what to change."""

    rule: str
    """Name of the rule, which names the pattern: `small-requests`."""
    severity: Severity
    confidence: float
    """0 to 1: how sure it is that this pattern is there and costs what is said."""
    cost_seconds: float | None
    """Wall time spent in it, in a live recording with what tracing adds to these calls; None where the source
    has no durations."""
    cost_share: float | None
    """Of the run's wall time, 0 to 1."""
    node_hours: float | None
    """`cost_seconds` times the nodes of the job, where its size is known."""
    gain: Gain | None
    title: Message
    message: Message
    """What was seen, in one or two sentences with the numbers."""
    files: tuple[str, ...]
    """The costliest files, or name patterns, first; at most `MOST_FILES`."""
    file_count: int
    """Files it is about, also those not named in `files`."""
    call: str | None
    evidence: Mapping[str, Scalar]
    """Numbers by name, with their unit in the name: `count`, `time_ns`, `read_bytes`, ..."""
    query: str
    """SQL for `iodock query` that shows the evidence."""
    advice: tuple[Advice, ...]
    fine_when: Message
    case: str | None
    """The casebook's page that it resembles."""
    work_seconds: float = 0.0
    """What of `gain` can at most pass outside of calls: work of the program and its libraries around them,
    which goes with them, or processes that are not started. All else is time inside calls."""
    meanwhile: tuple[Message, ...] = ()
    """Of single calls that hung: what their server did then, and who else used the machine's disks and
    mounts, as the site's monitor read it. Empty: no monitor was asked, or its times can't be joined."""
    locations: tuple[Location, ...] = ()
    """Where most of its calls were made, at most `MOST_LOCATIONS`. Empty: the source does not show it."""


MOST_FILES = 5
MOST_LOCATIONS = 3


@dataclass(frozen=True, slots=True)
class Silence:
    """A rule that could not look, and why."""

    rule: str
    why: Message


@dataclass(frozen=True, slots=True)
class Verdict:
    """The run in a few numbers, and what they say."""

    wall_seconds: float | None
    io_seconds: float | None
    """Wall time in which at least one thread was in an I/O call, waiting left out; None: not known."""
    io_share: float | None
    waiting_seconds: float | None
    """Wall time only in calls on pipes and sockets."""
    unseen_calls: int | None
    """Calls that were not seen; None: some were not, and how many is not known."""
    judges: bool
    """Whether enough was seen to say that the I/O is fine."""
    text: Message
    alone_seconds: float | None = None
    """The run's length without a tracer that stops it at each call, estimated; `wall_seconds` where none
    did."""
    gain: Gain | None = None
    """What all changes that are worth it save together."""
    before: tuple[Message, ...] = ()
    """What must be known first: that the program failed, what the tracer took."""


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """Everything that `iodock diagnose` says, findings by what mending them brings and notes last."""

    store: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    silent: tuple[Silence, ...]
    remarks: tuple[Message, ...]
    """What must be known to read the costs."""
    next_step: Message
    """Which step of the method comes next, and why."""
    losses: tuple[tuple[str, int, str], ...] = ()
    """What is not in the store: name, how many, cure."""

    def with_texts(self, change: Callable[[str], str], store: str) -> Diagnosis:
        """The same of a store of another name, with every text that may hold names changed, and without the
        lines of its programs."""

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
        """Every text that may hold names."""
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
        """The findings that are more than notes."""
        return tuple(one for one in self.findings if one.severity is not Severity.NOTE)
