"""Tests results in Python and notebooks: times as times, findings with their sentences, charts without
network access."""

from __future__ import annotations

import base64
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import webbrowser
from dataclasses import replace
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest

import iodock
from iodock.program.results import Result
from iodock.program.run import Run
from iodock.program.views.diagnosis_text import diagnosis_text
from iodock.program.views.finding_rows import COLUMNS
from iodock.shared.answer import Answer, Clock, Column, Loss
from iodock.shared.language import LANGUAGES, language_in
from iodock.shared.tables import frames
from made_up import START
from metadata_log import Trace
from places import ROOT

pytestmark = pytest.mark.usefixtures("few_rules")

HOW_TO = ROOT / "docs" / "how-to" / "notebook.md"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Imports a run that repeatedly opens and closes one file."""
    trace = Trace()
    for _ in range(2_000):
        trace.open("/data/a<b>.log", took_us=200, flags="O_WRONLY|O_APPEND")
        trace.write(1, took_us=100)
        trace.close(took_us=100)
        trace.pause(100)
    return iodock.open(trace.imported(tmp_path_factory.mktemp("faulty")))


def answer(clock: Clock, first_ts: int | None, **columns: list[object]) -> Answer:
    meant = {
        "ts": ("ns", "time"),
        "dur": ("ns", "measure"),
        "mean": ("ns", "measure"),
        "took": ("s", "measure"),
    }
    return Answer(
        analysis="made",
        title="Made",
        columns=tuple(Column(name, "int", *meant[name], "it") for name in columns),  # type: ignore[arg-type]
        table=pa.table(columns),
        clock=clock,
        source={},
        first_ts=first_ts,
    )


def test_times_of_a_dated_run_become_time_stamps_and_durations() -> None:
    table = frames.with_times(
        answer("epoch", 5, ts=[5, None], dur=[7, None], mean=[1.6, None], took=[0.5, None])
    )
    duration = pa.duration("ns")
    assert table.schema.types == [pa.timestamp("ns", "UTC"), duration, duration, duration]
    assert [column.cast(pa.int64()).to_pylist() for column in table.columns] == [
        [5, None],
        [7, None],
        [2, None],
        [500_000_000, None],
    ]


@pytest.mark.parametrize("clock", ["day", "relative"])
def test_times_without_a_date_count_from_the_start(clock: Clock) -> None:
    table = frames.with_times(answer(clock, 40, ts=[40, 47]))
    assert table.schema.types == [pa.duration("ns")]
    assert table["ts"].cast(pa.int64()).to_pylist() == [0, 7]


def test_times_too_long_for_a_duration_are_numbers() -> None:
    table = frames.with_times(answer("relative", None, took=[1e300], mean=[float("nan")]))
    assert table.schema.types == [pa.float64(), pa.duration("ns")] and table["mean"].null_count == 1


def test_arrow_keeps_numbers_unless_asked(mixed: Run) -> None:
    shown = mixed.show("files")
    assert shown.to_arrow()["total_time_ns"].type == pa.int64()
    assert shown.to_arrow(durations=True)["total_time_ns"].type == pa.duration("ns")
    assert shown.to_arrow(durations=True)["first_ts"].type == pa.timestamp("ns", "UTC")


def test_pandas_receives_durations_and_time_stamps(mixed: Run) -> None:
    pandas = pytest.importorskip("pandas")
    shown = mixed.show("accesses", kind="all")
    frame, numbers = shown.to_pandas(), shown.to_pandas(durations=False)
    assert str(frame["dur"].dtype) == "timedelta64[ns]" and frame["dur"].isna().any()
    assert frame["ts"].min() >= pandas.Timestamp(START, tz="UTC")
    assert numbers["ts"].tolist() == shown.to_arrow()["ts"].to_pylist()
    # The conversion must not use floats, which would lose the last digits.
    assert [None if one is pandas.NA else one for one in numbers["end_ts"].tolist()] == shown.to_arrow()[
        "end_ts"
    ].to_pylist()


def test_polars_receives_durations(mixed: Run) -> None:
    polars = pytest.importorskip("polars")
    shown = mixed.show("summary")
    assert shown.to_polars()["total_time_ns"].dtype == polars.Duration("ns")
    assert shown.to_polars(durations=False)["total_time_ns"].dtype == polars.Int64


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_package_gives_an_error_with_its_name(
    name: str, mixed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as missing:
        getattr(mixed.show(), f"to_{name}")()
    assert isinstance(missing.value, iodock.MissingPackage)
    assert missing.value._render_traceback_() == [
        f"MissingPackage: to_{name}() needs the Python package {name}",
        f"hint: pip install {name}",
    ]


def test_a_traceback_contains_the_hint(mixed: Run) -> None:
    with pytest.raises(iodock.RequestError) as mistake:
        mixed.show("file")
    assert mistake.value.__notes__ == ["hint: did you mean files"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_findings_have_the_text_of_the_command_line(faulty: Run, language: str) -> None:
    found = faulty.findings(language)
    said = diagnosis_text(faulty.diagnose(), language_in(language), on_terminal=False)
    assert f"{found!r}\n" == said
    (row,) = [row for row in found if row["rule"] == "open-close-loop"]
    joined = "".join(said.split())
    for text in (row["title"], row["message"], row["saves"], *row["advice"]):
        assert "{" not in text and "".join(text.split()) in joined
    assert 0 < row["saves_low_seconds"] <= row["saves_high_seconds"] < row["run_seconds"]
    assert row["files"] == ["/data/a<b>.log"] and found[0]["severity"] == "high"
    assert found.to_arrow().column_names == [one.name for one in COLUMNS]
    assert all(one.doc for one in COLUMNS)


def test_findings_in_a_notebook_are_a_table(faulty: Run) -> None:
    html = faulty.findings("en")._repr_html_()
    assert html.startswith("<p><b>") and "<table>" in html and "/data/a&lt;b&gt;.log" in html
    assert "<script" not in html and "http" not in html
    assert "改善点" in faulty.findings("ja")._repr_html_()


def test_findings_can_be_printed_in_each_language(mixed: Run) -> None:
    with pytest.raises(iodock.RequestError, match="fr has no texts"):
        mixed.findings("fr")


def test_the_representation_of_a_diagnosis_is_short(faulty: Run) -> None:
    assert repr(faulty.diagnose()).startswith("<iodock diagnosis of ")
    assert "open-close-loop high" in repr(faulty.diagnose())


def test_a_notebook_shows_a_result_as_a_chart_above_its_rows(mixed: Run) -> None:
    shown = mixed.show("summary", top=3)
    html = shown._repr_html_()
    coded = re.search('src="data:image/svg[+]xml;base64,([^"]+)"', html)
    assert coded and base64.b64decode(coded[1]) == shown.chart().svg
    assert html.index("<img") < html.index("<table>") and "title=" in html
    # The page contains no address from which a browser would load something.
    assert not re.search("<script|src=.http|url[(]http", html + shown.chart().svg.decode())


def test_a_terminal_shows_a_result_as_rows(mixed: Run) -> None:
    shown = mixed.show("accesses", kind="all")
    first, head, *rows = repr(shown).split("\n")
    assert first.startswith("<iodock accesses: ") and "file" in head.split()
    assert rows[20] == f"and {len(shown) - 20:,} more rows"


def test_notes_are_printed_below_a_result(faulty: Run) -> None:
    shown = faulty.show("summary", top=1)
    answer = replace(shown.answer, notes=("no durations",), losses=(Loss("cut-lines", 3, "record again"),))
    said = ["1 of 3 calls", "no durations", "not seen: 3 cut-lines: record again"]
    assert repr(Result(answer)).split("\n")[-3:] == said
    assert Result(answer)._repr_html_().endswith("".join(f"<p>{one}</p>" for one in said))


@pytest.mark.parametrize("ending", ["svg", "png", "pdf", "html"])
def test_charts_equal_those_of_the_command_line(ending: str, mixed: Run, tmp_path: Path) -> None:
    from iodock.cli.run import run as run_command

    chart = mixed.show("summary").chart("count", width=300, only="failed")
    assert chart.save(tmp_path / f"a.{ending}") == tmp_path / f"a.{ending}"
    options = ["--chart", "count", "--width", "300", "--only", "failed", "-q"]
    store, theirs = str(mixed.store.path), tmp_path / f"b.{ending}"
    assert run_command(["show", "summary", store, *options, "-o", str(theirs)]) == 0
    ours = (tmp_path / f"a.{ending}").read_bytes()
    assert ours == theirs.read_bytes() or (ending == "pdf" and len(ours) == theirs.stat().st_size)


def test_a_chart_shows_itself_as_svg(mixed: Run) -> None:
    shown = mixed.show("timeline")
    chart = shown.chart("calls")
    assert chart._repr_svg_().startswith("<svg") and repr(chart) == "<iodock chart calls of timeline>"
    assert shown.charts[0] == "throughput" and "calls" in shown.charts
    assert chart.to_dict()["$schema"] and chart.altair is not None


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("nothing", {}, "timeline has no chart 'nothing'"),
        (None, {"colour": "red"}, "no such option of a chart: colour"),
        (None, {"width": 3}, "chart width must be 40 to 8000"),
        (None, {"width": "500"}, "chart width must be 40 to 8000 pixels, not '500'"),
        (None, {"height": [300]}, "chart height must be"),
        (None, {"theme": ["dark"]}, "unknown chart theme"),
        (None, {"title": 5}, "chart title must be a text, not 5"),
        (None, {"only": 5}, "chart only must be names of series, not 5"),
    ],
)
def test_invalid_chart_options_are_refused(
    mixed: Run, name: str | None, options: dict[str, object], words: str
) -> None:
    with pytest.raises(iodock.RequestError, match=words):
        mixed.show("timeline").chart(name, **options)


def test_a_chart_file_needs_a_known_ending(mixed: Run, tmp_path: Path) -> None:
    with pytest.raises(iodock.RequestError, match="not an image format"):
        mixed.show("timeline").chart().save(tmp_path / "a.bmp")
    with pytest.raises(iodock.IodockError, match="no such folder"):
        mixed.show("timeline").chart().save(tmp_path / "none" / "a.svg")


def test_a_report_equals_that_of_the_command_line_and_displays_itself(faulty: Run, tmp_path: Path) -> None:
    page = faulty.report(tmp_path / "a <b>.html", "ja")
    written = Path(page).read_text()
    assert page.path == tmp_path / "a <b>.html" == Path(str(page)) and 'lang="ja"' in written
    html = page._repr_html_()
    assert "a%20%3Cb%3E.html" in html and '<iframe sandbox="allow-scripts" title="a &lt;b&gt;.html"' in html
    shown = re.search(' srcdoc="([^"]*)"></iframe>', html)
    assert shown and unescape(shown[1]) == written
    # The second report replaces the earlier one.
    assert faulty.report(page, "en").path == page.path


def test_a_folder_is_refused_as_a_report_file(faulty: Run, tmp_path: Path) -> None:
    for name in ("a.svg", "a.html"):
        (tmp_path / name).mkdir()
    with pytest.raises(iodock.IodockError, match="svg: is a folder"):
        faulty.show("summary").chart().save(tmp_path / "a.svg")
    with pytest.raises(iodock.IodockError, match="html: is a folder"):
        faulty.report(tmp_path / "a.html")


def test_a_deleted_report_is_shown_as_its_path_only(tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    for name in ("gone.html", "folder.html"):
        assert iodock.Page(tmp_path / name)._repr_html_() == f"<p>{tmp_path / name}</p>"


def test_report_paths_may_be_any_bytes(tmp_path: Path) -> None:
    page = tmp_path / os.fsdecode(b"\xff.html")
    page.write_bytes(b"<p>\xff</p>")
    html = iodock.Page(page)._repr_html_()
    assert "%FF.html" in html and html.encode()


def test_no_text_browser_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail(url))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert not iodock.Page(tmp_path / "a.html").open()


def under_limit(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs Python with an address space limit of 32 GB, as on login nodes."""
    limited = ["sh", "-c", 'ulimit -c 0; ulimit -v 32000000; exec "$@"', "sh", sys.executable, *command]
    return subprocess.run(limited, capture_output=True, text=True)


