"""Tests every chart in every format: it draws something, loads nothing from outside, and is safe with any
names."""

from __future__ import annotations

import dataclasses
import json
import re
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from chart_answers import (
    HOSTILE,
    SMALL,
    START,
    accesses,
    answer,
    processes,
    rows_of,
    sizes,
    summary,
    timeline,
)
from iodock.program.views.charts import ChartOptions, UnknownChart, charts_for, render_chart, specification
from iodock.program.views.charts.export import draw
from iodock.program.views.charts.registry import CHARTS
from iodock.shared.answer import Answer, Column, Loss, Totals
from iodock.shared.text import cells, labels, shorten, visible
from iodock.shared.units import BYTES, COUNT, NANOSECONDS, decades

EVERY = [(analysis, chart) for analysis in SMALL for chart in charts_for(analysis)]
LITTLE = ChartOptions(scale=0.3)


def coloured_pixels(data: bytes) -> int:
    """Counts the PNG pixels that are clearly coloured. They belong to marks, since axes and text are grey."""
    width, rows = _png_rows(data)
    return sum(
        max(row[at : at + 3]) - min(row[at : at + 3]) > 50 for row in rows for at in range(0, width * 4, 4)
    )


def _png_rows(data: bytes) -> tuple[int, list[bytearray]]:
    """Decodes an 8-bit RGBA PNG into its width and rows (PNG specification, sections 7 and 9)."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, body, width, height = 8, b"", 0, 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        chunk = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", chunk[:10])
            assert (depth, colour) == (8, 6)
        body += chunk if kind == b"IDAT" else b""
        at += length + 12
    raw, rows = zlib.decompress(body), [bytearray(width * 4)]
    for index in range(height):
        start = index * (width * 4 + 1)
        rows.append(_unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + width * 4]), rows[-1]))
    return width, rows[1:]


def _unfiltered(kind: int, row: bytearray, above: bytearray) -> bytearray:
    if kind == 0:
        return row
    if kind == 2:
        return bytearray((one + up) & 255 for one, up in zip(row, above, strict=True))
    for at in range(len(row)):
        left, up, corner = (row[at - 4] if at >= 4 else 0), above[at], (above[at - 4] if at >= 4 else 0)
        guess = left if kind == 1 else (left + up) // 2 if kind == 3 else _nearest(left, up, corner)
        row[at] = (row[at] + guess) & 255
    return row


def _nearest(left: int, up: int, corner: int) -> int:
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner


def texts(data: bytes) -> str:
    """Returns all text of an SVG."""
    return " ".join(ElementTree.fromstring(data.decode()).itertext())


@pytest.mark.parametrize(("analysis", "chart"), EVERY)
def test_every_chart_is_drawn_in_every_format(analysis: str, chart: str) -> None:
    given = SMALL[analysis]
    # The chart `offset` draws small marks, and the other charts draw areas.
    least = 15 if chart == "offset" else 150
    assert coloured_pixels(draw("png", given, chart, LITTLE)) > least
    drawn = draw("svg", given, chart)
    assert "Nothing to show" not in texts(drawn)
    assert not re.search(rb"(?:href|src)=[\"']?(?:https?:)?//|url\(\s*['\"]?http|<script|<image", drawn)
    assert draw("pdf", given, chart).startswith(b"%PDF-")


@pytest.mark.parametrize(("analysis", "chart"), EVERY)
def test_chart_specifications_are_valid_and_contain_their_data(analysis: str, chart: str) -> None:
    # altair checks the specification against the Vega-Lite schema.
    render_chart(SMALL[analysis], chart).to_dict()
    assert "http" not in json.dumps(specification(SMALL[analysis], chart))


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
@pytest.mark.parametrize("analysis", SMALL)
def test_charts_are_drawn_in_every_theme(analysis: str, theme: str) -> None:
    drawn = texts(
        draw(
            "svg", SMALL[analysis], options=ChartOptions(theme=theme, width=300, height=200, title="T<&>\"'")
        )
    )
    assert "T<&>\"'" in drawn


@pytest.mark.parametrize(("analysis", "chart"), EVERY)
def test_empty_results_give_a_chart_with_a_note(analysis: str, chart: str) -> None:
    given = SMALL[analysis]
    empty = dataclasses.replace(given, table=given.table.slice(0, 0))
    assert "Nothing to show" in texts(draw("svg", empty, chart))
    assert draw("html", empty, chart).startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(("analysis", "chart"), EVERY)
def test_results_of_one_row_or_only_nulls_are_drawn(analysis: str, chart: str) -> None:
    given = SMALL[analysis]
    draw("svg", dataclasses.replace(given, table=given.table.slice(0, 1)), chart)
    keys = {"call", "file", "direction", "upper_bytes", "pid", "errno"}
    columns = [
        column if name in keys else pa.chunked_array([pa.nulls(len(column), column.type)])
        for name, column in zip(given.table.column_names, given.table.columns, strict=True)
    ]
    nothing = dataclasses.replace(given, table=pa.table(columns, schema=given.table.schema))
    assert "Nothing to show" in texts(draw("svg", nothing, chart))


@pytest.mark.parametrize(
    "kind", [kind for kind in CHARTS if kind.only], ids=lambda kind: f"{kind.analyses[0]}-{kind.name}"
)
def test_each_series_can_be_drawn_alone(kind: Any) -> None:
    for series in kind.only:
        drawn = draw("png", SMALL[kind.analyses[0]], kind.name, ChartOptions(only=(series,), scale=0.3))
        assert series == "no result" or coloured_pixels(drawn) > 15, series


def test_unknown_chart_names_are_refused() -> None:
    with pytest.raises(UnknownChart, match="time, count, io"):
        render_chart(SMALL["summary"], "pie")
    with pytest.raises(UnknownChart, match="read, write"):
        render_chart(SMALL["sizes"], None, ChartOptions(only=("sideways",)))
    for wrong in ({"width": 1}, {"height": 10**9}, {"theme": "pink"}, {"scale": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ChartOptions(**wrong)  # type: ignore[arg-type]


class Page(HTMLParser):
    """Reads an HTML page: its elements with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data


