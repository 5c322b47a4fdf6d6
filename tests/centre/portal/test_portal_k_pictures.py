"""Tests the portal with the overload and the stall of the K computer, with the figures of its report: the
sentence appears within three samples, the job is named, and the four charts are drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iodock.centre.monitor.questions.server_curves import known_steps
from iodock.centre.monitor.questions.spans import Span
from iodock.centre.portal import pages
from iodock.centre.portal.app import application
from iodock.centre.portal.charts import HEIGHT, Chart, Curve
from iodock.centre.portal.shown.page import Site
from played_centre import LIMITS, SECOND, Played
from portal_site import Server, serving, with_tokens

Rows = list[dict[str, Any]]
_ENDS_IN_S = 60
"""The end of a span, which is left out because data may still arrive."""


@contextmanager
def shown(folder: Path, played: Played, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serves the portal of a simulated centre at the time of the simulation."""
    monkeypatch.setattr(pages, "time", SimpleNamespace(time_ns=lambda: played.now))
    access, secrets = with_tokens(folder)
    site = Site(limits=LIMITS, watching=played.watching)
    with serving(application(played.collector, access, site)) as url:
        yield Server(url, played.collector, secrets)


def numbers(server: Server, table: str, words: str = "range=1h") -> Rows:
    status, text, _ = server.get(f"/machines?host=mds01&{words}&format=json&table={table}", "operator")
    assert status == 200, text
    rows: Rows = json.loads(text)["rows"]
    return rows


def rate(row: dict[str, Any], name: str) -> float:
    return float(row[name]) / float(row["seconds"])


def until_third_sample(played: Played, first_s: float) -> None:
    """Plays the scenario, whose state begins after FIRST_S seconds at a sample, until its third sample."""
    for _ in range(round(first_s / played.step_s) + 3):
        played.sample()


def test_the_charts_show_the_stall_of_the_k_computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # All 12,096 nodes have one JobID, as a server counts jobs whose ids name no node.
    played = Played(tmp_path / "store", "stall", nodes=None, jobid_name="%j")
    played.turn()
    until_third_sample(played, 150)
    job = played.culprit()
    with shown(tmp_path, played, monkeypatch) as server:
        text = server.get("/now", "operator")[1]
        assert "lfs has stopped responding" in text and "handles hardly any request" in text
        assert f"job {job} (wide-stripes)" in text and 'href="/machines?host=mds01#pictures"' in text
        assert "lfs が応答していません" in server.get("/now?lang=ja", "operator")[1]
        suspects = json.loads(server.get("/now?format=json&table=suspects", "operator")[1])["rows"]
        assert suspects[0]["job"] == job and suspects[0]["share"] > 0.5
        assert played.watching.look(played.now)[0].suspects[0].job_ids == 1 and "nrs_tbf_rule" in text
        # The stall covers minutes 10 to 23 of the job's minutes 8 to 26. The chart also shows some time after
        # it.
        played.write(1020)
        rows = numbers(server, "pictures")
        stalled = [row for row in rows if row["cpu"] is not None and row["cpu"] < 0.02]
        # The stall cuts one step at its beginning and one at its end.
        assert sum(row["seconds"] for row in stalled) == pytest.approx(13 * 60, abs=20)
        assert {row["waiting"] for row in stalled} == {12_000}
        # The server handles very few requests, but not zero.
        assert all(0 < rate(row, "handled") < 20 and 0 < row["opens"] < 40 for row in stalled)
        well = [row for row in rows if row["cpu"] is not None and row["cpu"] > 0.05]
        assert min(rate(row, "operations") for row in well) > 100
        told = json.loads(server.get(f"/jobs/{job}?format=json&table=operations", "operator")[1])["rows"]
        assert told
        drawn = server.get("/machines?host=mds01&range=1h", "operator")[1]
        for title in ("Metadata operations per second", "over one day", "over one hour", "Waiting requests"):
            assert title in drawn
        # The axis goes up to 100,000, and the value is 12,000.
        assert "<span>100 k</span><span>1.00 k</span>" not in drawn and "≤ 1" in drawn


