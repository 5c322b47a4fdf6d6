"""Tests the Python interface: open, show, query, Arrow output, notebooks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import iodock


def test_the_python_lines_in_the_readme_run(mixed_path: Path) -> None:
    with iodock.open(mixed_path) as run:
        shown = run.show("summary", by=["file", "call"], top=5, kind="all")
        table = shown.to_arrow()
        assert isinstance(table, pa.Table) and table.num_rows == 5 == len(shown)
        assert pa.table(shown).equals(table)
        assert run.query("SELECT count(*) AS n FROM events").to_pylist() == [
            {"n": run.manifest["tables"]["events"]}
        ]
        assert "summary" in run.analyses()
        assert shown.totals is not None and shown.totals.sentence.startswith("5 of ")
        assert "<iodock summary: 5 rows" in repr(shown)


def test_notebooks_display_rows_and_a_chart(mixed_path: Path) -> None:
    with iodock.open(mixed_path) as run:
        shown = run.show("summary")
        assert "<table>" in shown._repr_html_() and "title=" in shown._repr_html_()
        assert "<img" in shown._repr_html_()
        assert shown.chart("count").to_dict()["$schema"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"colour": "red"}, "no such filter or option: colour"),
        ({"by": "nothing"}, "no such key: nothing"),
        ({"pid": "x"}, "pid must be a number"),
        ({"pid": [None]}, "pid must be a number"),
        ({"outcome": "failed"}, "no such filter or option: outcome"),
        ({"min_time_ns": "x"}, "no such filter or option: min_time_ns"),
        ({"top": True}, "top must be a whole number, not True"),
        ({"top": "5"}, "top must be a whole number, not '5'"),
        ({"top": 0}, "top must be 1 or more"),
        ({"sort": 5}, "sort must be the name of a column, not 5"),
        ({"by": 5}, "by must be names, not 5"),
        ({"by": [5]}, "by must be names"),
        ({"failed": True, "succeeded": True}, "exclude each other"),
    ],
)
def test_invalid_arguments_raise_request_errors(
    mixed_path: Path, arguments: dict[str, object], words: str
) -> None:
    with iodock.open(mixed_path) as run, pytest.raises(iodock.RequestError, match=words):
        run.show("summary", **arguments)


@pytest.mark.parametrize("name", [5, None, []], ids=repr)
def test_invalid_names_of_analyses_are_refused(mixed_path: Path, name: object) -> None:
    with iodock.open(mixed_path) as run, pytest.raises(iodock.RequestError, match="no such analysis"):
        run.show(name)  # type: ignore[arg-type]


def test_errors_are_iodock_errors(tmp_path: Path, mixed_path: Path) -> None:
    with pytest.raises(iodock.StoreError) as missing:
        iodock.open(tmp_path / "none.iodock")
    assert missing.value.hint
    with iodock.open(mixed_path) as run:
        with pytest.raises(iodock.QueryError):
            run.query("SELECT FROM")
        with pytest.raises(iodock.RequestError):
            run.show("nothing")


def test_lists_may_be_given_as_on_the_command_line(mixed: iodock.Run) -> None:
    for text, listed in (("read,write", ["read", "write"]), ("class:seek, brk", ["class:seek", "brk"])):
        found, wanted = (mixed.show("summary", call=call, kind="all").to_arrow() for call in (text, listed))
        assert found.num_rows and found.equals(wanted)
    text_pids, pids = (mixed.show(by="pid", pid=pid).to_arrow() for pid in ("100,200", [100, 200]))
    assert text_pids.equals(pids)