@pytest.mark.parametrize("analysis", SMALL)
def test_a_chart_in_html_loads_no_other_resource(analysis: str) -> None:
    text = draw("html", SMALL[analysis]).decode()
    page = Page(text)
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not [values for _, values in page.elements if {"src", "href"} & values.keys()]
    policy = next(values["content"] for _, values in page.elements if "http-equiv" in values)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in page.scripts[1]
    assert len(text) < 2_000_000


@pytest.mark.parametrize("chart", ["time", "io", "time-range", "errors"])
def test_hostile_names_are_plain_text_in_charts(chart: str) -> None:
    given = summary(HOSTILE, "file")
    options = ChartOptions(title="</title></script><script>alert(3)</script>\n" + HOSTILE[0])
    page = Page(draw("html", given, chart, options).decode())
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert "</" not in page.scripts[1].partition("const specification =")[2].partition("\n")[0]
    drawn = draw("svg", given, chart, options)
    assert b"<script" not in drawn
    if chart != "errors":
        said = texts(drawn)
        for piece in (
            "データ",
            "\\xff\\xfe",
            "\\u202e",
            "break\\tand\\rmore",
            "/datum.value[0].b\\c",
            "(none)",
        ):
            assert piece in said
    assert coloured_pixels(draw("png", given, chart, LITTLE)) > 150


def test_names_that_are_equal_when_shortened_keep_separate_bars() -> None:
    spec = specification(summary(HOSTILE, "file"), "time")
    rows = rows_of(spec)
    assert len({row["label"] for row in rows}) == len(HOSTILE)


def test_rows_beyond_the_limit_are_summed_as_other() -> None:
    given = summary([f"/data/{index}" for index in range(60)], "file")
    totals = Totals({"total_time_ns": 0}, {"total_time_ns": 50_000}, 60, 1060, "files")
    rows = rows_of(specification(dataclasses.replace(given, totals=totals), "time"))
    assert len({row["label"] for row in rows}) == 40
    shown = sum(sorted((10_000 * (60 - index) for index in range(60)), reverse=True)[:39])
    rest = sum(10_000 * (60 - index) for index in range(60)) - shown + 50_000
    other = next(row for row in rows if row["label"] == "other (1,021)")
    assert other["end"] - other["start"] == rest


