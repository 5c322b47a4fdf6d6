"""Tests the monitor on the store of a simulated centre with the overload and the stall of the K computer,
with the figures of its report. The responsible job is named."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from iodock.centre.monitor.collector import Collector
from iodock.centre.watch.watching import Watching
from played_centre import LIMITS, SECOND, Played


@pytest.mark.parametrize("step_s", [60.0, 10.0])
def test_the_stall_of_the_k_computer_is_detected(tmp_path: Path, step_s: float) -> None:
    played = Played(tmp_path, "stall", step_s)
    assert played.sample().state in ("healthy", "busy")
    played.turn()
    states = [played.sample() for _ in range(round(240 / step_s) + 2)]
    # The job begins after 30 s, and the collapse follows two minutes later.
    begun = int(150 / step_s)
    assert {one.state for one in states[:begun]} <= {"healthy", "busy"}
    assert states[begun + 2].state == "stall"
    verdict = states[-1]
    told = {one.what: one for one in verdict.evidence}
    assert told["handled"].value < 0.2 * told["handled"].usual and told["cpu"].value < 0.05
    waiting = told.get("waiting") or told["last-waiting"]
    assert waiting.value == pytest.approx(12_000)
    first = verdict.suspects[0]
    assert (first.job, first.name, first.nodes) == (played.culprit(), "wide-stripes", 252)
    # Each node has its own JobID.
    assert first.job_ids == 252
    assert first.owner and first.share > 0.5


@pytest.mark.parametrize("step_s", [10.0, 60.0])
def test_the_overload_of_the_k_computer_is_attributed_to_its_job(tmp_path: Path, step_s: float) -> None:
    played = Played(tmp_path, "overload", step_s)
    played.turn()
    states = [played.sample() for _ in range(round(120 / step_s) + 2)]
    begun = int(30 / step_s)
    assert states[begun + 2].state == "overload"
    told = {one.what: one for one in states[-1].evidence}
    assert told["cpu"].value > 0.9 and told["waiting"].value == pytest.approx(7900)
    first = states[begun + 2].suspects[0]
    assert (first.job, first.name) == (played.culprit(), "shared-dir") and first.share > 0.5
    assert played.watching.history()[0].verdict.state == "overload"
    # A new monitor learns the history from the store.
    again = Watching(played.collector.store, limits=LIMITS)
    (learnt, *_) = again.look(played.centre.now_ns)
    assert (learnt.server, learnt.state) == ("mds01", "overload")
    assert learnt.suspects == () or learnt.suspects[0].job == played.culprit()


def test_ordinary_operation_causes_no_alarm(tmp_path: Path) -> None:
    played = Played(tmp_path, "healthy")
    assert {played.sample().state for _ in range(15)} <= {"healthy", "busy"}
    assert played.watching.history() == ()


def test_a_reboot_is_a_failover_and_a_silent_server_is_not_healthy(tmp_path: Path) -> None:
    played = Played(tmp_path, "reboot")
    played.turn()
    states = [played.sample().state for _ in range(36)]
    assert "no-samples" in states[5:8] and "failover" in states[26:30]
    assert states[-1] in ("healthy", "busy")


def test_an_empty_store_has_no_servers(tmp_path: Path) -> None:
    assert Watching(Collector(tmp_path).store, limits=LIMITS).look(1_772_438_400 * SECOND) == ()


def test_the_watch_evaluates_after_each_round_of_all_agents(tmp_path: Path) -> None:
    for sample_s, after_s in ((10.0, 7.0), (60.0, 18.0), (1.0, 0.7)):
        watching = Watching(
            Collector(tmp_path / f"{sample_s:g}").store, limits=replace(LIMITS, sample_s=sample_s)
        )
        step = int(sample_s * SECOND)
        for now in (
            1_772_438_400 * SECOND,
            1_772_438_400 * SECOND + step // 3,
            1_772_438_400 * SECOND + step - 1,
        ):
            at = now + watching._until_next(now) * SECOND
            assert at - now <= step + 1 and (at - after_s * SECOND) % step == pytest.approx(0, abs=1000)
            assert now < at


def test_an_error_in_a_listener_does_not_end_the_watch(tmp_path: Path) -> None:
    again, said = threading.Event(), list[str]()

    def listen(verdicts: object, now: int) -> None:
        if said:
            again.set()
        raise ValueError("a fault of ours")

    watching = Watching(Collector(tmp_path).store, limits=replace(LIMITS, sample_s=1.0), listener=listen)
    with watching.running(said.append):
        assert again.wait(30)
    assert said == ["warning: states of servers: ValueError: a fault of ours"]
