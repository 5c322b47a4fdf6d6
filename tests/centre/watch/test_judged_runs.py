"""Tests the classifier on frozen runs, which are a part of the table in docs/explanation/server-states.md."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from iodock.simulation.episodes.seeds import HEALTHY_DAYS, JUDGING, STORIES, healthy_day, play, runs
from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import server_states


@pytest.mark.parametrize("story", ["k-stall", *(story for story in STORIES if story != "k-stall")])
def test_a_run_of_each_scenario_gets_the_right_verdict(story: str) -> None:
    score = server_states.judged([play(story, JUDGING[0])])
    assert (score.wrong, score.misnamed) == ([], [])


@pytest.mark.whole
@pytest.mark.timeout(1800)
def test_detection_goals_are_met_on_all_runs() -> None:
    score = server_states.judged(runs(JUDGING))
    changes = sum(score.spells.values(), Counter())
    assert changes[True] >= 0.97 * changes.total() and score.runs[True] >= 0.97 * score.runs.total()
    assert score.firsts[True] >= 0.95 * score.firsts.total()


@pytest.mark.whole
@pytest.mark.timeout(1800)
def test_healthy_days_cause_no_alarm() -> None:
    assert server_states.judged(map(healthy_day, HEALTHY_DAYS)).alerts == 0
