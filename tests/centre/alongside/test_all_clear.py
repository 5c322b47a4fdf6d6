"""Tests when a diagnosis may call a run's servers healthy: only with enough samples from before the run.
Servers, node and run are synthetic."""

from __future__ import annotations

from pathlib import Path

import pytest

from alongside_site import HUNG, SECOND, Recorded, centre_store, nfs_rows, node_rows, plot5, site
from iodock.centre.alongside.replay import replayed
from iodock.centre.monitor.collector import Collector
from said_of_servers import said

RUN = HUNG - 120 * SECOND
"""Start of plot5's run."""


@pytest.mark.parametrize(("before", "is_enough"), [(0, False), (8, False), (30, True)])
def test_a_store_with_little_history_does_not_report_healthy_servers(
    tmp_path: Path, before: int, is_enough: bool
) -> None:
    """BEFORE: number of 10 s samples from before the run. 12 samples suffice to know the usual values."""
    node_rows(centre_store(tmp_path / "m", None, begin=RUN - before * 10 * SECOND))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    if is_enough:
        assert "The file servers were healthy at that time: all 3 of lfs" in at
        assert "lfs: the file servers were healthy while the program ran" in whole
        return
    assert "were healthy at that time" not in at
    assert "servers were healthy while" not in whole
    assert "not enough samples from before the run to know whether the servers were healthy" in at
    assert "not enough samples from before it to know whether the servers were healthy" in whole
    assert "usually" not in at


def test_trouble_is_reported_from_a_store_with_little_history(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", 30.0, begin=RUN - 40 * SECOND))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert "At that time mds01, which serves lfs, had stalled" in at
    assert "healthy" not in at + whole


def test_new_clients_alone_do_not_prove_healthy_servers(tmp_path: Path) -> None:
    """The NFS server has no agent, and the collector reads its clients for the first time when the run
    begins."""
    collector = Collector(tmp_path / "m")
    node_rows(collector)
    nfs_rows(collector, None, begin=RUN - 40 * SECOND)
    run = plot5(tmp_path / "run.iodock", Recorded(source="nas:/export", fs_type="nfs4"))
    at, whole = said(run, site(tmp_path / "m"))
    assert "were healthy at that time" not in at
    assert "server was healthy" not in at + whole
    assert "not enough samples from before the run" in at


def test_an_idle_night_gives_no_normal_waiting_time(tmp_path: Path) -> None:
    """Clients that make no request before the run do not show how long an operation usually takes."""
    collector = Collector(tmp_path / "m")
    node_rows(collector)
    nfs_rows(collector, None, idle_until=RUN)
    run = plot5(tmp_path / "run.iodock", Recorded(source="nas:/export", fs_type="nfs4"))
    at, whole = said(run, site(tmp_path / "m"))
    assert "healthy at that time" not in at
    assert "server was healthy" not in at + whole


def test_normal_values_are_not_learnt_from_the_run_itself(tmp_path: Path) -> None:
    """An hour in a single state does not show what is usual."""
    collector = centre_store(tmp_path / "m", None, begin=RUN - 40 * SECOND)
    found = replayed(collector.store, site(tmp_path).states, RUN, HUNG + 90 * SECOND)
    assert found.state("mds01", HUNG + 60 * SECOND, HUNG + 80 * SECOND) == "no-usual"


def test_the_sentence_about_missing_history_is_in_japanese(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", None, begin=RUN - 40 * SECOND))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"), "ja")
    assert "正常だったかどうかは判断できません" in at + whole
    assert "enough" not in at + whole
