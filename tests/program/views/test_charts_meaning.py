"""Tests the meaning of charts: one unit for each axis, keys that match the drawing, distinct labels, and a
note on what was left out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from chart_answers import SMALL, accesses, answer, rows_of
from iodock.program.views.charts import ChartOptions, charts_for, specification
from iodock.shared.answer import Answer, Totals
from iodock.shared.errors import RequestError
from iodock.shared.text import cells, labels

EVERY = [(analysis, chart) for analysis in SMALL for chart in charts_for(analysis)]


def _nodes(node: Any, name: str) -> Iterator[Any]:
    """Yields all values with the key NAME in a specification, without its data."""
    if isinstance(node, list):
        for one in node:
            yield from _nodes(one, name)
    if isinstance(node, dict):
        for key, value in node.items():
            if key == name:
                yield value
            if key not in ("data", "datasets"):
                yield from _nodes(value, name)


def _panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return list(spec.get("vconcat", [spec]))


@pytest.mark.parametrize(("analysis", "chart"), EVERY)
def test_every_axis_has_a_name_and_one_unit(analysis: str, chart: str) -> None:
    for panel in _panels(specification(SMALL[analysis], chart)):
        for axis in "xy":
            channels = list(_nodes(panel, axis))
            assert any(channel.get("title") for channel in channels), (axis, channels)
            written = {
                json.dumps(channel["axis"]["labelExpr"])
                for channel in channels
                if (channel.get("axis") or {}).get("labelExpr")
            }
            assert len(written) <= 1


def test_each_unit_of_machine_samples_has_its_own_panel() -> None:
    panels = _panels(specification(SMALL["machine"]))
    titles = [panel["encoding"]["y"]["title"] for panel in panels]
    assert titles == ["throughput", "share of the time", "number"]
    shares = panels[1]["encoding"]["color"]["scale"]["domain"]
    assert shares == [
        "Time in which some tasks waited (cpu)",
        "Disk busy (vda)",
        "Time in which some tasks waited (io)",
    ]
    rows = rows_of(specification(SMALL["machine"]))
    values = [row["text"] for row in rows if row["series"] == shares[1]]
    assert values == ["8.33 %", "16.7 %", "25 %"]


def test_volume_chart_shows_actual_and_expected_sizes() -> None:
    spec = specification(SMALL["volume"])
    rows = {(row["label"], row["series"]): row for row in rows_of(spec)}
    expected = "expected: the file's size"
    assert rows["/d/twice", expected]["bytes"] == 1000
    assert rows["/d/twice", "read"]["bytes"] == 2000 and rows["/d/twice", "read"]["factor"] == "2 times"
    assert rows["/d/unknown", expected]["text"] == rows["/d/unknown", "read"]["factor"] == "not known"
    only = specification(SMALL["volume"], options=ChartOptions(only=("write",)))
    assert {row["series"] for row in rows_of(only)} == {expected, "written"}
    assert {row["label"] for row in rows_of(only)} == {"/d/new"}


def test_the_legend_of_a_grid_matches_the_drawing() -> None:
    (opacity,) = _nodes(specification(accesses(3000), "offset"), "opacity")
    # With any other type of scale, Vega-Lite interpolates opacities between the first two.
    assert opacity["scale"]["type"] == "ordinal"
    assert len(opacity["scale"]["domain"]) == len(opacity["scale"]["range"])


@pytest.mark.parametrize(("analysis", "chart"), [("offsets", "offset"), ("accesses", "size")])
def test_a_chart_of_one_direction_names_it(analysis: str, chart: str) -> None:
    spec = specification(SMALL[analysis], chart, ChartOptions(only=("read",)))
    legends = [colour.get("legend") for colour in _nodes(spec, "color") if isinstance(colour, dict)]
    assert any(legend is not None for legend in legends)


def test_equal_labels_are_distinguished_by_folder() -> None:
    deep = "/scratch/project/users/me/a/very/long/way/{}/and/a/long/way/to/the/output.dat"
    names = [deep.format(run) for run in ("run1", "run2")]
    first, second = labels(names)
    assert "run1" in first and "run2" in second
    assert all(cells(label) <= 44 and label.endswith("output.dat") for label in (first, second))
    near = [f"/scratch/projects/{step}{'x' * 30}/{'y' * 20}/out.dat" for step in ("a", "b")]
    assert labels(near, 40)[0].startswith("…/axxxx")
    # If the same name appears twice, no folder distinguishes the two.
    assert labels(["/d/x", "/d/x"]) == ["/d/x", "/d/x (2)"]


@pytest.mark.parametrize("option", ["top", "sort"])
@pytest.mark.parametrize("analysis", ["timeline", "sizes", "offsets", "machine", "processes"])
def test_rows_left_out_are_not_drawn_as_zeros(analysis: str, option: str) -> None:
    asked = dataclasses.replace(SMALL[analysis], options={option: 3})
    with pytest.raises(RequestError, match=f"draws all rows, so --{option}"):
        specification(asked)


def test_rows_left_out_are_counted() -> None:
    whole = SMALL["accesses"]
    cut = dataclasses.replace(whole, totals=Totals({}, None, 2, 1_063, "calls"))
    assert "2 of 1,063 calls" in json.dumps(specification(cut))


def _machine(series: int, samples: int) -> Answer:
    rows = [
        {"ts": at * 10**9, "source": "own", "target": f"d{one}", "metric": "load", "kind": "level"}
        | {"value": float(1 + one)}
        for one in range(series)
        for at in range(samples)
    ]
    return answer("machine", pa.Table.from_pylist(rows), ("source", "target", "metric"))


def test_series_left_out_are_counted_against_all() -> None:
    known = SMALL["machine"]
    both = dataclasses.replace(known, table=pa.concat_tables([known.table, _machine(9, 3).table]))
    assert "10 more series are in the table" in json.dumps(specification(both))


def test_many_samples_are_merged_into_intervals() -> None:
    rows = rows_of(specification(_machine(2, 5_400)))
    assert 400 <= len(rows) / 2 <= 501 and {row["value"] for row in rows} == {1.0, 2.0}
    assert len(rows_of(specification(_machine(2, 500)))) == 1_000
