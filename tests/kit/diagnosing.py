"""What the rules say of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from iodock.program import rules
from iodock.program.diagnosis import diagnose
from iodock.program.findings import Diagnosis, Finding
from iodock.program.store import Store
from iodock.shared.settings import Settings


@dataclass
class Asked:
    """The diagnosis of a store, made when it is looked at. Who wants one rule's findings pays for that rule
    and for those that may hide them: a fifth of what all rules take."""

    path: Path
    settings: Settings

    def __post_init__(self) -> None:
        self._begun = self._content()
        self._alone: dict[str, list[Finding]] = {}

    def of(self, rule: str) -> list[Finding]:
        """The findings of one rule."""
        if "whole" in vars(self) or (self._alone and rule not in self._alone):
            return [one for one in self.whole.findings if one.rule == rule]
        if rule not in self._alone:
            with only_rules(*_with_causes({rule, *self.settings.rules})):
                self._alone[rule] = [one for one in self._made().findings if one.rule == rule]
        return self._alone[rule]

    @cached_property
    def whole(self) -> Diagnosis:
        """What all rules say."""
        return self._made()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def _made(self) -> Diagnosis:
        assert self._content() == self._begun, f"{self.path} has changed since"
        with Store.open(self.path) as store:
            return diagnose(store, self.settings)

    def _content(self) -> list[tuple[str, int, int]]:
        found = [(str(one), one.stat()) for one in Path(self.path).rglob("*")]
        return sorted((name, status.st_mtime_ns, status.st_size) for name, status in found)


@contextmanager
def only_rules(*names: str) -> Iterator[None]:
    """No other rule is asked meanwhile: where it does not matter what all of them say."""
    asked = tuple(rule for rule in rules.every() if rule.name in names)
    with patch.object(rules, "every", lambda: asked):
        yield


def _with_causes(names: Iterable[str]) -> set[str]:
    """These rules, and those that name a cause of what they see, and so on."""
    known = {rule.name: rule for rule in rules.every()}
    wanted: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name in known and name not in wanted:
            wanted.add(name)
            left += known[name].yields_to
    return wanted


def diagnosed(path: Path, settings: Settings | None = None) -> Any:
    """What the rules say, with our defaults unless told otherwise: a Diagnosis."""
    return Asked(path, settings or Settings())


def of_rule(diagnosis: Any, rule: str) -> list[Finding]:
    """The findings of one rule."""
    if isinstance(diagnosis, Asked):
        return diagnosis.of(rule)
    return [one for one in diagnosis.findings if one.rule == rule]


def blamed(diagnosis: Diagnosis) -> list[str]:
    """The rules whose findings are worth a change, the largest first."""
    return [one.rule for one in diagnosis.worth_changing]
