"""Tests `iodock monitor heavy`, which shows the content of the page in a terminal and for scripts."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from in_process import asked
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions.heavy import COLUMNS, SORTS
from iodock.cli import monitor_heavy
from made_verdicts import Site as Answers
from made_verdicts import suspect
from portal_past import EVIL, Past
from portal_site import OPENED, OTHER, OWN, STEPS, fill


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heavy") / "store"
    collector = Collector(folder)
    fill(collector)
    past = Past(collector)
    past.run("400", EVIL, 5, 100)
    past.push()
    answers = Answers(folder.with_name("store.response"))
    answers.now = past.now
    answers.intervals(6, suspects=(suspect(OWN),))
    answers.responder.close()
    return folder


def told(store: Path, *options: str) -> str:
    status, out, err = asked("monitor", "heavy", "--store", store, *options)
    assert status == 0, err
    return out


@pytest.mark.parametrize("width", ["80", "200"])
def test_the_table_lists_the_heaviest_jobs_first(
    store: Path, width: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    lines = told(store, "--over", "1d").splitlines()
    assert lines[0].split()[:2] == ["job", "user"] and lines[1].startswith(OTHER)
    assert "\x1b" not in "".join(lines)
    assert "ジョブ" in told(store, "--lang", "ja").splitlines()[0]


def test_csv_files_have_plain_numbers_and_no_formulas(store: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(told(store, "--format", "csv", "--sort", "opens"))))
    assert tuple(rows[0]) == COLUMNS and [row["job"] for row in rows] == [OTHER, OWN, "400"]
    assert int(rows[1]["opens"]) == 2 * STEPS * OPENED and rows[1]["episodes"] == "1"
    found = json.loads(told(store, "--json", "--user", "root", "--top", "1"))
    assert found["total"] == 2 and [row["job"] for row in found["rows"]] == [OWN]
    assert found["rows"][0]["episodes"] == 1


def test_the_episode_log_may_be_in_use_or_in_another_folder(store: Path, tmp_path: Path) -> None:
    answers = Answers(store.with_name("store.response"))
    try:
        assert json.loads(told(store, "--json"))["rows"][0]["episodes"] is not None
    finally:
        answers.responder.close()
    status, _, err = asked("monitor", "heavy", "--store", store, "--response", tmp_path)
    assert status and "response.db" in err and "Traceback" not in err


def test_an_unknown_number_of_episodes_is_mentioned(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "store")
    fill(collector)
    _, out, err = asked("monitor", "heavy", "--store", tmp_path / "store", "--json")
    assert json.loads(out)["rows"][0]["episodes"] is None
    assert "episodes of unwell servers are not known" in err


def test_invalid_options_are_refused(store: Path) -> None:
    for options in (("--over", "5m"), ("--sort", "x"), ("--top", "0"), ("--until", "x")):
        status, _, err = asked("monitor", "heavy", "--store", store, *options)
        assert status and err.startswith("error: ") and "hint: " in err


def test_every_sortable_column_is_completed() -> None:
    assert monitor_heavy._SORTS == SORTS
