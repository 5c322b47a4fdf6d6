"""Provides fixtures for the tests of rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iodock.program import rules
from iodock.program.rules import asking, excluded
from iodock.program.rules.base import Facts
from made_rules import made_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made_store(tmp_path)


@pytest.fixture(autouse=True)
def excluded_rules_find_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the rules that iodock would skip in every rule test, and checks that they find nothing."""

    def may_find(name: str, facts: Facts, settings: Any) -> bool:
        may = excluded.may_find(name, facts, settings)
        assert may or not list(rules.find(name).find(facts, settings)), f"{name} would have found something"
        return may

    monkeypatch.setattr(asking, "may_find", may_find)
