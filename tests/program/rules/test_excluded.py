"""Tests that iodock skips rules that cannot find anything. `conftest.py` checks in every rule test that the
skipped rules would find nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.program import rules
from iodock.program.diagnosis import facts_of
from iodock.program.rules import excluded
from iodock.program.rules.base import Facts
from iodock.program.store import Store
from iodock.shared.settings import Settings
from metadata_log import Trace


def left_to_ask(facts: Facts) -> set[str]:
    return {
        one.name
        for one in rules.every()
        if excluded.may_find(one.name, facts, facts.settings.of_rule(one.name, one.settings))
    }


def test_each_exclusion_belongs_to_a_rule() -> None:
    assert set(excluded.CONDITIONS) <= {one.name for one in rules.every()}


def test_most_rules_are_excluded_for_a_run_of_one_small_write(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/a", flags="O_WRONLY|O_CREAT")
    log.write(10, 10)
    log.close()
    with Store.open(log.imported(tmp_path)) as store:
        left = left_to_ask(facts_of(store, Settings()))
    assert {"sync-heavy", "seek-storm", "rank-imbalance", "random-access", "failed-xattr"}.isdisjoint(left)


@pytest.mark.parametrize("count", [19, 20])
def test_exclusions_use_the_thresholds_of_their_rule(count: int, tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/a", flags="O_WRONLY|O_CREAT")
    for _ in range(count):
        log.write(10, 10)
        log.call("fsync(3)", "0", 5000)
    log.close()
    with Store.open(log.imported(tmp_path)) as store:
        left = left_to_ask(facts_of(store, Settings()))
    assert ("sync-heavy" in left) == (count == 20)
