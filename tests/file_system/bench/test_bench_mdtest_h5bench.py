"""Tests reading mdtest's and h5bench's results from other versions and options, and damaged ones.

The inputs follow the programs' own output code: mdtest.c of IOR 3.3 and 4.1, h5bench_*.c of 1.0 to 1.6."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.file_system.health import readers
from iodock.file_system.health.measurements import MeasurementError, Measurements
from places import FIXTURES

MIB, GIB = 1 << 20, 1 << 30
LAUNCH = """-- started at 02/11/2024 10:00:00 --

mdtest-{version} was launched with {tasks} total task(s) on {nodes} node(s)
Command line used: ./mdtest '-n' '1000' '-i' '2'
{tasks} tasks, 2000 files/directories

"""
PLAIN = "   Operation                     Max            Min           Mean        Std Dev\n"
PER_RANK = (
    "   Operation     per Rank: Max            Min           Mean      per Iteration:"
    " Max            Min           Mean        Std Dev\n"
)


def read(path: Path, content: str) -> Measurements:
    path.write_text(content)
    return readers.read(path)


def launch(version: str = "4.0.0", tasks: int = 2, nodes: int = 1) -> str:
    return LAUNCH.format(version=version, tasks=tasks, nodes=nodes)


def test_mdtest_rates_and_times_in_one_output_are_read(tmp_path: Path) -> None:
    row = "   File creation         300100.000     100100.000     200000.000         "
    text = (
        f"{launch()}SUMMARY rate (in ops/sec): (of 2 iterations)\n{PER_RANK}"
        f"{row}600200.000     200200.000     400200.000     282842.712\n"
        f"\nSUMMARY time (in ms/op): (of 2 iterations)\n{PER_RANK}"
        f"{row}     0.020          0.010          0.015          0.007\n"
    )
    (create,) = read(tmp_path / "both.txt", text).cells
    assert (create.value, create.minimum, create.best, create.repeats) == (400_200, 200_200, 600_200, 2)


def test_times_without_rates_are_refused_and_the_option_named(tmp_path: Path) -> None:
    row = "   File creation      0.020          0.010          0.015          0.007\n"
    text = f"{launch()}SUMMARY time (in ms/op): (of 2 iterations)\n{PLAIN}{row}"
    with pytest.raises(MeasurementError) as raised:
        read(tmp_path / "times.txt", text)
    assert "times.txt:7: contains only times of operations" in str(raised.value)
    assert "-P" in (raised.value.hint or "")


def test_each_mdtest_table_has_its_own_number_of_tasks(tmp_path: Path) -> None:
    """`-f 2 -l 4 -s 2` measures with 2 and then with 4 of the tasks; a second run follows."""
    row = "   File creation      600.000        200.000        400.000        100.000\n"
    table = f"SUMMARY rate: (of 2 iterations)\n{PLAIN}{row}\n"
    steps = f"2 tasks, 200 files\n{table}4 tasks, 400 files\n{table}"
    text = f"{launch(tasks=4)}{steps}{launch(tasks=8, nodes=2)}{table}"
    measured = read(tmp_path / "several.txt", text)
    assert [(one.processes, one.nodes) for one in measured.cells] == [(2, None), (4, 1), (8, 2)]


def test_stonewalled_creation_of_mdtest_3_3_is_read(tmp_path: Path) -> None:
    text = (
        f"{launch('3.3.0')}SUMMARY rate: (of 1 iterations)\n{PLAIN}"
        "   File creation             :       1000.000       1000.000       1000.000          0.000\n"
        "   File create (stonewall)   :             NA             NA       1200.000             NA\n"
    )
    whole, walled = read(tmp_path / "wall.txt", text).cells
    assert (whole.operation, whole.value, dict(whole.variant)) == (
        "file-create",
        1000,
        {"directories": "shared"},
    )
    assert (walled.value, walled.minimum, walled.variant["rate"]) == (1200, None, "stonewall")


def test_verbose_prefixes_are_removed_and_damaged_rows_counted(tmp_path: Path) -> None:
    head = launch().replace("mdtest-", "V-0: mdtest-").replace("Command", "V-0: Command")
    text = (
        f"{head}V-0: SUMMARY rate (in ops/sec): (of 2 iterations)\nV-0: {PLAIN}"
        "   Directory creation      600.000        200.000        400.000        100.000\n"
        "   Directory stat      600.000        200.000        -nan        100.000\n"
        "   Directory removal      inf        200.000        inf        100.000\n"
        "   File creation      600.000        200.000   \n"
        "   File stat      600.000        200.000        500.000        -nan\n"
    )
    measured = read(tmp_path / "damaged.txt", text)
    assert [(one.operation, one.value, one.spread) for one in measured.cells] == [
        ("directory-create", 400, 0.25),
        ("file-stat", 500, None),
    ]
    assert [note.split(":")[1].split()[0] for note in measured.protocol.notes] == ["2", "1"]


def test_a_row_with_a_damaged_name_is_counted(tmp_path: Path) -> None:
    text = (
        f"{launch()}SUMMARY rate (in ops/sec): (of 2 iterations)\n{PLAIN}"
        "   Directory cre\u00e9@ation   :      600.000        200.000        400.000        100.000\n"
        "   File stat            :      600.000        200.000        500.000         10.000\n"
    )
    measured = read(tmp_path / "damaged.txt", text)
    assert [one.operation for one in measured.cells] == ["file-stat"]
    assert (
        "truncated or damaged" in measured.protocol.notes[0] and "damaged.txt:9" in measured.protocol.notes[0]
    )


def test_a_huge_command_line_is_read_in_linear_time(tmp_path: Path) -> None:
    text = launch().replace("'-n'", f"-{'A' * (16 << 20)} '-n'")
    rows = "   File stat            :      600.000        200.000        500.000         10.000\n"
    measured = read(tmp_path / "long.txt", f"{text}SUMMARY rate: (of 2 iterations)\n{PLAIN}{rows}")
    assert [one.value for one in measured.cells] == [500]


OLD = """
 Performance measured with {ranks} ranks,
