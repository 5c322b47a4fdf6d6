"""Tests that the command line queries the monitor's store that the settings name. Servers, node and run are
synthetic."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from alongside_site import HUNG, NODE, Recorded, centre_store, node_rows, plot5
from diagnosing import only_rules
from in_process import printed, shown
from places import ROOT


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with a monitor's store with a hiccup, plot5's run, and a site's settings."""
    folder = tmp_path_factory.mktemp("site")
    node_rows(centre_store(folder / "m", 30.0), others=[("777", "alice", 50_000_000)])
    plot5(folder / "run.iodock")
    (folder / "site.toml").write_text(
        f'[servers]\nstore = "{folder / "m"}"\n[states]\nscheduler = "none"\nusual_hours = 1\n'
    )
    return folder


@pytest.fixture(autouse=True)
def asked() -> Iterator[None]:
    """Runs only the rule that uses information about servers, and one other rule."""
    with only_rules("slow-call", "open-close-loop"):
        yield


@pytest.fixture
def settings(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODOCK_SETTINGS", str(place / "site.toml"))


def test_diagnose_names_the_server(place: Path) -> None:
    told = printed("diagnose", place / "run.iodock", "--settings", place / "site.toml")
    plain = " ".join(told.split())
    assert "At that time mds01, which serves lfs, had stalled" in plain
    assert "From the same machine 777 of alice read 0 B and wrote" in plain


def test_diagnose_names_the_server_in_japanese(place: Path) -> None:
    told = printed("diagnose", place / "run.iodock", "--settings", place / "site.toml", "--lang", "ja")
    plain = re.sub(r"\s", "", told)
    assert "lfsのサーバmds01は応答停止状態でした" in plain
    assert "At that time" not in told


def test_json_contains_the_sentences_about_servers(place: Path) -> None:
    options = ("--settings", place / "site.toml", "--format", "json")
    found = json.loads(printed("diagnose", place / "run.iodock", *options))
    schema = json.loads((ROOT / "docs/reference/findings.schema.json").read_text())
    jsonschema.validate(found, schema)
    (hung,) = [one for one in found["findings"] if one["rule"] == "slow-call"]
    assert any("had stalled" in one for one in hung["meanwhile"])
    assert all(one["meanwhile"] == [] for one in found["findings"] if one["rule"] != "slow-call")


@pytest.mark.usefixtures("settings")
def test_the_report_draws_server_curves_on_the_runs_time_axis(place: Path) -> None:
    printed("report", place / "run.iodock", "-o", place / "run.html")
    servers = page_data(place / "run.html")["servers"]
    stall = next(one for one in servers["states"] if one["server"] == "mds01")
    (band,) = [part for part in stall["parts"] if part[2] == "stall"]
    # The open begins 120 s after the run's start, and the hiccup begins two seconds before the open. Samples
    # are 10 s apart.
    assert band[0] == pytest.approx(120e9, abs=12e9)
    assert band[1] - band[0] == pytest.approx(30e9, abs=12e9)
    (waiting,) = [one for one in servers["curves"] if (one["target"], one["metric"]) == ("mds01", "waiting")]
    assert max(value for _, value in waiting["points"]) == pytest.approx(12_000, rel=0.01)
    peak = max(waiting["points"], key=lambda point: point[1])
    assert band[0] <= peak[0] <= band[1] + 10e9


def page_data(page: Path) -> dict[str, Any]:
    found = re.search(r'<script[^>]*id="page-data"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])["page"]
    return data


@pytest.mark.usefixtures("settings")
def test_show_machine_lists_the_servers_too(place: Path) -> None:
    rows = shown(place / "run.iodock", "machine")["rows"]
    waiting = {
        row["ts"]: row["value"] for row in rows if row["source"] == "server" and row["metric"] == "waiting"
    }
    near = min(waiting, key=lambda ts: abs(ts - HUNG - 10_000_000_000))
    assert waiting[near] == pytest.approx(12_000, rel=0.01)
    others = {(row["target"], row["metric"]): row["value"] for row in rows if row["source"] == "others"}
    assert others["777", "written_bytes"] > 5e8
    assert others["777", "read_bytes"] == 0
    assert any(row["source"] == "diskstats" for row in rows)


@pytest.mark.parametrize("verb", ["diagnose", "report", "show"])
def test_a_missing_monitor_store_does_not_fail_the_command(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    (tmp_path / "site.toml").write_text('[servers]\nstore = "/nowhere/at/all"\n')
    monkeypatch.setenv("IODOCK_SETTINGS", str(tmp_path / "site.toml"))
    run = place / "run.iodock"
    if verb == "diagnose":
        told = " ".join(printed("diagnose", run).split())
        assert told.count("The state of the servers is unknown: /nowhere/at/all: not a monitor store") == 1
    elif verb == "report":
        printed("report", run, "-o", tmp_path / "run.html")
        assert page_data(tmp_path / "run.html")["servers"]["curves"] == []
    else:
        assert "server" not in {row["source"] for row in shown(run, "machine")["rows"]}


def test_an_unreachable_prometheus_gives_a_message_of_one_line(place: Path, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text('[servers]\nstore = "prometheus://127.0.0.1:9"\n')
    told = printed("diagnose", place / "run.iodock", "--settings", tmp_path / "site.toml")
    assert told.count("The state of the servers is unknown:") == 1


def test_a_misspelt_setting_is_named(place: Path, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text('[servers]\nstores = "x"\n')
    with pytest.raises(AssertionError, match=r"\[servers\] stores is not known"):
        printed("diagnose", place / "run.iodock", "--settings", tmp_path / "site.toml")


def test_hostile_names_are_plain_text_in_sentences_about_servers(tmp_path: Path) -> None:
    """The job's name looks like markup, and the name of the mount like a template."""
    evil = '"><script>alert(1)</script>{file_system}\x1b[2J'
    node_rows(centre_store(tmp_path / "m", None), others=[(evil, evil, 50_000_000)])
    run = plot5(tmp_path / "run.iodock", Recorded(host=NODE))
    (tmp_path / "site.toml").write_text(f'[servers]\nstore = "{tmp_path / "m"}"\n')
    told = printed("diagnose", run, "--settings", tmp_path / "site.toml")
    assert "\x1b" not in told and "<script>alert(1)" in told.replace("\n", "")
