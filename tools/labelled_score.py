"""Defines labels of runs and the findings in them, and computes shares. labelled.py records the runs."""

from __future__ import annotations

import enum
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iodock.program import rules

KINDS = ("fault", "clean", "mixed", "harmless")
RULES = frozenset(rules.names())


class LabelError(ValueError):
    """A label is invalid. The message says of which run, and why."""


@dataclass(frozen=True)
class Input:
    """A file, or `count` numbered files, that the program finds in its folder."""

    name: str
    size_bytes: int = 0
    lines: int = 0
    count: int = 1
    seed: int = 1


@dataclass(frozen=True)
class Label:
    """One run of a labelled set: how to run it, and its true faults."""

    name: str
    kind: str
    program: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ranks: int = 0
    stdin: str = ""
    stdout: str = ""
    inputs: tuple[Input, ...] = ()
    prepare: tuple[str, ...] = ()
    background: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    faults: frozenset[str] = frozenset()
    top: str = ""
    allowed: frozenset[str] = frozenset()
    twin: str = ""
    seconds: float = 1.0

    def __post_init__(self) -> None:
        for wrong, what in self._objections():
            if wrong:
                raise LabelError(f"{self.name}: {what}")

    def _objections(self) -> Iterable[tuple[bool, str]]:
        strange = sorted((self.faults | self.allowed | ({self.top} if self.top else set())) - RULES)
        yield self.kind not in KINDS, f"kind {self.kind!r} is none of {', '.join(KINDS)}"
        yield bool(self.program) == bool(self.command), "needs either a program or a command"
        yield bool(strange), f"no such rule: {', '.join(strange)}"
        yield bool(self.top) and self.top not in self.faults, f"top {self.top!r} is not among its faults"
        yield (
            self.kind == "fault" and (len(self.faults) != 1 or not self.top),
            "a fault run has one fault, its top",
        )
        yield self.kind == "mixed" and len(self.faults) < 2, "a mixed run has two faults or more"
        yield self.kind in ("clean", "harmless") and bool(self.faults), "a clean run has no faults"


def label_from(table: dict[str, Any]) -> Label:
    """Returns a label from its TOML table. Refuses unknown keys."""
    values: dict[str, Any] = dict(table)
    values["inputs"] = tuple(Input(**one) for one in values.pop("input", ()))
    for key in ("command", "args", "prepare", "background", "needs"):
        values[key] = tuple(values.get(key, ()))
    for key in ("faults", "allowed"):
        values[key] = frozenset(values.get(key, ()))
    try:
        return Label(**values)
    except TypeError as error:
        raise LabelError(f"{table.get('name', 'a run without name')}: {error}") from None


def read_labels(path: Path) -> list[Label]:
    """Returns all runs of a `labels.toml`. Raises LabelError if names repeat or a twin is missing."""
    labels = [label_from(table) for table in tomllib.loads(path.read_text(encoding="utf-8"))["run"]]
    names = [label.name for label in labels]
    for label in labels:
        if names.count(label.name) > 1:
            raise LabelError(f"{label.name}: the name is there twice")
        if label.twin and label.twin not in names:
            raise LabelError(f"{label.name}: no run is named {label.twin}, its twin")
    return labels


class CostClass(enum.Enum):
    """Cost of a run's faults, measured against its clean twin (labelled_cost.py)."""

    WORTH = "1 % or more"
    """Must be a finding."""
    LITTLE = "less, or noise"
    """Must be a note at least."""
    UNMEASURED = "not measured"
    """No twin, as with most runs of several faults, or one that does other work: as WORTH."""


@dataclass(frozen=True)
class Outcome:
    """The diagnosis of one run: (rule, severity) in the order of the diagnosis, or the reason why there is
    none."""

    label: Label
    findings: Sequence[tuple[str, str]] = ()
    error: str = ""
    skipped: str = ""
    seconds: float = 0.0
    cost_class: CostClass = CostClass.UNMEASURED

    @property
    def counts(self) -> bool:
        return not self.skipped

    @property
    def found(self) -> list[str]:
        """Returns the rules with a finding above a note, each once, in the order of the diagnosis."""
        return list(dict.fromkeys(rule for rule, severity in self.findings if severity != "note"))

    @property
    def missed(self) -> list[str]:
        return sorted(self.label.faults - set(self.found))

    @property
    def noted(self) -> list[str]:
        """Returns the missed faults for which the diagnosis has a note."""
        return sorted({rule for rule, _ in self.findings} & set(self.missed))

    @property
    def false(self) -> list[str]:
        """Returns the rules found that are neither a labelled fault nor allowed."""
        return sorted(set(self.found) - self.label.faults - self.label.allowed)

    @property
    def top(self) -> str:
        return self.found[0] if self.found else ""


@dataclass(frozen=True)
class Share:
    """A share as its two counts, because a percentage of three runs would be misleading."""

    part: int
    whole: int

    def __str__(self) -> str:
        return f"{self.part}/{self.whole}" + (f" = {self.part / self.whole:.3f}" if self.whole else "")


@dataclass(frozen=True)
class Score:
    recall: Share
    false_alarms: Share
    top_right: Share


def score(outcomes: Iterable[Outcome]) -> Score:
    """Computes recall over expected faults, false alarms over clean and harmless runs, and top over runs with
    a single fault.

    A run that failed misses its faults, or is a false alarm if it has none. A skipped run does not count.
    """
    counted = [outcome for outcome in outcomes if outcome.counts]
    quiet = [o for o in counted if o.label.kind in ("clean", "harmless")]
    single = [o for o in counted if o.label.kind == "fault"]
    expected = sum(len(o.label.faults) for o in counted)
    return Score(
        recall=Share(expected - sum(len(o.missed) for o in counted), expected),
        false_alarms=Share(sum(bool(o.false or o.error) for o in quiet), len(quiet)),
        top_right=Share(sum(o.top == o.label.top for o in single), len(single)),
    )


@dataclass(frozen=True)
class CostScore:
    """Figures of the faults of one cost class. The first three add up to all of them."""

    found: Share
    noted: Share
    neither: Share
    top_right: Share


def by_cost(outcomes: Iterable[Outcome]) -> dict[CostClass, CostScore]:
    """Returns the figures by measured cost, of every fault that `score` counts. A class that does not occur
    has no row."""
    counted = [one for one in outcomes if one.counts and one.label.faults]
    groups = {cost: [one for one in counted if one.cost_class is cost] for cost in CostClass}
    return {cost: _cost_score(group) for cost, group in groups.items() if group}


def _cost_score(group: Sequence[Outcome]) -> CostScore:
    single = [one for one in group if one.label.kind == "fault"]
    faults, missed, noted = (
        sum(len(names) for names in lists)
        for lists in zip(*((one.label.faults, one.missed, one.noted) for one in group), strict=True)
    )
    return CostScore(
        found=Share(faults - missed, faults),
        noted=Share(noted, faults),
        neither=Share(missed - noted, faults),
        top_right=Share(sum(one.top == one.label.top for one in single), len(single)),
    )