def test_a_huge_other_row_is_mentioned_but_not_drawn() -> None:
    given = summary([f"/data/{index}" for index in range(50)], "file")
    totals = Totals({}, {"total_time_ns": 9_000_000_000}, 50, 9000, "files")
    given = dataclasses.replace(given, totals=totals)
    assert "other" not in {row["label"][:5] for row in rows_of(specification(given, "time"))}
    assert "not drawn: 8,961 other rows together, 9 s" in texts(draw("svg", given, "time"))


def test_missing_durations_are_mentioned_in_charts() -> None:
    for chart in ("time", "time-range"):
        assert "strace records them with -T" in texts(draw("svg", summary(["read"], durations=False), chart))


def test_system_cpu_time_is_not_called_elapsed() -> None:
    table = summary(["read"], durations=False).table.append_column("sys_cpu_time_ns", pa.array([5_000_000]))
    drawn = texts(draw("svg", answer("summary", table, ("call",)), "time"))
    assert "System CPU time" in drawn
    assert "5 ms" in drawn


@pytest.mark.parametrize("count", [1, 2000, 2001])
def test_few_and_many_accesses_are_drawn(count: int) -> None:
    given = accesses(count)
    assert coloured_pixels(draw("png", given, "offset", LITTLE)) > 15
    assert ("each drawn" in texts(draw("svg", given, "offset"))) == (count <= 2000)


def test_a_million_accesses_stay_small_and_are_all_counted() -> None:
    given = accesses(1_000_000)
    rows = rows_of(specification(given, "offset"))
    assert sum(int(row["count"].replace(",", "")) for row in rows) == 1_000_000
    assert len(draw("svg", given, "offset")) < 2_000_000
    assert len(draw("pdf", given, "offset")) < 1_000_000


def test_both_files_of_a_copy_and_failures_are_drawn() -> None:
    table = {
        "ts": [START, START, START + 5, START + 9],
        "dur": [5, 5, None, 3],
        "call": ["sendfile", "sendfile", "read", "getdents64"],
        "side": ["in", "out", "only", "only"],
        "offset_bytes": [0, 100, 50, 0],
        "result": [10, 10, -1, 400],
    }
    rows = rows_of(specification(answer("accesses", table, ("call",)), "offset"))
    assert [(row["direction"], row["place"]) for row in rows] == [("read", "0 B"), ("write", "100 B")]


def test_accesses_late_in_the_run_use_the_whole_chart() -> None:
    late = accesses(50, first=START + 3600 * 10**9)
    assert "3,600 s into the run" in texts(draw("svg", late, "offset"))


def test_sizes_of_a_single_call_are_visible_on_the_logarithmic_axis() -> None:
    one = answer("sizes", {"direction": ["read"], "upper_bytes": [4096], "count": [1], "total_time_ns": [1]})
    for chart in charts_for("sizes"):
        assert coloured_pixels(draw("png", one, chart, LITTLE)) > 500
    exact = sizes((0, 1, 17, 4099, 5_000_000))
    assert coloured_pixels(draw("png", exact, "size", LITTLE)) > 15


