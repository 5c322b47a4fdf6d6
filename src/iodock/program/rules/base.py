"""Defines what a rule consists of: explanatory texts, its own thresholds, and a function from facts to
candidates."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iodock.program.findings import Advice, Severity
from iodock.program.rules.facts import Facts, Need
from iodock.shared.message import Message, Scalar

__all__ = ["Candidate", "Facts", "Need", "Pieces", "Rule", "advise", "needs_of", "not_of_calls"]


class Pieces(enum.Enum):
    """The kind of work at fault: calls, opened files or listed folders. The program's libraries do work
    around each of them, which would be saved, too, and counts towards the gain
    (`iodock.program.rules.work`)."""

    CALLS = "calls"
    """Single calls."""
    OPENS = "opens"
    """Files that are opened, used and closed."""
    LISTINGS = "listings"
    """Folders that are listed: the program builds, sorts and filters their names."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Describes what a rule found in one place. Its severity, share and gain in seconds follow from its
    cost."""

    message: Message
    """The observation, in one or two sentences with the numbers."""
    count: int
    """Number of calls that are at fault."""
    time_ns: int | None
    """Time inside the calls at fault that better calls would save at most, summed over tasks; None: no
    durations are known."""
    evidence: Mapping[str, Scalar]
    query: str
    """SQL query that shows the evidence in the store's tables."""
    files: tuple[str, ...] = ()
    """All known file names, the most expensive first; the finding shows some of them."""
    file_count: int | None = None
    """Number of files; None: it is the length of `files`."""
    call: str | None = None
    confidence: float = 0.8
    wall_seconds: float | None = None
    """Cost in wall time, if it does not follow from `time_ns`. An example is the cost of waiting ranks."""
    gain: tuple[float, float] | None = (0.5, 1.0)
    """Lowest and highest saving of the change, as shares of the time that could be saved. The highest is at
    most three times the lowest, if that is positive, and never more than 1. None: no change is needed."""
    work_ns: int = 0
    """The part of `time_ns` that is not inside calls: time for formatting or parsing text, or for examining
    data."""
    goes_seconds: float | None = None
    """Wall time that could be saved, if it differs from the cost `wall_seconds`."""
    pieces: Pieces | None = None
    """Kind of pieces whose work would be saved together with the calls; None: no work would be saved."""
    again: float = 1.0
    """For listings, the share of them that is unnecessary."""
    at_most: Severity = Severity.HIGH
    """Highest severity, whatever the cost. It is `note` for expected behaviour that should not be changed."""
    title: str | None = None
    advice: tuple[Advice, ...] | None = None
    """Advice that replaces the rule's own; None: the rule's own is used."""
    placed_by: str | None = None
    """Calls whose source lines should be changed, if they are not the calls in `call`."""
    authors: str | None = None
    """SQL for `upid` and `count` of the processes whose programs should be changed; None: the processes that
    made such calls on these files."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Defines one pattern for which a diagnosis searches. Its texts are marked for translation."""

    name: str
    """The pattern's name in kebab case."""
    title: str
    looks_for: str
    why: str
    """Text that explains why the pattern costs time."""
    advice: tuple[Advice, ...]
    """Changes to make, by language and library. A finding shows only the advice for the programs that made
    the calls."""
    fine_when: str
    """Text that says when the pattern does no harm."""
    settings: type[Any]
    """Class with the thresholds: a frozen dataclass whose fields all have a default and a docstring below."""
    find: Callable[[Facts, Any], Iterable[Candidate]]
    needs: tuple[Need, ...] = ()
    """Data that the source must have. Without it the rule is not checked, and the reason is shown."""
    counters: Callable[[Facts, Any], Iterable[Candidate]] | None = None
    """Function that checks counters instead of calls; None: the rule needs single calls."""
    counters_need: tuple[Need, ...] = ()
    """Data that counters must have in addition."""
    needs_for_some: tuple[Need, ...] = ()
    """Data that is needed for each single file. Files that lack it are left out, and the rule says so."""
    views: tuple[str, ...] = ()
    """Names of the derived views that `find` uses, as in `iodock/program/relations/views/`."""
    yields_to: tuple[str, ...] = ()
    """Names of rules that find the cause if this rule finds a symptom of it. If both find the same files,
    only their finding is shown."""
    yields_at: float = 0.5
    """Share of this rule's cost that the cost of those rules must reach to replace its finding. It is smaller
    if this rule's cost includes parts that they do not count."""
    one_direction: bool = False
    """Whether each finding is about only reads or only writes. It then hides no finding of another such rule
    on the other direction."""
    tells_hung_calls: bool = False
    """Whether the rule names single calls that took very long. Rules that yield to it are judged without
    those of these calls that are metadata calls; what they still find is not a symptom."""
    is_of_waiting: bool = False
    """Whether the cost is waiting time, which may come from a single call that hung."""
    case: str | None = None
    """Name of the page in the casebook."""
    comes_last: bool = False
    """Whether findings come after all others except notes, because they should be changed last."""


def needs_of(rule: Rule, facts: Facts) -> tuple[Need, ...]:
    """Returns the data that the rule needs. Without it, the rule is not checked."""
    if facts.has_calls:
        return rule.needs
    return (Need.EVENTS,) if rule.counters is None else rule.counters_need


def not_of_calls(facts: Facts, settings: Any) -> Iterable[Candidate]:
    """Finds nothing. A rule that checks only counters uses this as its function for recorded calls."""
    return ()


def advise(**texts: str) -> tuple[Advice, ...]:
    """Makes advice by language and library, as in `advise(any=N_("..."), c=N_("..."), pandas=N_("..."))`."""
    return tuple(_advice(name, Message(text)) for name, text in texts.items())


def _advice(name: str, message: Message) -> Advice:
    if name in LIBRARIES:
        return Advice(LIBRARIES[name], message, name)
    return Advice(LANGUAGES[name], message)


LANGUAGES = {
    "any": "any",
    "c": "C",
    "cpp": "C++",
    "fortran": "Fortran",
    "python": "Python",
    "shell": "shell",
    "mpi_io": "MPI-IO",
    "hdf5": "HDF5",
    "administrator": "administrator",
}
LIBRARIES = {"numpy": "Python", "pandas": "Python", "zarr": "Python"}
"""Maps each library that has its own advice to its language."""
