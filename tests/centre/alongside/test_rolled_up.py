"""Tests a run from days or weeks ago, for which the monitor's store keeps only sums over one or ten minutes.
Servers, node and run are synthetic."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from alongside_site import (
    HUNG,
    SECOND,
    Recorded,
    aged,
    centre_store,
    nfs_rows,
    node_rows,
    opened,
    plot5,
    site,
)
from iodock.centre.monitor.collector import Collector
from iodock.cli.servers import servers_of
from iodock.shared.settings import Settings
from iodock.simulation.scenarios import OVERLOADED
from said_of_servers import said

HOUR = 3600 * SECOND


def settings(folder: Path) -> Settings:
    """Returns settings that say that the clocks agree: for a run of minutes, sums are too coarse to compare
    the clocks."""
    found = site(folder, agree_s=1.0)
    return replace(found, states=replace(found.states, usual_hours=6.0))


@pytest.mark.parametrize(("days", "kept", "hiccup_s"), [(21, "600 s", 10.0), (3, "60 s", None)])
def test_sums_over_long_intervals_do_not_exclude_a_server_problem(
    tmp_path: Path, days: int, kept: str, hiccup_s: float | None
) -> None:
    """The servers had a hiccup of 10 s, which sums over ten minutes do not show."""
    collector = centre_store(tmp_path / "m", hiccup_s, 60.0, begin=HUNG - 5 * HOUR, until=HUNG + HOUR)
    node_rows(collector)
    aged(collector, days)
    at, whole = said(plot5(tmp_path / "run.iodock"), settings(tmp_path / "m"))
    assert f"the monitor's store has only sums of {kept}" in whole
    assert "servers were healthy" not in at + whole
    assert f"Over the {kept} around the call" in at
    assert "it is unknown whether they were healthy" in at
    assert f"by samples of {kept} the servers were as usual" in whole


@pytest.mark.parametrize(("days", "step_s"), [(21, 600), (3, 60)])
def test_long_trouble_is_reported_with_its_resolution(tmp_path: Path, days: int, step_s: int) -> None:
    collector = centre_store(
        tmp_path / "m", 3000.0, 60.0, OVERLOADED, HUNG + HOUR, HUNG - 5 * HOUR, before_s=900.0
    )
    node_rows(collector)
    aged(collector, days)
    run, asked = plot5(tmp_path / "run.iodock"), settings(tmp_path / "m")
    at, whole = said(run, asked)
    assert "mds01" in at and ("was overloaded" in at or "suggests an overload" in at)
    assert "has only sums of" in whole
    with opened(run) as store:
        found = servers_of(store, asked)
        assert found is not None
        meanwhile = found.meanwhile()
    assert meanwhile is not None and meanwhile.kept_s == meanwhile.sample_s == step_s
    curves = {(one.server, one.metric): one.points for one in meanwhile.curves}
    waits = [value for _, value in curves["mds01", "wait_s"]]
    assert max(waits) > 0.1
    ends = [end for end, _ in curves["mds01", "wait_s"]]
    assert all(later - earlier == step_s * SECOND for earlier, later in pairwise(ends))


def test_clients_of_weeks_ago_are_found(tmp_path: Path) -> None:
    """The NFS server has no agent, and the node reports no jobs, so the store has no table of jobs."""
    collector = Collector(tmp_path / "m")
    node_rows(collector)
    nfs_rows(collector, None, begin=HUNG - 5 * HOUR)
    aged(collector, 21)
    run = plot5(tmp_path / "run.iodock", Recorded(source="nas:/export", fs_type="nfs4"))
    at, whole = said(run, settings(tmp_path / "m"))
    assert "Over the 600 s around the call the servers of nas:/export were in their normal state" in at
    assert "nas:/export: by samples of 600 s the servers were as usual" in whole


def test_other_jobs_are_reported_from_sums(tmp_path: Path) -> None:
    """The diagnosis does not attribute the bytes of ten minutes to one call."""
    collector = centre_store(tmp_path / "m", None, 60.0, begin=HUNG - 5 * HOUR, until=HUNG + HOUR)
    node_rows(collector, others=[("777", "alice", 50_000_000)])
    aged(collector, 21)
    at, _ = said(plot5(tmp_path / "run.iodock"), settings(tmp_path / "m"))
    assert "From the same machine 777 of alice read 0 B and wrote" in at
    assert "from 12:00:00 to 12:10:00 (the agent's count)" in at


def test_diagnosis_says_that_kept_sums_are_too_coarse_to_compare_clocks(tmp_path: Path) -> None:
    collector = centre_store(tmp_path / "m", None, 60.0, begin=HUNG - 5 * HOUR, until=HUNG + HOUR)
    node_rows(collector)
    aged(collector, 21)
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert at == ""
    assert "keeps only sums of that time, too coarse to compare clocks" in whole