def test_without_memory_for_the_renderer_a_table_is_shown(mixed_path: Path) -> None:
    shown = "import iodock, sys; print(iodock.open(sys.argv[1]).show()._repr_html_())"
    done = under_limit(["-c", shown, str(mixed_path)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<p>no chart can be drawn: ") and "<table>" in done.stdout


def test_without_memory_for_the_renderer_a_chart_gives_an_error(mixed_path: Path, tmp_path: Path) -> None:
    show = ["-m", "iodock", "show", "summary", str(mixed_path), "-q", "-o"]
    done = under_limit([*show, str(tmp_path / "a.svg")])
    assert done.returncode == 1 and done.stderr.startswith("error: no chart can be drawn: ")
    assert not list(tmp_path.iterdir())
    # The HTML file works, because the browser draws the chart.
    assert under_limit([*show, str(tmp_path / "a.html")]).returncode == 0


def test_a_large_report_is_shown_as_its_path_only(tmp_path: Path) -> None:
    (tmp_path / "large.html").write_text("x" * (2 << 20))
    html = iodock.Page(tmp_path / "large.html")._repr_html_()
    assert "large.html</a>" in html and "iframe" not in html


def test_a_report_does_not_replace_other_files(
    faulty: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert faulty.report().path == Path("run.html") and (tmp_path / "run.html").is_file()
    (tmp_path / "thesis.html").write_text("mine")
    with pytest.raises(iodock.IodockError, match="is not an iodock report"):
        faulty.report("thesis.html")
    with pytest.raises(iodock.RequestError, match="a report is one HTML page"):
        faulty.report("run.pdf")
    with pytest.raises(iodock.IodockError, match="no such folder"):
        faulty.report(tmp_path / "none" / "run.html")


def test_a_notebook_gets_the_text_in_one_piece(faulty: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    said = repr(faulty.findings("en"))
    # The library rich detects a notebook by this class, and in a notebook it displays lines instead of
    # writing them.
    kernel = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr("builtins.get_ipython", lambda: kernel, raising=False)
    assert Console().is_jupyter
    assert repr(faulty.findings("en")) == said


def test_the_documented_notebook_code_runs(
    faulty: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs every Python example of the how-to, in order."""
    pieces = re.findall("```python\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    assert len(pieces) == 6
    shutil.copytree(faulty.store.path, tmp_path / "demo.iodock")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for piece in pieces:
        if "to_pandas" in piece and importlib.util.find_spec("pandas") is None:
            continue
        exec(piece, names)
    assert capsys.readouterr().out.startswith("open-close-loop ")
    assert (tmp_path / "calls.pdf").is_file() and (tmp_path / "demo.html").is_file()
