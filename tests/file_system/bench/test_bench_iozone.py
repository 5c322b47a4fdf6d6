"""Tests IOzone's layouts by version and option, and errors that IOzone itself reports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iodock.file_system.health import readers
from iodock.file_system.health.measurements import MeasurementError, Measurements, Unit
from places import ROOT

FIXTURES = ROOT / "fixtures" / "bench"
BANNER = "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.{} $\n\n"
# Formats of print_header and of each test in IOzone 3.414 (old) and 3.471 (new).
OLD_HEAD = "%16s%8s%8s%8s%8s%10s%8s%8s%8s %8s %8s%9s%9s%8s%9s"
NEW_HEAD = "%16s%8s%9s%9s%8s%10s%8s %9s%9s %9s %9s%9s%9s%9s%9s"
OLD, NEW = (8, 8, 9, 9, 8, 8, 8, 9, 9, 9, 9, 8, 9), (9,) * 13
NAMES = (
    *("KB", "reclen", "write", "rewrite", "read", "reread", "read", "write", "read", "rewrite"),
    *("read", "fwrite", "frewrite", "fread", "freread"),
)
PATTERNS = (
    *("sequential", "rewrite", "sequential", "reread", "random", "random", "backward"),
    *("record-rewrite", "stride", "fwrite", "frewrite", "fread", "freread"),
)


def table(is_old: bool, values: list[int | None], command: str = "iozone -s 4m -r 4k") -> str:
    widths = OLD if is_old else NEW
    row = "".join(
        f"{'' if value is None else value:>{width}}" for value, width in zip(values, widths, strict=True)
    )
    head = (OLD_HEAD if is_old else NEW_HEAD) % NAMES
    return (
        f"{BANNER.format(414 if is_old else 489)}\tCommand line used: {command}\n\tOutput is in Kbytes/sec\n"
        f"{head}\n            4096       4{row}\n\niozone test complete.\n"
    )


def read(folder: Path, text: str) -> Measurements:
    path = folder / "iozone.out"
    path.write_text(text)
    return readers.read(path)


def patterns(measured: Measurements) -> list[tuple[str, int]]:
    return [(one.variant["pattern"], round(one.value / 1024)) for one in measured.cells]


@pytest.mark.parametrize("is_old", [True, False], ids=["3.414", "3.489"])
@pytest.mark.parametrize("scale", [1, 1000, 100_000, 1_000_000])
def test_column_widths_of_all_iozone_versions_are_read(tmp_path: Path, is_old: bool, scale: int) -> None:
    """The numbers vary from narrow ones to those that fill the column and touch each other."""
    full = [(11 + at) * scale for at in range(13)]
    assert patterns(read(tmp_path, table(is_old, list(full)))) == list(zip(PATTERNS, full, strict=True))
    some: list[int | None] = [value if at in (0, 1, 4, 5, 8) else None for at, value in enumerate(full)]
    found = patterns(read(tmp_path, table(is_old, some)))
    assert found == [(PATTERNS[at], full[at]) for at in (0, 1, 4, 5, 8)]


def test_numbers_wider_than_their_columns_are_assigned_in_order(tmp_path: Path) -> None:
    values: list[int | None] = [1234567890, 2345678901, *[None] * 11]
    text = table(False, values, "iozone -s 4m -r 4k -i 0").replace("2345678901", " 2345678901")
    assert patterns(read(tmp_path, text)) == [("sequential", 1234567890), ("rewrite", 2345678901)]
    with pytest.raises(MeasurementError, match="can't be separated"):
        read(tmp_path, text.replace("-i 0", ""))


def test_a_table_with_collapsed_blanks_is_read(tmp_path: Path) -> None:
    values: list[int | None] = [11, 12, None, None, 15, 16, *[None] * 7]
    text = re.sub(r" {2,}", " ", table(False, values, "iozone -i 0 -i2 -s 4m -r 4k"))
    assert patterns(read(tmp_path, text)) == [
        ("sequential", 11),
        ("rewrite", 12),
        ("random", 15),
        ("random", 16),
    ]


def test_extension_tests_and_reports_are_read() -> None:
    measured = readers.read(FIXTURES / "iozone-3.489-extension.txt")
    found = {(one.operation, one.variant["pattern"]): round(one.value / 1024) for one in measured.cells}
    assert found["write", "pwrite"] == 1679160 and found["read", "pread"] == 4783849
    assert found["read", "re-pread"] == 7008693 and len(found) == 17
    assert len(readers.read(FIXTURES / "iozone-3.489-excel.txt").cells) == 13


def test_reports_without_the_table_are_read(tmp_path: Path) -> None:
    text = (FIXTURES / "iozone-3.489-excel.txt").read_text()
    whole = readers.read(FIXTURES / "iozone-3.489-excel.txt")
    only = read(tmp_path, text[text.index('"Writer report"') :])
    assert patterns(only) == patterns(whole)
    assert [one.size_bytes for one in only.cells] == [4096] * 13


def test_throughput_is_read_by_number_of_processes() -> None:
    cells = readers.read(FIXTURES / "iozone-3.489-lu.txt").cells
    writes = [one for one in cells if one.variant["pattern"] == "sequential" and one.operation == "write"]
    assert [(one.processes, round(one.value / 1024, 2)) for one in writes] == [
        (1, 800731.31),
        (2, 2273410.75),
        (3, 985580.25),
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no-folder", "Can not open temp file: /nonexist/f"),
        ("disk-full-t", "Error writing block 32"),
        ("microseconds", "microseconds per operation"),
    ],
)
def test_runs_without_a_rate_are_refused_with_a_reason(name: str, said: str) -> None:
    path = FIXTURES / f"iozone-3.489-{name}.txt"
    with pytest.raises(MeasurementError) as raised:
        readers.read(path)
    assert said in str(raised.value)
    shown = int(str(raised.value).split(":")[1])
    assert said.split(" ")[0].lower() in path.read_text().splitlines()[shown - 1].lower()


def test_rows_before_an_error_are_kept() -> None:
    measured = readers.read(FIXTURES / "iozone-3.489-disk-full.txt")
    assert len(measured.cells) == 8
    notes = " ".join(measured.protocol.notes)
    assert "No space left on device" in notes and "ends without `iozone test complete.`" in notes
    assert "iozone reported an error in this row" in notes


def test_a_row_with_an_error_gives_no_rate(tmp_path: Path) -> None:
    text = table(False, [11, 12, *[None] * 11])
    broken = text.replace("iozone test complete.", "Error reading block 3 7f\nread: Input/output error\n")
    with pytest.raises(MeasurementError, match=r"iozone stopped: Error reading block 3"):
        read(tmp_path, broken)
    quick = text.replace(
        "\niozone test", "The test completed too quickly to give a good result\n\niozone test"
    )
    with pytest.raises(MeasurementError, match="too quickly"):
        read(tmp_path, quick)


def test_a_truncated_row_gives_no_rate(tmp_path: Path) -> None:
    text = table(False, [11111, 12222, *[None] * 11])
    with pytest.raises(MeasurementError, match="the row is truncated"):
        read(tmp_path, text[: text.index("12222") + 5])


def test_records_larger_than_the_file_give_no_rate(tmp_path: Path) -> None:
    text = table(False, [11, 12, *[None] * 11]).replace(
        "            4096       4", "               4    4096"
    )
    with pytest.raises(MeasurementError, match="record is larger than the file"):
        read(tmp_path, text)


def test_unknown_units_and_tests_are_counted(tmp_path: Path) -> None:
    text = BANNER.format(489) + (
        "\tChildren see throughput for  2 initial writers \t=    10.00 kB/sec\n"
        "\tChildren see throughput for 2 odd testers \t=    10.00 kB/sec\n"
        "\tChildren see throughput for 2 readers \t=    10.00 furlongs/sec\n"
        "\tChildren see throughput for 2 rewriters \t=    -nan kB/sec\n\niozone test complete.\n"
    )
    measured = read(tmp_path, text)
    assert [one.value for one in measured.cells] == [10 * 1024]
    notes = " ".join(measured.protocol.notes)
    assert "unusable values left out: 2 (an unknown test or unit; the first is iozone odd testers" in notes
    assert "-nan" in notes


def test_the_number_of_nodes_of_a_cluster_run_is_unknown(tmp_path: Path) -> None:
    text = BANNER.format(489) + (
        "\tNetwork distribution mode enabled.\n\tCommand line used: iozone -+m hosts -t 2 -O -s 1m -r 4k\n"
        "\tOPS Mode. Output is in operations per second.\n"
        "\tEach process writes a 1024 kByte file in 4 kByte records\n"
        "\tChildren see throughput for  2 initial writers \t=    10.00 ops/sec\n\niozone test complete.\n"
    )
    [cell] = read(tmp_path, text).cells
    assert (cell.nodes, cell.processes, cell.unit, cell.value) == (None, 2, Unit.OPERATIONS_PER_S, 10)


def test_reports_with_damaged_record_sizes_are_counted(tmp_path: Path) -> None:
    text = (FIXTURES / "iozone-3.489-excel.txt").read_text()
    # The test removes the table whose numbers the Excel reports repeat.
    reports = text[: text.index("              kB  reclen")] + text[text.index("Excel output is below") :]
    (tmp_path / "whole.txt").write_text(reports)
    whole = readers.read(tmp_path / "whole.txt")
    (tmp_path / "damaged.txt").write_text(reports.replace('"4"', '"1e-320"', 1))
    damaged = readers.read(tmp_path / "damaged.txt")
    assert len(damaged.cells) == len(whole.cells) - 1
    assert {one.size_bytes for one in damaged.cells} == {4096}
    assert any("truncated or damaged" in note for note in damaged.protocol.notes)