@pytest.mark.whole
def test_the_charts_show_the_overload_of_the_k_computer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(tmp_path / "store", "overload", nodes=None, jobid_name="%j")
    played.turn()
    until_third_sample(played, 30)
    job = played.culprit()
    with shown(tmp_path, played, monkeypatch) as server:
        text = server.get("/now", "operator")[1]
        assert "lfs is overloaded" in text and "receives more requests than it can handle" in text
        assert f"job {job} (shared-dir)" in text
        suspects = json.loads(server.get("/now?format=json&table=suspects", "operator")[1])["rows"]
        assert suspects[0]["job"] == job and suspects[0]["share"] > 0.5
        played.write(23 * 3600, step_s=60)
        rows = numbers(server, "opens_day", "range=1h")
        loaded = [row for row in rows if row["cpu"] is not None and row["cpu"] > 0.9]
        assert sum(row["seconds"] for row in loaded) >= 22.8 * 3600
        opens = [rate(row, "opens") for row in loaded]
        closes = [rate(row, "closes") for row in loaded]
        # The job's 1,008 nodes make 12 opens per second each, constantly, in addition to the opens of other
        # jobs.
        assert min(opens) > 12_000 and max(opens) < 1.1 * min(opens)
        assert min(closes) > 12_000 and max(closes) < 1.1 * min(closes)
        assert {row["waiting"] for row in loaded[1:-1]} == {7_900}
        handled = [rate(row, "handled") for row in loaded]
        assert max(handled) < 1.2 * min(handled)
        # A light operation took 0.7 s on K.
        assert all(0.1 < row["wait_s"] < 0.7 for row in loaded[1:-1])


def test_a_gap_in_a_curve_is_not_drawn_as_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(tmp_path / "store", "healthy", jobs=3)
    played.centre.advance(300)
    played.write(300)
    with shown(tmp_path, played, monkeypatch) as server:
        rows = numbers(server, "pictures")
        at = [row["begin_ts"] for row in rows if row["handled"] is None]
        gap = [one for one in at if played.now - 620 * SECOND < one < played.now - _ENDS_IN_S * SECOND]
        step = int(rows[0]["seconds"]) * SECOND
        assert len(gap) in (300 * SECOND // step - 1, 300 * SECOND // step)
        assert gap[-1] - gap[0] == (len(gap) - 1) * step
        assert all(row[name] is None for row in rows if row["begin_ts"] in gap for name in ("opens", "cpu"))
        page = server.get("/machines?host=mds01&range=1h", "operator")[1]
        chart = page[page.index("Metadata operations per second") :]
        line = chart[chart.index('<path class="line metadata" d="', chart.index("<svg class")) :]
        assert line[: line.index('"/>')].count("M") == 2


def test_users_and_object_servers_have_no_metadata_charts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(tmp_path / "store", "healthy", jobs=3)
    with shown(tmp_path, played, monkeypatch) as server:
        assert server.get("/machines?host=mds01", "user")[0] == 404
        assert "#pictures" not in server.get("/now", "user")[1]
        text = server.get("/machines?host=oss01", "operator")[1]
        assert 'id="pictures"' not in text
        assert server.get("/machines?host=oss01&format=json&table=pictures", "operator")[0] == 400


@pytest.mark.parametrize(
    ("readings", "step_s", "known"),
    [
        ([0, 1, 2, 3], 10, {0, 1, 2, 3}),
        # The sample after one missed sample contains its growth. Two missed samples are a gap.
        ([0, 1, 3, 4], 10, {0, 1, 2, 3, 4}),
        ([0, 1, 4, 5], 10, {0, 1, 4, 5}),
        # The agent reads once a minute.
        ([0, 6, 12, 18], 10, set(range(19))),
        ([0, 6, 12, 30, 36, 42], 10, {*range(13), *range(30, 43)}),
        ([0, 1, 3], 300, {0, 1, 3}),
        ([], 10, set()),
        ([5], 10, {5}),
    ],
)
def test_values_between_two_readings_are_bounded(readings: list[int], step_s: int, known: set[int]) -> None:
    within = Span(0, 100 * step_s * SECOND, step_s * SECOND, "fine", "fine")
    assert known_steps(readings, within, 10 * SECOND) == known


def drawn(values: list[float | None], **more: Any) -> Chart:
    within = Span(0, len(values) * 10 * SECOND, 10 * SECOND, "fine", "fine")
    return Chart("", "number", within, [Curve("", values, "c0")], **more)


def test_a_logarithmic_axis_has_a_line_for_each_power_of_ten() -> None:
    chart = drawn([1.0, 10.0, 0.0, None, 12_000.0], is_logarithmic=True)
    assert chart.levels == ["1.00 M", "10.0 k", "100", "≤ 1"] and len(chart.lines) == 4
    heights = [
        float(piece.split()[1]) for piece in chart.path(chart.curves[0]).replace("M", "L").split("L")[1:4]
    ]
    assert heights == [HEIGHT, pytest.approx(HEIGHT * 5 / 6, abs=0.01), HEIGHT]
    assert chart.path(chart.curves[0]).count("M") == 2
    few = drawn([3.0, 900.0], is_logarithmic=True)
    assert few.levels == ["1.00 k", "100", "10", "≤ 1"]


def test_an_axis_of_shares_may_be_whole() -> None:
    assert drawn([0.06], full=1.0).top == 1.0 and drawn([0.06]).top < 0.2
