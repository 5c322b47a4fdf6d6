"""Tests states of servers: each condition of docs/explanation/server-states.md separately."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iodock.centre.watch.observation import SECOND, News, Observation, Round
from iodock.centre.watch.states import States
from iodock.centre.watch.verdict import Verdict

BEGIN = 1_772_438_400 * SECOND
PLAIN = Observation(
    "mds01", "lfs", "metadata", 0, 0, handled=10_000, opens=2500, closes=2500, creates=300, waiting=1.0,
    wait_s=1e-4, operation_s=2e-4, threads=2.0, cpu=0.06, pressure=0.02, load=1.0, uptime_s=1e6,
)  # fmt: skip
BUSY: dict[str, Any] = {"handled": 60_000, "cpu": 0.7, "threads": 14.0}
K_OVERLOAD: dict[str, Any] = {
    "handled": 270_000, "waiting": 7900.0, "wait_s": 0.29, "threads": 24.0, "cpu": 0.96, "pressure": 0.35,
}  # fmt: skip
K_STALL: dict[str, Any] = {
    "handled": 500, "opens": 120, "closes": 110, "waiting": 12_000.0, "wait_s": 240.0, "threads": 24.0,
    "cpu": 0.01, "pressure": 0.99, "load": 24.0,
}  # fmt: skip
SILENT_STALL: dict[str, Any] = {
    "handled": 0, "waiting": None, "wait_s": None, "operation_s": None, "threads": None, "cpu": 0.01,
}  # fmt: skip


class Watched:
    """A server whose samples the test gives one by one."""

    def __init__(self, step_s: float = 10.0, usual: int = 60, **values: Any) -> None:
        self.states, self.at, self.step = States(), 0, int(step_s * SECOND)
        self.plain, self.wrong_s = replace(PLAIN, **values), 0
        self.now(usual)

    def now(
        self, samples: int = 1, news: News | None = None, is_silent: bool = False, **values: Any
    ) -> Verdict:
        """Passes SAMPLES samples with these values and returns the last verdict."""
        for _ in range(samples):
            self.at += 1
            end = BEGIN + self.at * self.step
            scale = self.step / (10 * SECOND)
            by_agent = end + self.wrong_s * SECOND
            changed = {**values, "begin_ns": by_agent - self.step, "end_ns": by_agent}
            uptime = self.plain.uptime_s + self.at * scale * 10 if self.plain.uptime_s else None
            one = replace(self.plain, **{"uptime_s": uptime, **changed})
            counts = {name: getattr(one, name) for name in ("handled", "opens", "closes", "creates")}
            one = replace(one, **{name: value * scale for name, value in counts.items() if value is not None})
            seen = () if is_silent else (one,)
            (self.verdict,) = self.states.take(Round(end, seen, {"mds01": news} if news else {}))
        return self.verdict


@pytest.mark.parametrize("step_s", [1.0, 10.0, 60.0])
@pytest.mark.parametrize(
    ("state", "values", "news"),
    [
        ("healthy", {}, None),
        ("healthy", {"handled": 0, "waiting": None, "wait_s": None}, None),
        ("healthy", {"evictions": 1}, News(lost=1)),
        ("busy", BUSY, None),
        ("busy", {"pressure": 0.8, "load": 9.0}, News(is_checked=True)),
        ("overload", K_OVERLOAD, None),
        ("overload", {**K_OVERLOAD, "cpu": None}, None),
        ("overload", {**K_OVERLOAD, "handled": 9000}, None),
        ("stall", K_STALL, None),
        ("stall", {**K_STALL, "cpu": None}, None),
        ("stall", {**K_STALL, "handled": 3000, "wait_s": 40.0}, None),
        ("stall", {**SILENT_STALL, "load": 24.0, "pressure": 0.97}, None),
        ("stall", SILENT_STALL, News(has_no_answer=True)),
        ("stall", SILENT_STALL, News(backlog=300.0)),
        ("stall", {**K_STALL, "wait_s": 0.01}, None),
        ("stall", K_STALL, News(faults=("array-degraded",), lost=2)),
        ("degraded", {}, News(faults=("array-degraded",))),
        ("degraded", {"handled": 6000, "wait_s": 0.4, "pressure": 0.9, "threads": 20.0}, None),
        ("degraded", {**SILENT_STALL, "threads": None, "load": 0.1}, News(lost=80, has_no_answer=True)),
        ("degraded", {"has_guests": True}, None),
        ("failover", {"is_recovering": True}, None),
        ("failover", {}, News(is_recovering=True)),
        ("failover", {"uptime_s": 40.0}, None),
        ("failover", {"handled": 0}, News(is_away=True)),
    ],
)  # fmt: skip
def test_states_are_reported_within_three_samples(
    state: str, values: dict[str, Any], news: News | None, step_s: float
) -> None:
    server = Watched(step_s)
    said = [server.now(1, news, **values).state for _ in range(3)]
    if state == "failover" and "uptime_s" in values:
        assert said[0] == "failover"
    else:
        assert said[-1] == state
    assert server.verdict.at_ns == BEGIN + server.at * server.step
    server.now(3)
    assert server.verdict.state == "healthy"


def test_a_trickle_of_requests_is_a_stall_with_evidence_and_start() -> None:
    server = Watched()
    verdict = server.now(3, **K_STALL)
    assert (verdict.state, verdict.kind, verdict.samples) == ("stall", "metadata", 3)
    assert verdict.since_ns == BEGIN + 60 * server.step
    told = {one.what: one for one in verdict.evidence}
    assert told["handled"].value == pytest.approx(50) and told["handled"].usual == pytest.approx(1000)
    assert told["cpu"].value == 0.01 and told["drain"].value == pytest.approx(240)
    assert {"opens", "closes", "waiting", "wait", "threads"} <= set(told)
    assert verdict.confidence > server.now(3, **{**K_STALL, "cpu": None}).confidence


def test_one_sample_does_not_change_the_state() -> None:
    server = Watched()
    for values in (K_STALL, K_OVERLOAD, BUSY):
        assert server.now(1, **values).state == "healthy"
        assert server.now(1).state == "healthy"
    server.now(3, **K_OVERLOAD)
    assert server.now(1).state == "overload"


def test_limits_for_leaving_a_state_are_lower() -> None:
    server = Watched()
    near = {**K_OVERLOAD, "wait_s": 0.07, "waiting": 1900.0}
    assert server.now(3, **{**near, "threads": 24.0, "cpu": 0.4, "waiting": 10.0}).state == "busy"
    server.now(3, **K_OVERLOAD)
    assert server.now(6, **near).state == "overload"


def test_a_long_episode_does_not_become_the_normal_level() -> None:
    server = Watched(60.0)
    assert server.now(23 * 60, **K_OVERLOAD).state == "overload"
    assert server.verdict.since_ns == BEGIN + 60 * server.step
    told = {one.what: one for one in server.verdict.evidence}
    assert told["handled"].usual == pytest.approx(1000)


def test_a_silent_server_is_never_called_healthy() -> None:
    server = Watched()
    assert [server.now(1, is_silent=True).state for _ in range(3)] == ["healthy", "healthy", "no-samples"]
    assert server.now(100, is_silent=True).state == "no-samples"
    assert server.now(2).state == "healthy"


def test_a_silent_server_that_clients_lost_is_down() -> None:
    server = Watched()
    assert server.now(1, News(lost=12), is_silent=True).state == "failover"
    assert server.now(30, is_silent=True).state == "failover"
    assert server.now(1, uptime_s=30.0).state == "failover"


def test_a_stall_that_begins_among_missing_samples_is_not_a_failover() -> None:
    server, news = Watched(), News(has_no_answer=True, lost=40)
    said = []
    for _ in range(10):
        server.now(1, news, is_silent=True)
        said.append(server.now(1, news, **K_STALL).state)
    assert set(said) == {"stall"}
    assert server.verdict.since_ns == BEGIN + 60 * server.step
    # If the uptime shows a restart while samples were missing, the state is failover.
    server.now(3, news, is_silent=True)
    assert server.now(1, uptime_s=30.0).state == "failover"


def test_a_state_without_recent_samples_is_marked() -> None:
    server = Watched()
    assert server.now(4, **K_OVERLOAD).missed == 0
    assert [server.now(1, is_silent=True).missed for _ in range(2)] == [1, 2]
    assert (server.verdict.state, server.verdict.samples) == ("overload", 4)
    assert server.now(1, **K_OVERLOAD).missed == 0


def test_an_agent_with_a_longer_interval_is_not_silent() -> None:
    server = Watched()
    said = []
    for values in (*[{}] * 6, *[K_OVERLOAD] * 3):
        said.append(server.now(1, **values))
        said += [server.now(1, is_silent=True) for _ in range(5)]
    # The monitor knows the usual rate of samples after some of them.
    assert {one.state for one in said[30:36]} == {"healthy"}
    assert {one.missed for one in said[30:]} == {0}
    assert {one.state for one in said[42:]} == {"overload"}
    assert server.states.clock("mds01")[0] == 60
    server.now(12, is_silent=True)
    assert server.now(6, is_silent=True).state == "no-samples"


def test_past_intervals_do_not_determine_the_sampling_interval() -> None:
    server = Watched(60.0)
    now = BEGIN + server.at * server.step
    server.states.wake(now)
    said = []
    for number in range(1, 4):
        (verdict,) = server.states.take(Round(now + number * 10 * SECOND, (), {}))
        said.append(verdict.state)
    assert said == ["healthy", "healthy", "no-samples"]


def test_mostly_missing_samples_do_not_mean_a_longer_interval() -> None:
    server = Watched()
    for missing in (5, 2, 4, 1, 5):
        server.now(missing, is_silent=True)
        server.now(1)
    assert server.now(3, is_silent=True).state == "no-samples"


def test_a_stall_without_further_samples_becomes_unknown() -> None:
    server = Watched()
    server.now(5, **K_STALL)
    assert server.now(4, is_silent=True).state == "no-samples"


def test_a_wrong_clock_changes_no_state() -> None:
    for wrong_s in (-3000, 3000):
        server = Watched()
        server.wrong_s = wrong_s
        assert server.now(5).state == "healthy"
        assert server.now(3, **K_OVERLOAD).state == "overload"
        assert server.states.clock("mds01")[1] == wrong_s * SECOND


def test_without_history_the_servers_own_samples_suffice() -> None:
    for state, values in (("overload", K_OVERLOAD), ("stall", K_STALL)):
        server = Watched(usual=1)
        assert server.now(3, **values).state == state


def test_states_from_clients_alone_are_less_certain() -> None:
    own = {
        "threads": None,
        "cpu": None,
        "pressure": None,
        "load": None,
        "uptime_s": None,
        "operation_s": None,
    }
    server = Watched(kind="client", host="nfs01", wait_s=2e-3, waiting=2.0, **own)
    slow = {"handled": 14_000, "wait_s": 0.4, "waiting": 500.0}
    assert server.now(3, **slow).state == "overload"
    assert server.verdict.kind == "client" and server.verdict.confidence <= 0.5
    assert server.now(3, handled=20, wait_s=30.0, waiting=700.0).state == "stall"
    assert server.verdict.confidence <= 0.5


def test_an_object_server_is_overloaded_if_demand_rose_else_degraded() -> None:
    plain = {
        "kind": "object", "handled": 5000, "moved_bytes": 5e9, "operation_s": 4e-3, "waiting": None,
        "wait_s": None, "threads": None, "opens": None, "closes": None, "creates": None,
    }  # fmt: skip
    slow = {"operation_s": 0.09, "pressure": 0.95, "load": 40.0}
    assert Watched(**plain).now(3, **slow, handled=4000, moved_bytes=4e9).state == "degraded"
    assert Watched(**plain).now(3, **slow, handled=20_000, moved_bytes=2e10).state == "overload"
    assert (
        Watched(**plain).now(3, **{**slow, "operation_s": 9.0}, handled=8, moved_bytes=8e6).state == "stall"
    )
    large = {"operation_s": 0.06, "handled": 300, "moved_bytes": 5e9}
    assert Watched(**plain).now(3, **large).state == "healthy"