@pytest.mark.parametrize("scale", [1, 2**60 // 8])
def test_huge_and_tiny_values_are_drawn(scale: int) -> None:
    for chart in charts_for("timeline"):
        assert coloured_pixels(draw("png", timeline(8, 1_000_000, scale), chart, LITTLE)) > 500


def test_a_long_timeline_is_merged_and_keeps_its_total() -> None:
    given = timeline(30_000)
    rows = rows_of(specification(given, "io"))
    assert len(rows) < 3000
    assert "75 intervals in each" in texts(draw("svg", given, "io"))


def test_the_time_axis_fits_the_clock_of_the_run() -> None:
    assert "2023-11-14 22:13:20.000 UTC" in texts(draw("svg", timeline()))
    day = dataclasses.replace(timeline(), clock="day", first_ts=START)
    assert "(22:13:20.000)" in texts(draw("svg", day))
    far = dataclasses.replace(SMALL["accesses"], first_ts=-(2**62), clock="epoch")
    draw("svg", far)


def test_process_trees_with_cycles_and_many_processes_are_drawn() -> None:
    table = processes(4).table
    ring = table.set_column(
        table.column_names.index("parent_pid"), "parent_pid", pa.array([101, 100, 102, 999])
    )
    drawn = texts(draw("svg", answer("processes", ring, ("pid",))))
    assert all(f"pid {pid}" in drawn for pid in range(100, 104))
    assert "SIGKILL" in drawn
    assert "status 1" in drawn
    assert "the 40 longest of 200" in texts(draw("svg", processes(200)))


def test_an_unknown_analysis_is_drawn_as_bars() -> None:
    given: Answer = answer("theirs", {"name": ["a", "b"], "weight": [3, 5]}, ("name",))
    assert charts_for("theirs") == ["bars"]
    assert coloured_pixels(draw("png", given, options=LITTLE)) > 500


def test_an_analysis_without_a_chart_draws_its_main_column() -> None:
    columns = (
        Column("file", "str", None, "key", "."),
        Column("maps", "int", "calls", "measure", "."),
        Column("faults", "int", "faults", "measure", ".", importance="first"),
        Column("touched_bytes", "int", "bytes", "measure", ".", importance="first"),
    )
    table = pa.table({"file": ["/a"], "maps": [1], "faults": [2], "touched_bytes": [4096]})
    found = dataclasses.replace(answer("outside", table, ("file",)), columns=columns)
    assert specification(found)["title"]["text"] == ["touched bytes by file"]


def test_charts_state_the_selection_and_losses() -> None:
    options = {"file": "/data/<x>/**", "exclude_ending": ("so", "py"), "every": 5, "failed": True}
    losses = (Loss("cut-lines", 3, "record again"),)
    given = dataclasses.replace(summary(["read"]), options=options, losses=losses, store_name="run.iodock")
    drawn = texts(draw("svg", given))
    assert "run.iodock  --file /data/<x>/**  --exclude-ending so,py" in drawn
    assert "incomplete: cut-lines 3" in drawn


def test_the_registry_of_charts_is_consistent() -> None:
    pairs = [(analysis, kind.name) for kind in CHARTS for analysis in kind.analyses]
    assert len(pairs) == len(set(pairs))
    assert all(kind.doc.endswith(".") and kind.title for kind in CHARTS)
    assert set(SMALL) == {analysis for analysis, _ in pairs}


def test_the_drawing_library_is_imported_only_when_needed() -> None:
    code = "import sys, iodock.program.views.charts.export; sys.exit('altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_values_are_written_with_units() -> None:
    assert [BYTES.text(value) for value in (0, 1, 1023, 1024, 1536, 2**63)] == [
        "0 B", "1 B", "1,023 B", "1 KiB", "1.5 KiB", "8 EiB",
    ]  # fmt: skip
    assert [NANOSECONDS.text(value) for value in (1, 1500, 2.5e9, 7.2e12, 3.6e13)] == [
        "1 ns", "1.5 µs", "2.5 s", "7,200 s", "10 h",
    ]  # fmt: skip
    assert COUNT.text(318169) == "318,169"
    assert BYTES.text(None) == "not known"
    assert COUNT.ticks(3) == [0, 1, 2, 3]
    assert BYTES.ticks(10 * 2**20)[-1] == 10 * 2**20
    assert decades(1, 1) == [1, 10]
    assert decades(3, 250) == [1, 10, 100, 1000]


def test_labels_are_shortened_and_unambiguous() -> None:
    assert shorten("/short") == "/short"
    assert cells(shorten("/" + "あ" * 100 + "/end.dat", 30)) <= 30
    assert shorten("/" + "a" * 100 + "/end.dat", 30).endswith("/end.dat")
    assert visible("a\nb\u202e") == "a\\nb\\u202e"
    assert len(set(labels(["x" * 100, "x" * 101, "x" * 102]))) == 3
