"""Tests suspected jobs: the current load of each job compared with its earlier load."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from iodock.centre.watch.observation import SECOND, Asked
from iodock.centre.watch.suspects import suspects
from iodock.centre.watch.verdict import State, Verdict

SINCE = 1_000_000 * SECOND


class Rates:
    """Answers queries with jobs that have these rates per second and start times."""

    def __init__(self, *rates: tuple[str, float, dict[str, float]]) -> None:
        self._rates = rates

    def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
        found = []
        for job, begins_s, rates in self._rates:
            begin = max(begin_ns, SINCE + int(begins_s * SECOND))
            if begin < end_ns:
                seconds = (end_ns - begin) / SECOND
                found.append(Asked(job, **{name: rate * seconds for name, rate in rates.items()}))
        return found


def verdict(state: State, kind: str = "metadata") -> Verdict:
    return Verdict("lfs", "mds01", kind, state, SINCE, SINCE + 30 * SECOND, 0.9, 3)  # type: ignore[arg-type]


ALWAYS = -1e5


@pytest.mark.parametrize("step_s", [1.0, 10.0, 60.0])
def test_a_newly_started_job_is_suspected_before_a_constantly_heavy_one(step_s: float) -> None:
    jobs = Rates(
        ("old", ALWAYS, {"metadata": 4000.0}),
        ("new", -step_s, {"metadata": 9000.0, "opens": 4000.0, "creates": 900.0}),
        ("small", ALWAYS, {"metadata": 30.0}),
    )
    (first,) = suspects(verdict("overload"), jobs, step_s)
    assert first.job == "new" and first.share > 0.3
    told = {one.what: one for one in first.evidence}
    assert told["opens"].value and told["opens"].usual == 0


def test_three_jobs_together_are_all_named() -> None:
    jobs = Rates(
        ("bystander", ALWAYS, {"metadata": 500.0}),
        *((f"n{n}", -5.0, {"metadata": 3000.0 + n}) for n in range(3)),
    )
    assert [one.job for one in suspects(verdict("overload"), jobs, 10.0)] == ["n2", "n1", "n0"]


def test_suspects_of_a_stall_created_most_objects_before() -> None:
    jobs = Rates(
        ("opens", ALWAYS, {"opens": 3000.0, "creates": 50.0, "object_creates": 50.0}),
        ("wide", -120.0, {"opens": 280.0, "creates": 280.0, "object_creates": 3400.0}),
    )
    (first,) = suspects(verdict("stall"), jobs, 10.0)
    assert first.job == "wide" and first.share > 0.9


def test_similar_jobs_give_no_suspect() -> None:
    many = Rates(*((f"j{n}", ALWAYS, {"metadata": 100.0 + n}) for n in range(12)))
    assert suspects(verdict("overload"), many, 10.0) == ()
    assert suspects(verdict("overload"), Rates(), 10.0) == ()
    began = Rates(*((f"j{n}", -5.0, {"metadata": 100.0}) for n in range(12)))
    assert suspects(verdict("overload"), began, 10.0) == ()


def test_a_load_that_ended_before_is_not_a_suspect() -> None:
    class Over(Rates):
        def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
            found = list(super().asked(host, begin_ns, end_ns, with_objects))
            last = min(end_ns, SINCE - 40 * SECOND)
            begin = max(begin_ns, SINCE - 90 * SECOND)
            more = 5000.0 * max(0, last - begin) / SECOND
            return [Asked(one.job, creates=one.creates + more * (one.job == "j1")) for one in found]

    jobs = Over(*((f"j{n}", ALWAYS, {"creates": 5.0}) for n in range(4)))
    assert suspects(verdict("stall"), jobs, 2.0) == ()
    assert suspects(verdict("stall"), Rates(("j1", -90, {"creates": 5000.0})), 2.0)


def test_in_the_first_minutes_a_job_is_compared_with_available_data() -> None:
    begun = SINCE - 240 * SECOND
    jobs = Rates(("old", -240.0, {"metadata": 4000.0}), ("more", -240.0, {"metadata": 900.0}))
    assert suspects(verdict("overload"), jobs, 10.0, known_ns=begun) == ()
    # If there was no load before, the job with high load is named, but not with certainty.
    jobs = Rates(("first", -20.0, {"metadata": 4000.0}))
    (first,) = suspects(verdict("overload"), jobs, 10.0, known_ns=SINCE - 20 * SECOND)
    assert first.confidence <= 0.6


class Ramp:
    """Answers with one job whose load has long been growing, among others with constant load."""

    def __init__(self, begins_s: float, last: float) -> None:
        self._begins_s, self._last = begins_s, last

    def asked(self, host: str, begin_ns: int, end_ns: int, with_objects: bool = False) -> Sequence[Asked]:
        begin, end = (begin_ns - SINCE) / SECOND, (end_ns - SINCE) / SECOND
        first, last = (max(0.0, 1 - at / self._begins_s) * self._last for at in (begin, end))
        found = [Asked(f"j{n}", metadata=(90.0 + n) * (end - begin)) for n in range(20)]
        return [*found, Asked("ramp", metadata=(first + last) / 2 * (end - begin))]


@pytest.mark.parametrize("hours", [1.5, 4, 8])
def test_a_job_with_growing_demand_is_named_with_less_confidence(hours: float) -> None:
    (first,) = suspects(verdict("overload"), Ramp(-3600.0 * hours, 9000.0), 10.0)
    assert first.job == "ramp" and first.share > 0.7 and first.confidence <= 0.6
    # A job with constant load is not the cause.
    always = Rates(("old", ALWAYS, {"metadata": 9000.0}), ("other", ALWAYS, {"metadata": 900.0}))
    assert suspects(verdict("overload"), always, 10.0) == ()


def test_without_job_counters_suspects_come_from_node_bytes() -> None:
    jobs = Rates(("quiet", ALWAYS, {"node_bytes": 1e6}), ("loud", -20.0, {"node_bytes": 4e9}))
    for kind in ("metadata", "object", "client"):
        for state in ("overload", "stall"):
            (first,) = suspects(verdict(state, kind), jobs, 10.0)  # type: ignore[arg-type]
            assert first.job == "loud" and first.confidence <= 0.3
            assert [one.what for one in first.evidence] == ["node-bytes"]


def test_load_without_a_job_names_no_suspect() -> None:
    jobs = Rates(("new", -5.0, {"metadata": 9000.0, "moved_bytes": 1e9}))
    for state in ("failover", "degraded", "no-samples", "busy", "healthy"):
        assert suspects(verdict(state), jobs, 10.0) == ()


def test_suspects_of_object_servers_are_ranked_by_bytes() -> None:
    jobs = Rates(
        ("reads", ALWAYS, {"moved_bytes": 1e8, "requests": 100.0}),
        ("writes", -5.0, {"moved_bytes": 4e9, "requests": 4000.0}),
    )
    assert [one.job for one in suspects(verdict("overload", "object"), jobs, 10.0)] == ["writes"]
