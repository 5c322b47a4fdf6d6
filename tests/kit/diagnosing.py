"""Runs the rules on a store."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from iodock.program import rules
from iodock.program.diagnosis import diagnose, diagnosis_of, facts_of
from iodock.program.findings import Diagnosis, Finding
from iodock.program.rules.asking import candidates_of
from iodock.program.rules.base import Facts, Rule
from iodock.program.store import Store
from iodock.shared.settings import Settings


@dataclass
class Asked:
    """The diagnosis of a store, computed on access. A test that needs one rule's findings runs only that rule
    and those that may hide them."""

    path: Path
    settings: Settings

    def __post_init__(self) -> None:
        self._begun = self._content()
        self._alone: dict[str, list[Finding]] = {}

    def of(self, rule: str) -> list[Finding]:
        """Returns the findings of one rule."""
        if "whole" in vars(self) or (len(self._alone) > 2 and rule not in self._alone):
            return [one for one in self.whole.findings if one.rule == rule]
        if rule not in self._alone:
            self._alone[rule] = [one for one in self._made((rule,)).findings if one.rule == rule]
        return self._alone[rule]

    @cached_property
    def whole(self) -> Diagnosis:
        """Returns the result of all rules."""
        return self._made()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def _made(self, wanted: Sequence[str] = ()) -> Diagnosis:
        """Runs the rules WANTED, or all rules if there are none."""
        assert self._content() == self._begun, f"{self.path} has changed since"
        with Store.open(self.path) as store:
            if not wanted:
                return diagnose(store, self.settings)
            facts = facts_of(store, self.settings)
            with only_rules(*_speaking(wanted, facts), *self.settings.rules):
                return diagnosis_of(facts)

    def _content(self) -> list[tuple[str, int, int]]:
        found = [(str(one), one.stat()) for one in Path(self.path).rglob("*")]
        return sorted((name, status.st_mtime_ns, status.st_size) for name, status in found)


_ASKED: list[tuple[Rule, ...]] = []
_EVERY = rules.every
_LOCK = threading.Lock()


@contextmanager
def only_rules(*names: str) -> Iterator[None]:
    """Restricts the diagnosis to these rules within the context, for tests that do not need others. If
    contexts of several threads overlap, the latest one applies to all."""
    asked = tuple(rule for rule in rules.every() if rule.name in names)
    with _LOCK:
        _ASKED.append(asked)
        rules.every = lambda: _ASKED[-1] if _ASKED else _EVERY()  # type: ignore[assignment]
    try:
        yield
    finally:
        with _LOCK:
            _ASKED.remove(asked)
            if not _ASKED:
                rules.every = _EVERY


def _speaking(wanted: Iterable[str], facts: Facts) -> set[str]:
    """Returns the rules that find something, among these and among the rules that may name their cause, and
    so on."""
    known = {one.name: one for one in rules.every() if all(facts.sees(need) for need in one.needs)}
    left, seen, speaking = set(wanted), set[str](), set[str]()
    while left:
        asked = [known[name] for name in sorted(left & known.keys())]
        seen |= left
        found = [one for one, any_ in zip(asked, candidates_of(asked, facts), strict=True) if any_]
        speaking |= {one.name for one in found}
        left = {cause for one in found for cause in one.yields_to} - seen
    return speaking


def diagnosed(path: Path, settings: Settings | None = None) -> Any:
    """Returns the diagnosis of a store, with the default settings if none are given. The rules run on first
    access."""
    return Asked(path, settings or Settings())


def of_rule(diagnosis: Any, rule: str) -> list[Finding]:
    """Returns the findings of one rule."""
    if isinstance(diagnosis, Asked):
        return diagnosis.of(rule)
    return [one for one in diagnosis.findings if one.rule == rule]


def blamed(diagnosis: Diagnosis) -> list[str]:
    """Returns the rules whose findings are worth a change, the largest finding first."""
    return [one.rule for one in diagnosis.worth_changing]
