"""Tests the advice on a job: the sentences fit what the job did, and the rules have the syntax of the
site's Lustre version."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from iodock.centre.views.verdicts import EVIDENCE
from iodock.centre.watch import cures, suspects, tbf
from iodock.centre.watch.observation import Asked
from iodock.centre.watch.schedulers import SCHEDULERS
from iodock.centre.watch.schedulers.desk import SchedulerDesk
from iodock.centre.watch.verdict import Evidence, State, Suspect
from iodock.shared.language import language_in
from iodock.shared.response import Intervention

EN = language_in("en")


def did(job: str = "4711", **rates: float | None) -> Suspect:
    evidence = tuple(Evidence(what.replace("_", "-"), rate, None, "1/s") for what, rate in rates.items())
    return Suspect(job, 0.9, 0.9, evidence, "alice")


@pytest.mark.parametrize(
    ("state", "kind", "rates", "first", "says"),
    [
        ("overload", "metadata", {"opens": 9e3, "closes": 9e3}, "opens", "Open each file once"),
        ("overload", "metadata", {"opens": 9e3, "creates": 8e3}, "creates", "Write fewer and larger files"),
        ("overload", "metadata", {"opens": 9e3, "creates": 100}, "opens", "Open each file once"),
        ("stall", "metadata", {"creates": 7e3, "object_creates": 84e3}, "objects", "lfs setstripe -c 1"),
        ("stall", "metadata", {"object_creates": 84e3}, "objects", "Do not use -c -1"),
        ("overload", "object", {"moved": 5e9, "opens": 10}, "bytes", "requests of 1 MiB or more"),
    ],
)
def test_owners_get_advice_for_the_observed_problem(
    state: State, kind: str, rates: dict[str, float], first: str, says: str
) -> None:
    suspect = did(**rates)
    assert cures.patterns(state, kind, suspect)[0] == first
    said = cures.for_owner(state, kind, suspect, Intervention(), EN)
    assert says in said[0]
    local = "on the node itself" in " ".join(said)
    assert local == (first in ("opens", "creates") or "creates" in rates or "opens" in rates)


def test_advice_contains_the_observed_amounts() -> None:
    suspect = did(object_creates=84_672.0, creates=None)
    said = "Creating the job's files creates 84,672 objects per second: number of files times stripe count."
    # The sentence leaves out an unknown value instead of showing 0.
    assert cures.seen(suspect, EN) == [said]
    helps = cures.for_owner("stall", "metadata", suspect, Intervention(), EN)
    assert helps[0].startswith("Set a stripe count of 1") and helps[1].startswith("Write fewer")
    assert cures.for_owner("overload", "metadata", did(latency=1.0), Intervention(), EN) == []


def test_advice_is_based_on_the_evidence_of_suspects() -> None:
    asked = Asked(
        "4711", metadata=9.0, opens=4.0, creates=3.0, object_creates=8.0, moved_bytes=5.0, requests=2.0
    )
    window = suspects._Window(1.0, 1.0, {"4711": asked}, {}, {"4711": asked}, 1.0)
    told = suspects._suspect("4711", window, 0.9, 0.9).evidence
    assert set(cures.rates_of(told)) == {"opens", "creates", "objects", "bytes"}
    assert {one.what for one in told} <= set(EVIDENCE)


def test_no_job_is_named_if_none_stands_out() -> None:
    desk = SchedulerDesk(SCHEDULERS["slurm"])
    for state, named in (("overload", ()), ("degraded", (did(),)), ("failover", (did(),))):
        found = cures.for_operators(state, "metadata", named, Intervention(), desk, EN)  # type: ignore[arg-type]
        assert found.commands == () and found.advice


def started(
    version: str, kind: str = "metadata", job: str = "4711", **more: Any
) -> dict[str, tuple[str, ...]]:
    given = {"rate": 12_000.0, "ids": None, **more}
    rules = tbf.rules(kind, job, version=tbf.version_of(version), **given)
    return {rule.by: rule.start for rule in rules}


@pytest.mark.parametrize(
    ("version", "rule"),
    [
        ("2.5.3", None),
        ("1.8", None),
        ("2.7.0", "start j4711 {4711 4711:*} 1200"),
        ("2.8.0_35", "start j4711 {4711 4711:*} 1200"),
        ("2.9.0", "start j4711 jobid={4711 4711:*} rate=1200"),
        ("2.12.9", "start j4711 jobid={4711 4711:*} rate=1200"),
        ("2.15.3-1.el8", "start j4711 jobid={4711 4711:*} rate=1200"),
        ("", "start j4711 jobid={4711 4711:*} rate=1200"),
        ("nonsense", "start j4711 jobid={4711 4711:*} rate=1200"),
    ],
)
def test_job_rules_have_the_syntax_of_the_servers_version(version: str, rule: str | None) -> None:
    found = started(version)
    if rule is None:
        assert found == {}
        return
    service = "lctl set_param mds.MDS.mdt"
    assert found["jobid"] == (f'{service}.nrs_policies="tbf jobid"', f'{service}.nrs_tbf_rule="{rule}"')


def test_project_and_nodemap_rules_need_a_recent_lustre() -> None:
    assert set(started("2.15.4")) == {"jobid"} and set(started("")) == {"jobid"}
    assert set(started("2.16.0")) == {"jobid", "projid"}
    found = started("2.17.0")
    assert set(found) == {"jobid", "projid", "nodemap"}
    assert found["projid"][1].endswith('.nrs_tbf_rule="start iodock_p projid={PROJECT} rate=1200"')
    assert found["nodemap"][0].endswith('.nrs_policies="tbf nodemap"')


def test_rules_can_be_removed_and_have_valid_lustre_names() -> None:
    for job in ("4711", "4711_1234567", "4711.some-long-server-name", "1+1"):
        (rule,) = tbf.rules("object", job, None, None, (2, 15))
        name = re.search(r"start (\S+) jobid=", rule.start[1])
        assert name and len(name[1]) <= 15 and re.fullmatch(r"[A-Za-z0-9_]+", name[1])
        assert rule.stop[0] == f'lctl set_param ost.OSS.ost_io.nrs_tbf_rule="stop {name[1]}"'
        assert "rate=100" in rule.start[1]


def test_a_rule_limits_requests_and_not_objects() -> None:
    rules = Intervention(lustre_version="2.15.3")
    for suspect, limit in ((did(objects=84_000.0, creates=7000.0), 700), (did(object_creates=84_000.0), 100)):
        found = cures.for_operators("stall", "metadata", (suspect,), rules, None, EN)
        assert f'rate={limit}"' in found.commands[0][1][1]


@pytest.mark.parametrize(
    ("rate", "ids", "limit"),
    [
        # With jobid_name %j, the job has one bucket on all of its nodes.
        (12_000.0, 1, 1200), (12_000.0, None, 1200), (5.0, 1, 1), (1e9, 1, 65_535),
        # With %j:%u:%H, each node has its own bucket.
        (12_000.0, 120, 10), (27_000.0, 1008, 3), (None, 1, 100), (None, 10, 10),
    ],
)  # fmt: skip
def test_the_suggested_rate_is_a_tenth_of_the_jobs_rate_per_job_id(
    rate: float | None, ids: int | None, limit: int
) -> None:
    assert started("2.15", rate=rate, ids=ids)["jobid"][1].endswith(f'rate={limit}"')


def test_projects_and_nodemaps_are_not_divided_by_nodes() -> None:
    found = started("2.17", ids=120)
    assert [found[by][1].rpartition("rate=")[2] for by in ("jobid", "projid", "nodemap")] == [
        '10"', '1200"', '1200"',
    ]  # fmt: skip
    assert started("2.15", kind="client") == {}


def test_a_rule_that_would_not_slow_the_job_is_not_suggested() -> None:
    """In K's stall, a job created 84,000 files in two minutes on 12,096 nodes. A limit of one request per
    second and node has no effect."""
    suspect = replace(did(opens=700.0, object_creates=8400.0), nodes=12_096, job_ids=12_096)
    assert set(started("2.15", rate=700.0, ids=12_096)) == set()
    assert set(started("2.17", rate=700.0, ids=12_096)) == {"projid", "nodemap"}
    rules = Intervention(lustre_version="2.15.3")
    ((why, lines),) = cures.for_operators("stall", "metadata", (suspect,), rules, None, EN).commands
    assert "12,096 JobIDs" in why and lines == ()
    # The same job under one JobID can be slowed down.
    one = cures.for_operators("stall", "metadata", (replace(suspect, job_ids=1),), rules, None, EN)
    assert 'rate=70"' in one.commands[0][1][1]
    old = cures.for_operators("stall", "metadata", (suspect,), Intervention(lustre_version="2.5.3"), None, EN)
    assert old.commands == ()


@pytest.mark.parametrize(
    "job", ["a b", "a}", 'a"', "$(id)", "a'", "*", "a\nb", "", "4711:1:r01", "x" * 40, "日"]
)
def test_an_ambiguous_job_id_gets_no_rule(job: str) -> None:
    assert started("2.15.3", job=job) == {}


def test_observations_appear_in_japanese() -> None:
    suspect, text = did(object_creates=84_000.0), language_in("ja")
    assert "ストライプカウント" in cures.seen(suspect, text)[0] and "84,000" in cures.seen(suspect, text)[0]
    assert "lfs setstripe -c 1" in cures.for_owner("stall", "metadata", suspect, Intervention(), text)[0]
