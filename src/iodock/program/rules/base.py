"""Defines a rule: explaining texts, its own thresholds, and a function from facts to candidates."""

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
    """The kind of the pieces at fault. The work of the program's libraries for each piece goes with it, and
    counts towards the gain (`iodock.program.rules.work`)."""

    CALLS = "calls"
    """Single calls."""
    OPENS = "opens"
    """Files that are opened, used and closed."""
    LISTINGS = "listings"
    """Folders that are listed: the program builds, sorts and filters their names."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule's finding in one place. Its severity, share and gain in seconds follow from its cost."""

    message: Message
    """The observation, in one or two sentences with the numbers."""
    count: int
    """Number of calls at fault."""
    time_ns: int | None
    """Time inside the calls at fault that better ones would save at most, summed over tasks; None without
    durations."""
    evidence: Mapping[str, Scalar]
    query: str
    """SQL over the store's tables that shows the evidence."""
    files: tuple[str, ...] = ()
    """All known file names, the most expensive first; the finding shows some of them."""
    file_count: int | None = None
    """None: the length of `files`."""
    call: str | None = None
    confidence: float = 0.8
    wall_seconds: float | None = None
    """The cost in wall time, if it does not follow from `time_ns` (for example with waiting ranks)."""
    gain: tuple[float, float] | None = (0.5, 1.0)
    """The lowest and highest saving of the change, as a share of what could be saved. The highest is at most
    three times the lowest, if that is positive, and never more than 1. None: no change is needed."""
    work_ns: int = 0
    """The part of `time_ns` outside of calls: for formatting or parsing text, or examining data."""
    goes_seconds: float | None = None
    """In addition to `wall_seconds`: wall time that could be saved, if it differs from the cost."""
    pieces: Pieces | None = None
    """The program's work that would be saved together with the calls at fault; None: none."""
    again: float = 1.0
    """For listings: the share of them that is unnecessary."""
    at_most: Severity = Severity.HIGH
    """Upper limit for the severity at any cost: `note` for expected behaviour that should not be changed."""
    title: str | None = None
    advice: tuple[Advice, ...] | None = None
    """Both replace the rule's own."""
    placed_by: str | None = None
    """The calls whose lines should be changed, if they are not those of `call`."""
    authors: str | None = None
    """SQL for `upid` and `count` of the processes whose programs should be changed. None: the processes that
    made such calls on these files."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern that a diagnosis checks for. Its texts are marked for translation."""

    name: str
    """The pattern's name in kebab case."""
    title: str
    looks_for: str
    why: str
    """Why it costs time."""
    advice: tuple[Advice, ...]
    """Changes to make, by language and library. Only advice for the programs that made the calls is shown."""
    fine_when: str
    """When it is fine."""
    settings: type[Any]
    """Thresholds: a frozen dataclass, every field with a default and a docstring below it."""
    find: Callable[[Facts, Any], Iterable[Candidate]]
    needs: tuple[Need, ...] = ()
    """Data that the source must have. Without it the rule is not checked, and the reason is shown."""
    counters: Callable[[Facts, Any], Iterable[Candidate]] | None = None
    """The check on counters instead of calls; None: the rule needs single calls."""
    counters_need: tuple[Need, ...] = ()
    """Additional data that counters must have."""
    needs_for_some: tuple[Need, ...] = ()
    """Needs of single files: files that lack them are left out, and the rule says so."""
    views: tuple[str, ...] = ()
    """The derived tables that `find` uses in addition to the store's: names of files in
    `iodock/program/relations/views/`."""
    yields_to: tuple[str, ...] = ()
    """Rules that name the cause of which this one sees only a symptom. If both find the same files, theirs is
    shown."""
    yields_at: float = 0.5
    """Share of this rule's cost that the other rules' cost must cover for that. It is smaller if this rule's
    cost includes parts that they do not count."""
    one_direction: bool = False
    """Each finding is about reads only, or about writes only. It hides no finding of another such rule on the
    other direction."""
    tells_hung_calls: bool = False
    """This rule names single calls that took very long. Rules that yield to it are judged without those of
    them that are metadata calls. What they still find then is not a symptom."""
    is_of_waiting: bool = False
    """The cost is waiting time, which may come from a single call that hung."""
    case: str | None = None
    """The casebook's page."""
    comes_last: bool = False
    """Findings of the rule come after all others except notes, because they should be changed last."""


def needs_of(rule: Rule, facts: Facts) -> tuple[Need, ...]:
    """The data that a rule needs from its source."""
    if facts.has_calls:
        return rule.needs
    return (Need.EVENTS,) if rule.counters is None else rule.counters_need


def not_of_calls(facts: Facts, settings: Any) -> Iterable[Candidate]:
    """Nothing: for rules that check counters only."""
    return ()


def advise(**texts: str) -> tuple[Advice, ...]:
    """Advice by language and library: `advise(any=N_("..."), c=N_("..."), pandas=N_("..."))`."""
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
"""Library with its own advice -> its language."""
