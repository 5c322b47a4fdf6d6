"""Tests the runs on which the classifier of server states is judged. They are frozen, so that they do not
depend on the classifier."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import pytest

from iodock.simulation.episodes.episode import Episode
from iodock.simulation.episodes.seeds import HEALTHY_DAYS, JUDGING, STORIES, TUNING, healthy_day, play, runs

FIRST = "0f9db37dad2d2e356a691dc83832d5614b1f875cfc4561f839e7d5820787ecd8"
TUNED_ON = "f2a94a7c32382de774816855083d0c166bde38a3a900e13fc6f5b60ebe655c20"
JUDGED_BY = "61ad8d2fa2dd200e2414f32d703467ac614b0fb193a05fd02c87bb7515144ca8"
DAYS = "ccf429efd2f095b42ce955232e890cd7df5c809bfc9f6b6d2179d149a8de086b"
"""Never changed for the sake of the classifier: a new story gets its own series."""


def together(episodes: Iterable[Episode]) -> str:
    found = hashlib.sha256()
    for episode in episodes:
        found.update(episode.digest().encode())
    return found.hexdigest()


def test_the_series_has_enough_distinct_runs() -> None:
    assert len(STORIES) * len(JUDGING) >= 240 and len(HEALTHY_DAYS) == 30
    assert not set(TUNING) & set(JUDGING)


def test_the_first_runs_equal_their_frozen_checksums() -> None:
    assert together(play(story, JUDGING[0]) for story in ("k-stall", "overload-2", "failover")) == FIRST


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_all_runs_equal_their_frozen_checksums() -> None:
    assert together(runs(TUNING)) == TUNED_ON
    assert together(runs(JUDGING)) == JUDGED_BY


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_the_healthy_days_equal_their_frozen_checksums() -> None:
    assert together(map(healthy_day, HEALTHY_DAYS)) == DAYS


def test_requests_of_a_job_are_distributed_over_time() -> None:
    episode = play("healthy", TUNING[0])
    last = episode.ticks[-1].round.observations[0]
    step = last.end_ns - last.begin_ns
    (whole, half) = (
        sum(one.metadata for one in episode.asked(last.host, last.end_ns - part, last.end_ns))
        for part in (step, step // 2)
    )
    assert whole == pytest.approx(last.handled, rel=1e-4) and half == pytest.approx(whole / 2)


def test_waiting_requests_obey_littles_law() -> None:
    for story in ("k-overload", "overload-1"):
        episode = play(story, TUNING[0])
        for tick in episode.ticks[202:240]:
            one = tick.round.observations[0]
            if tick.truth.get("mds01") == "overload":
                assert one.handled and one.wait_s and one.waiting
                rate = one.handled / one.seconds
                assert one.waiting == pytest.approx(rate * one.wait_s, rel=0.2)
