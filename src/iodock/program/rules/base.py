"""What a rule is: a header that teaches, thresholds of its own, and a function from facts to candidates."""

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
    """What the pieces at fault are. The work of the program's libraries for each goes with them, and counts
    towards the gain (`iodock.program.rules.work`)."""

    CALLS = "calls"
    """Single calls."""
    OPENS = "opens"
    """Files that are opened, used and closed."""
    LISTINGS = "listings"
    """Folders that are listed: the program builds, sorts and filters their names."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a rule found in one place. Its severity, share and gain in seconds follow from its cost."""

    message: Message
    """What was seen, in one or two sentences with the numbers."""
    count: int
    """Calls at fault."""
    time_ns: int | None
    """Time inside the calls at fault that better ones would save at most, summed over tasks; None without
    durations."""
    evidence: Mapping[str, Scalar]
    query: str
    """SQL over the store's tables that shows the evidence."""
    files: tuple[str, ...] = ()
    """All that are known by name, the costliest first: the finding shows some of them."""
    file_count: int | None = None
    """None: as many as `files`."""
    call: str | None = None
    confidence: float = 0.8
    wall_seconds: float | None = None
    """The cost in wall time, where it does not follow from `time_ns` (waiting ranks, say)."""
    gain: tuple[float, float] | None = (0.5, 1.0)
    """What the change saves, least and most, as a share of what could go; most is at most three times least
    where that is positive, and never more than 1. None: nothing is to be changed."""
    work_ns: int = 0
    """What of `time_ns` is no call's: text that is taken apart or put together, data that is looked at."""
    goes_seconds: float | None = None
    """Beside `wall_seconds`: wall time that could go, where that is not the cost."""
    pieces: Pieces | None = None
    """What work of the program goes with the calls at fault; None: none."""
    again: float = 1.0
    """Of pieces that are listings: the share of them that is needless."""
    at_most: Severity = Severity.HIGH
    """However much it costs: `note` for what is expected and should be left alone."""
    title: str | None = None
    advice: tuple[Advice, ...] | None = None
    """Both in place of the rule's own."""
    authors: str | None = None
    """SQL for `upid` and `count` of the processes whose programs are to be changed; None: those that made
    such calls on these files."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern that is looked for. Its texts are marked for translation."""

    name: str
    """The pattern, kebab-case."""
    title: str
    looks_for: str
    why: str
    """Why it hurts."""
    advice: tuple[Advice, ...]
    """What to do, by language and library: what fits the programs that made the calls is shown."""
    fine_when: str
    """When it is fine."""
    settings: type[Any]
    """Thresholds: a frozen dataclass, every field with a default and a docstring below it."""
    find: Callable[[Facts, Any], Iterable[Candidate]]
    needs: tuple[Need, ...] = ()
    """What the source must be able to see; else the rule says so and stays silent."""
    counters: Callable[[Facts, Any], Iterable[Candidate]] | None = None
    """The same question, asked of counters in place of calls; None: it needs single calls."""
    counters_need: tuple[Need, ...] = ()
    """What these must show besides."""
    needs_for_some: tuple[Need, ...] = ()
    """The same of files of which it can't be seen: these alone are left out, and the rule says so."""
    views: tuple[str, ...] = ()
    """What `find` asks of the run beside the store's tables: names of files in
    `iodock/program/relations/views/`."""
    yields_to: tuple[str, ...] = ()
    """Rules that name the cause where this one only sees a symptom: on the same files, theirs is shown."""
    yields_at: float = 0.5
    """Share of this one's cost that theirs must cover for that: less where this one's grows with what they do
    not count."""
    tells_hung_calls: bool = False
    """It names single calls that took very long. What a rule that yields to it finds is judged without those
    of them that are metadata calls, and what is left is no symptom of them."""
    is_of_waiting: bool = False
    """Its cost is waiting, in which a call that hung may be all there is."""
    case: str | None = None
    """The casebook's page."""
    comes_last: bool = False
    """Its findings come after all others that are more than notes: it is the last thing to change."""


def needs_of(rule: Rule, facts: Facts) -> tuple[Need, ...]:
    """What a rule needs of such a source."""
    if facts.has_calls:
        return rule.needs
    return (Need.EVENTS,) if rule.counters is None else rule.counters_need


def not_of_calls(facts: Facts, settings: Any) -> Iterable[Candidate]:
    """Nothing: for rules that are asked of counters only."""
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
"""Libraries with advice of their own -> their language."""
