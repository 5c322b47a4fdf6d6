"""Tests that rules stay small enough to read: what the tool counts, and limits that may only be lowered."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import rule_size

from iodock.program import rules

MOST_THRESHOLDS = 4
COUNTED_RULES = 37
LIMITS = {"thresholds": 103, "constants": 50, "sql_lines": 945, "longest_query": 29, "causes": 80}
"""For these rules together. A change that allows it lowers a limit; none is raised."""
A_NEW_RULE = {"thresholds": MOST_THRESHOLDS, "constants": 1, "sql_lines": 25, "longest_query": 0, "causes": 4}
"""The amount that each further rule may add."""


@pytest.mark.parametrize("measure", LIMITS)
def test_the_total_size_of_rules_does_not_grow(measure: str) -> None:
    found, total = rule_size.sizes()
    more = max(0, len(found) - COUNTED_RULES) * A_NEW_RULE[measure]
    assert getattr(total, measure) <= LIMITS[measure] + more


def test_no_rule_exceeds_the_limit_of_thresholds() -> None:
    found, _ = rule_size.sizes()
    more = {one.name: one.thresholds for one in found if one.thresholds > MOST_THRESHOLDS}
    assert more == {}


def test_a_rule_declares_the_views_that_it_queries() -> None:
    own = [rule for rule in rules.every() if rule.settings.__module__.startswith("iodock.")]
    wrong = {rule.name: rule_size.views_asked(rule) ^ set(rule.views) for rule in own}
    assert {name: views for name, views in wrong.items() if views} == {}


def test_sql_of_helper_modules_counts_for_the_rule_that_uses_it() -> None:
    assert "rules.transfers.by_place" in rule_size.reached({"rules.small_requests.find"})


def test_the_table_has_each_rule_and_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    assert rule_size.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    found, total = rule_size.sizes()
    assert len(lines) == len(found) + 2
    assert lines[-1].split() == list(map(str, dataclasses.astuple(total)))
