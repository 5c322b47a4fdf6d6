"""Tests CSV output: spreadsheets do not interpret texts as formulas; numbers and other formats are exact."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest

from in_process import shown
from iodock.centre.portal import tables
from iodock.cli.run import run
from iodock.program.capture import import_logs
from iodock.shared.tables.cells import STARTS, guarded, guarded_column
from iodock.shared.tables.csv import write_batches
from places import SOURCE


@pytest.mark.parametrize("sign", STARTS)
def test_formulas_in_csv_cells_get_an_apostrophe(sign: str) -> None:
    texts = [f"{sign}1+1", f"a{sign}", sign, "", None]
    expected = [f"'{sign}1+1", f"a{sign}", f"'{sign}", "", None]
    assert [guarded(text) for text in texts] == expected
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        assert guarded_column(pa.array(texts, kind)).to_pylist() == expected


def test_numbers_in_csv_cells_are_unchanged() -> None:
    assert [guarded(value) for value in (-1, -1.5, None, True)] == [-1, -1.5, None, True]
    table = pa.table({"=name": ["-1"], "number": [-1], "share": [-0.5]})
    out = io.BytesIO()
    write_batches(table.schema, table.to_batches(), out)
    assert list(csv.reader(io.StringIO(out.getvalue().decode()))) == [
        ["'=name", "number", "share"], ["'-1", "-1", "-0.5"],
    ]  # fmt: skip


def test_column_names_with_commas_are_quoted() -> None:
    table = pa.table({'a,"b"': [1]})
    out = io.BytesIO()
    write_batches(table.schema, table.to_batches(), out)
    assert next(csv.reader(io.StringIO(out.getvalue().decode()))) == ['a,"b"']


def test_file_names_are_escaped_in_csv_and_exact_in_json(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    name = "=cmd|' /C calc'!A0"
    (tmp_path / "run.log").write_text(f'1 1700000000.1 openat(AT_FDCWD, "{name}", O_RDONLY) = 3 <0.1>\n')
    import_logs([str(tmp_path / "run.log")], tmp_path / "run.iodock")
    words = ["files", str(tmp_path / "run.iodock"), "--format", "csv"]
    assert run(["show", *words]) == 0
    rows = list(csv.DictReader(io.StringIO(capsysbinary.readouterr().out.decode())))
    assert [row["file"] for row in rows] == [f"'{name}"]
    assert [row["file"] for row in shown(tmp_path / "run.iodock", "files")["rows"]] == [name]


def test_the_portal_escapes_csv_cells_with_the_same_function() -> None:
    assert tables.guarded is guarded


def test_all_csv_rows_are_written_through_the_escape_function() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if "cases" in path.parts or "csv.writer" not in text:
            continue
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        assert names & {"guarded", "guarded_row"}, path
