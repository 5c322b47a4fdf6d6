"""Determines which findings disappeared, are new or remain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from iodock.program.comparison.data import FindingChange, Work
from iodock.program.comparison.matching import VARYING
from iodock.program.comparison.significance import change
from iodock.program.comparison.sums import RunSums
from iodock.program.findings import Finding


@dataclass
class _Group:
    """Holds findings of several runs that count as the same finding, because they have the same rule and at
    least one file in common."""

    rule: str
    files: set[str]
    found: dict[int, list[Finding]] = field(default_factory=dict)
    """The findings of each run, by its number."""


def finding_changes(
    before: Sequence[RunSums], after: Sequence[RunSums], work: Work | None
) -> tuple[FindingChange, ...]:
    """Returns the changes of findings: first new findings, then those that disappeared, those that could be
    detected on one side only, and those that remain. Each of these groups is sorted by cost."""
    runs = [*before, *after]
    units = (*work.before, *work.after) if work else (1.0,) * len(runs)
    changes = [_change(group, runs, len(before), units) for group in _grouped(runs)]
    order = ("new", "gone", "unseen", "still")
    return tuple(sorted(changes, key=lambda one: (order.index(one.state), -_cost(one))))


def _cost(one: FindingChange) -> float:
    return max(one.cost_seconds.before or 0.0, one.cost_seconds.after or 0.0)


def _grouped(runs: Sequence[RunSums]) -> list[_Group]:
    groups: list[_Group] = []
    for number, run in enumerate(runs):
        taken: set[int] = set()
        for finding in run.diagnosis.findings:
            group = _group_of(finding, groups, taken)
            group.files |= _places(finding)
            group.found.setdefault(number, []).append(finding)
            taken.add(id(group))
    return groups


def _group_of(finding: Finding, groups: list[_Group], taken: set[int]) -> _Group:
    """Returns the group that FINDING belongs to. If there is none, adds a new group to GROUPS."""
    places = _places(finding)
    same = [group for group in groups if group.rule == finding.rule]
    for group in same:
        if group.files & places or (not group.files and not places):
            return group
    # A finding without files has nothing by which it could be compared. If there is only one group with its
    # rule, and no finding of the same run is in it, the finding belongs to that group.
    free = [group for group in same if id(group) not in taken]
    if len(same) == len(free) == 1 and not places:
        return free[0]
    groups.append(_Group(finding.rule, set()))
    return groups[-1]


def _places(finding: Finding) -> set[str]:
    """Returns the names of the finding's files without the parts that vary from run to run."""
    return {_starred(name) for name in finding.files}


def _starred(name: str) -> str:
    for expression, put in VARYING:
        name = re.sub(expression, put.replace("\\2", r"\g<2>").replace("\\1", r"\g<1>"), name)
    return name


def _change(group: _Group, runs: Sequence[RunSums], first: int, units: Sequence[float]) -> FindingChange:
    costs = [_cost_in(group, number, run, units[number]) for number, run in enumerate(runs)]
    there = [number in group.found for number in range(len(runs))]
    seen = (sum(there[:first]), sum(there[first:]))
    return FindingChange(
        state=_state(group, runs, first, seen),
        before=_costliest(group, range(first)),
        after=_costliest(group, range(first, len(runs))),
        cost_seconds=change(costs[:first], costs[first:]),
        seen=seen,
    )


def _cost_in(group: _Group, number: int, run: RunSums, unit: float) -> float | None:
    if number in group.found:
        known = [one.cost_seconds for one in group.found[number] if one.cost_seconds is not None]
        return sum(known) / unit if known else None
    return None if group.rule in _silent(run) else 0.0


def _silent(run: RunSums) -> set[str]:
    return {one.rule for one in run.diagnosis.silent}


def _state(group: _Group, runs: Sequence[RunSums], first: int, seen: tuple[int, int]) -> str:
    """Returns the state of a finding. If fewer than half of the runs of a side have the finding, it counts as
    absent on that side."""
    is_before, is_after = 2 * seen[0] >= first, 2 * seen[1] >= len(runs) - first
    if is_before and is_after:
        return "still"
    lacking = runs[first:] if is_before else runs[:first]
    if all(group.rule in _silent(run) for run in lacking):
        return "unseen"
    return "gone" if is_before else "new"


def _costliest(group: _Group, numbers: Sequence[int]) -> Finding | None:
    found = list(_found_in(group, numbers))
    return max(found, key=lambda one: one.cost_seconds or 0.0) if found else None


def _found_in(group: _Group, numbers: Sequence[int]) -> Iterator[Finding]:
    for number in numbers:
        yield from group.found.get(number, ())
