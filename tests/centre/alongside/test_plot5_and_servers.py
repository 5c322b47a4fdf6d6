"""Tests what the diagnosis of plot5 (SS-ken report) on a simulated centre says about the servers at 12:08:20,
and that it says nothing where no server was read. Servers, node and run are synthetic."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from alongside_site import (
    BEGIN,
    HUNG,
    SECOND,
    Recorded,
    centre_store,
    nfs_rows,
    node_rows,
    plot5,
    site,
)
from diagnosing import of_rule
from iodock.centre.alongside.replay import replayed
from iodock.centre.monitor.collector import Collector
from iodock.centre.store import MonitorStore
from iodock.shared.language import language_in
from iodock.shared.sentences import say
from iodock.shared.settings import ServerReadings
from iodock.simulation.scenarios import OVERLOADED
from said_of_servers import diagnosed, said


@pytest.mark.parametrize("step_s", [10.0, 1.0])
def test_a_short_stall_is_reported_at_the_second_of_the_call(tmp_path: Path, step_s: float) -> None:
    """The hiccup lasts 30 s, so two samples of 10 s show it."""
    collector = centre_store(tmp_path / "m", 30.0, step_s)
    node_rows(collector)
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m", sample_s=step_s))
    assert "At that time mds01, which serves lfs, had stalled" in at
    assert "Requests waiting:" in at and "CPU use of the server: 1" in at
    assert "single sample" not in at
    assert "lfs: while the program ran, mds01 was stalled for " in whole
    assert "healthy" not in at + whole
    assert "no difference was found, to within" in whole


def test_a_stall_seen_in_one_sample_is_called_weak_evidence(tmp_path: Path) -> None:
    """The hiccup lasts 15 s, so only one sample of 10 s lies completely inside it."""
    node_rows(centre_store(tmp_path / "m", 15.0))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert "one sample of mds01, which serves lfs, suggests a stall" in at
    assert "from 12:08:20 to 12:08:30" in at
    assert "a single sample of mds01 suggests some" in whole
    assert "healthy" not in at + whole


def test_an_overload_is_not_reported_as_a_stall(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", 60.0, condition=OVERLOADED))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert "At that time mds01, which serves lfs, was overloaded" in at
    assert "mds01 was overloaded for" in whole


def test_healthy_servers_are_reported_as_healthy(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", None))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert "The file servers were healthy at that time: all 3 of lfs" in at
    assert "lfs: the file servers were healthy while the program ran (3 read for" in whole
    assert "stalled" not in at + whole


def test_missing_readings_do_not_mean_healthy(tmp_path: Path) -> None:
    """The agents on the servers stopped a few minutes before the run."""
    node_rows(centre_store(tmp_path / "m", None, until=HUNG - 400 * SECOND))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert "There are no readings of the servers of lfs at that time" in at
    assert "lfs: there are no readings of the servers while the program ran" in whole
    assert "were healthy at that time" not in at
    assert "servers were healthy while" not in whole


def test_readings_that_end_during_the_run_do_not_prove_healthy_servers(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", None, until=HUNG - 60 * SECOND))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert "There are no readings of the servers of lfs at that time" in at
    assert "was not read for" in whole
    assert "servers were healthy while" not in whole


def test_a_problem_that_began_after_the_call_is_not_its_cause(tmp_path: Path) -> None:
    """The replayed states end at the call. A problem that began afterwards must not change the state before
    it."""
    node_rows(centre_store(tmp_path / "m", None))
    found = replayed(
        centre_store(tmp_path / "n", 60.0).store, site(tmp_path).states, HUNG - 300 * SECOND, HUNG
    )
    before = HUNG - 40 * SECOND
    assert found.state("mds01", before, before + SECOND) in ("healthy", "busy")


def test_a_clock_that_is_behind_is_corrected(tmp_path: Path) -> None:
    """The clock of the recording's machine is 33 s behind its agent's, as after a restored snapshot."""
    collector = centre_store(tmp_path / "m", 30.0)
    node_rows(collector)
    at, whole = said(plot5(tmp_path / "behind.iodock", Recorded(behind_s=33.0)), site(tmp_path / "m"))
    assert "had stalled" in at
    # The reported times are those of the recording's clock.
    assert re.search(r"Readings of mds01 from 12:07:(4[78]|5[78]) to", at)
    told = re.search(r"ahead by (\S+) s, known to within (\S+) s", whole)
    assert told and abs(float(told[1]) - 33) <= float(told[2]) <= 3


def test_without_comparable_clocks_servers_are_not_related_to_calls(tmp_path: Path) -> None:
    collector = centre_store(tmp_path / "m", 30.0)
    run = plot5(tmp_path / "run.iodock")
    at, whole = said(run, site(tmp_path / "m"))
    assert at == "" and "no agent ran on the recording's machine" in whole
    node_rows(collector, grown=lambda at: 1e6 * (at - BEGIN) / SECOND)
    steady = plot5(tmp_path / "steady.iodock", Recorded(steady=True))
    at, whole = said(steady, site(tmp_path / "m"))
    assert at == "" and "too steady to compare clocks" in whole
    at, whole = said(run, site(tmp_path / "m", agree_s=1.0))
    assert at == "" and "counters of the recording and of the agent on its machine do not match" in whole
    # The settings say that the clocks agree, and no data contradict this.
    at, whole = said(steady, site(tmp_path / "m", agree_s=1.0))
    assert "had stalled" in at
    assert "settings say that clocks agree to within 1 s" in whole


def test_for_an_imported_log_the_site_must_confirm_the_clocks(tmp_path: Path) -> None:
    """The imported log names no machine and no mounts."""
    centre_store(tmp_path / "m", 30.0)
    run = plot5(tmp_path / "run.iodock", Recorded(host=None, source=None))
    at, whole = said(run, site(tmp_path / "m"))
    assert at == "" and "does not say on which machine" in whole
    at, whole = said(run, site(tmp_path / "m", agree_s=2.0))
    assert "mds01, which serves lfs, had stalled" in at
    assert "does not name the file systems that it used" in whole
    at, whole = said(run, site(tmp_path / "m", agree_s=2.0, monitored_as="lfs"))
    assert "mds01, which serves lfs, had stalled" in at
    assert "does not name the file systems that it used" not in whole
    assert "No agent on that machine recorded which other programs" in at


def test_an_unmonitored_file_system_is_reported(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", 30.0))
    run = plot5(tmp_path / "run.iodock", Recorded(source="10.0.0.9@tcp:/other"))
    at, whole = said(run, site(tmp_path / "m"))
    assert "No server of /scratch is in the monitor's store" in at
    assert "no server of a file system that this program used" in whole


def test_other_users_of_the_node_are_reported(tmp_path: Path) -> None:
    node_rows(
        centre_store(tmp_path / "m", None),
        others=[("777", "alice", 50_000_000), ("778", "bob", 1000)],
        commands={"777": "tar"},
    )
    at, _ = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    # Readings cover 10 s, and the call overlaps two of them.
    assert "777 of alice read 0 B and wrote 95.4 MiB" in at
    assert at.index("777 of alice") < at.index("This job or session ran tar.") < at.index("778 of bob")
    assert at.count("This job or session ran") == 1


@pytest.mark.parametrize("slow_s", [60.0, None])
def test_the_state_of_an_nfs_server_is_derived_from_its_clients(tmp_path: Path, slow_s: float | None) -> None:
    """The server has no agent, but clients notice that answers are late."""
    collector = Collector(tmp_path / "m")
    node_rows(collector)
    nfs_rows(collector, slow_s)
    run = plot5(tmp_path / "run.iodock", Recorded(source="nas:/export", fs_type="nfs4"))
    at, whole = said(run, site(tmp_path / "m"))
    if slow_s is None:
        assert "The file server was healthy at that time: nas of nas:/export" in at
        assert "nas:/export: the file servers were healthy while the program ran" in whole
    else:
        assert "At that time nas, which serves nas:/export, was " in at
        assert "healthy" not in at + whole


def test_servers_are_not_called_healthy_if_agents_report_less_often_than_configured(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", None, step_s=60.0))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert "servers were healthy" not in at + whole
    at, whole = said(plot5(tmp_path / "again.iodock"), site(tmp_path / "m", sample_s=60.0))
    assert "Over the 60 s around the call the servers of lfs were in their normal state" in at
    assert "lfs: the file servers were healthy while the program ran" in whole


@pytest.mark.parametrize("what", ["missing", "damaged", "no-folder"])
def test_an_unreadable_store_gives_a_message_of_one_line(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "m"
    if what == "damaged":
        folder.mkdir()
        (folder / "catalogue.json").write_text("{")
    elif what == "no-folder":
        folder.write_text("")
    found = diagnosed(plot5(tmp_path / "run.iodock"), site(folder))
    text = language_in("en")
    lines = [say(one, text) for one in found.remarks]
    assert len([line for line in lines if line.startswith("The state of the servers is unknown:")]) == 1
    assert of_rule(found, "slow-call")[0].meanwhile == ()


def test_without_the_setting_servers_are_not_reported(tmp_path: Path) -> None:
    settings = replace(site(tmp_path), servers=ServerReadings())
    found = diagnosed(plot5(tmp_path / "run.iodock"), settings)
    assert found.remarks == ()
    assert of_rule(found, "slow-call")[0].meanwhile == ()


def test_the_sentence_about_servers_is_in_japanese(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", 30.0))
    at, whole = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"), "ja")
    assert "mds01" in at and "At that time" not in at
    assert "while the program ran" not in whole


def test_long_runs_and_many_servers_use_longer_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test lowers the limit on the number of judged samples, which has the same effect as many
    servers."""
    centre_store(tmp_path / "m", None)
    monkeypatch.setattr("iodock.centre.alongside.replay._MOST_JUDGED", 60)
    found = replayed(MonitorStore(tmp_path / "m"), site(tmp_path).states, HUNG - 900 * SECOND, HUNG)
    assert found.step >= 60 * SECOND
    assert found.state("mds01", HUNG - 600 * SECOND, HUNG - 300 * SECOND) in ("healthy", "busy")