==================  Performance results  =================
Total emulated compute time 4 ms
Total write size = 2560 MB
Raw write time = 1.000 sec
Observed completion time = 2.000 sec
Sync Raw write rate = 2560.000 MB/sec
Sync Observed write rate = {observed} MB/sec
===========================================================
"""


def test_several_h5bench_1_0_runs_in_megabytes_are_read(tmp_path: Path) -> None:
    text = OLD.format(ranks=4, observed="1280.000") + OLD.format(ranks=8, observed="inf")
    measured = read(tmp_path / "old.txt", text)
    assert [(one.processes, one.variant["rate"], one.value) for one in measured.cells] == [
        (4, "raw", 2560 * MIB),
        (4, "observed", 1280 * MIB),
        (8, "raw", 2560 * MIB),
    ]
    assert {one.seconds for one in measured.cells} == {1.0, 2.0}
    assert "unusable values left out: 1" in measured.protocol.notes[0]


def test_h5bench_1_2_reads_and_appends_have_unknown_ranks(tmp_path: Path) -> None:
    text = """
 =================  Performance results  =================
Total emulated compute time = 4.000 sec
Total modify size = 5 GB
Raw modify time = 2.000 sec
Metadata time = 0.002 sec
Observed modify completion time = 4.000 sec
SYNC Raw modify rate = 2.500 GB/sec
SYNC Observed modify rate = 1.250 GB/sec
===========================================================
"""
    raw, observed = read(tmp_path / "append.txt", text).cells
    assert (raw.operation, raw.processes, raw.value) == ("modify", None, 2.5 * GIB)
    assert (observed.value, observed.volume_bytes, observed.seconds) == (1.25 * GIB, 5 * GIB, 4)


def test_h5bench_csv_of_each_version_is_read(tmp_path: Path) -> None:
    old = (
        "NUM_RANKS, 4\nCollectiveWrite, YES\nTotal_write_size, 5120, MB\nRaw_write_time, 2.000, sec\n"
        "Raw_write_rate, 2560.000, MB/sec\nObserved_write_rate, 1280.000, MB/sec\n"
        "Observed_completion_time, 4.000, sec\n"
    )
    new = (
        "metric, value, unit\noperation, write, \nranks, 4, \ncollective data, YES, \ntotal size, 5.000, GB\n"
        "raw time, 2.000, seconds\nraw rate, 2.500, GB/s\nobserved rate, 1.250, GB/s\n"
        "observed time, 4.000, seconds\n"
    )
    for name, content in (("old.csv", old), ("new.csv", new), ("twice.csv", new + new)):
        measured = read(tmp_path / name, content)
        assert [
            (one.operation, one.processes, one.variant["rate"], one.value, one.seconds, one.volume_bytes)
            for one in measured.cells
        ] == [
            ("write", 4, "raw", 2.5 * GIB, 2.0, 5 * GIB),
            ("write", 4, "observed", 1.25 * GIB, 4.0, 5 * GIB),
        ]
        assert {one.variant["collective"] for one in measured.cells} == {"yes"}
    assert {one.repeats for one in measured.cells} == {2}


def test_an_h5bench_rate_rounded_to_0_is_unknown(tmp_path: Path) -> None:
    text = OLD.format(ranks=4, observed="0.000").replace("2560.000", "nan")
    with pytest.raises(MeasurementError) as raised:
        read(tmp_path / "small.txt", text)
    assert "no number that was measured" in str(raised.value)


@pytest.mark.parametrize("name", ["observed rate", "ranks", "metadata time"])
def test_a_damaged_name_in_h5benchs_csv_is_counted(tmp_path: Path, name: str) -> None:
    whole = (FIXTURES / "bench/h5bench-read.csv").read_text()
    (tmp_path / "read.csv").write_text(whole)
    assert not any(
        "left out" in note for note in readers.read(tmp_path / "read.csv", "h5bench").protocol.notes
    )
    (tmp_path / "read.csv").write_text(whole.replace(f"{name},", f"{name[:-1]}%,"))
    (said,) = readers.read(tmp_path / "read.csv", "h5bench").protocol.notes
    assert "a line in a form that h5bench does not write" in said and "read.csv:" in said


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("operation, read", "operation, reae"),
        ("ranks, 4", "ranks, t"),
        ("data, YES", "data, YEC"),
        ("5.000, GB", "5.000, GR"),
        ("1.155, seconds", "1.1%5, seconds"),
        ("6.349, seconds", "6.349, secondr"),
    ],
)
def test_a_damaged_value_in_h5benchs_csv_is_unknown_and_counted(
    tmp_path: Path, right: str, wrong: str
) -> None:
    whole = (FIXTURES / "bench/h5bench-read.csv").read_text()
    assert right in whole
    (tmp_path / "read.csv").write_text(whole.replace(right, wrong))
    measured = readers.read(tmp_path / "read.csv", "h5bench")
    (said,) = measured.protocol.notes
    assert "a line in a form that h5bench does not write" in said and "read.csv:" in said
    assert [one.value for one in measured.cells] == [4.33 * GIB, 2.126 * GIB]
    assert {one.operation for one in measured.cells} == {"unknown" if "reae" in wrong else "read"}


def test_a_damaged_rate_of_h5bench_is_counted(tmp_path: Path) -> None:
    whole = OLD.format(ranks=4, observed="1280.000")
    for right, wrong in (("Observed write", "Observef write"), ("1280.000 MB/sec", "1280.000 MB/{")):
        (tmp_path / "old.txt").write_text(whole.replace(right, wrong))
        measured = readers.read(tmp_path / "old.txt", "h5bench")
        assert [one.variant["rate"] for one in measured.cells] == ["raw"]
        assert "truncated or damaged" in measured.protocol.notes[0]
