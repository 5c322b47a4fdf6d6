"""Compares results that iodock once misread, as their programs wrote them, with the case's description."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.file_system.health import readers
from iodock.file_system.health.measurements import Cell, MeasurementError, Measurements, Unit
from places import FIXTURES

PUBLIC = FIXTURES / "public"
MIB, GIB = 1 << 20, 1 << 30


def only(measured: Measurements, operation: str, **variant: str) -> Cell:
    found = [
        one
        for one in measured.cells
        if one.operation == operation and variant.items() <= dict(one.variant).items()
    ]
    assert len(found) == 1, measured.cells
    return found[0]


def test_fio_status_updates_use_the_last_document() -> None:
    folder = PUBLIC / "fio-status-interval"
    measured = readers.read(folder / "real-interval.json")
    write = only(measured, "write")
    assert (write.volume_bytes, write.seconds, write.value) == (124_387_328, 6.221, 19_994_748)
    assert any("documents of one run: 4" in note for note in measured.protocol.notes)
    small = readers.read(folder / "mini-interval.json")
    assert only(small, "read").value == 8 * MIB
    assert any("documents of one run: 2" in note for note in small.protocol.notes)


def test_ior_dates_are_not_read_as_durations() -> None:
    path = PUBLIC / "ior-epoch-times" / "epoch.txt"
    with pytest.raises(MeasurementError) as raised:
        readers.read(path)
    assert f"1751892628 s in {path}:32" in str(raised.value)
    assert "a date, no duration" in str(raised.value)


def test_iozone_operation_rates_are_not_read_as_bytes() -> None:
    folder = PUBLIC / "iozone-operations"
    expected = {
        "ops.txt": {"sequential": 112043, "rewrite": 190405},
        "ops-blog.txt": {"sequential": 999, "rewrite": 1165, "random": 1107},
        "ops-t.txt": {"sequential": 3159.44},
    }
    for name, rates in expected.items():
        measured = readers.read(folder / name)
        assert {one.unit for one in measured.cells} == {Unit.OPERATIONS_PER_S}
        writes = {one.variant["pattern"]: one.value for one in measured.cells if one.operation == "write"}
        assert writes == rates
    reads = [one.value for one in readers.read(folder / "ops-blog.txt").cells if one.operation == "read"]
    assert reads == [1126, 1131, 246]


def test_elbencho_mixed_phases_and_units_are_read() -> None:
    measured = readers.read(PUBLIC / "elbencho-mixed" / "rwmix-table.txt")
    mixed = [one for one in measured.cells if "mix" in one.variant]
    plain = [one for one in measured.cells if "mix" not in one.variant]
    assert [(one.operation, one.value) for one in plain] == [("write", 1939 * MIB), ("read", 4026e6)]
    assert [(one.operation, one.value) for one in mixed] == [("write", 963 * MIB), ("read", 2890 * MIB)]


def test_mdtest_rates_are_means_over_iterations() -> None:
    folder = PUBLIC / "mdtest-per-rank"
    newest = readers.read(folder / "v40-perrank.txt")
    create = only(newest, "file-create")
    assert (create.value, create.best, create.minimum) == (400_200, 600_200, 200_200)
    assert create.spread == pytest.approx(0.7067, abs=1e-4)
    assert only(newest, "tree-create").value == 49722.038
    older = only(readers.read(folder / "v34perrank.txt"), "file-create")
    assert (older.value, older.best, older.spread) == (400_200, 600_200, create.spread)
    oldest = only(readers.read(folder / "v34dec.txt"), "file-create")
    # This version computes the deviation over ranks and iterations, for the rates of single ranks, so iodock
    # ignores it.
    assert (oldest.value, oldest.best, oldest.spread) == (84093.570, 104202.595, None)


def test_h5bench_output_before_1_3_is_read() -> None:
    folder = PUBLIC / "h5bench-1.0-1.2"
    text = readers.read(folder / "old11.txt")
    raw, observed = only(text, "write", rate="raw"), only(text, "write", rate="observed")
    assert (raw.value, observed.value) == (pytest.approx(1.1 * GIB), pytest.approx(1.091 * GIB))
    assert (raw.processes, raw.volume_bytes, raw.seconds) == (31, 77 * GIB, 70.011)
    rows = readers.read(folder / "old-read.csv")
    raw, observed = only(rows, "read", rate="raw"), only(rows, "read", rate="observed")
    assert (raw.value, observed.value) == (pytest.approx(4.33 * GIB), pytest.approx(2.126 * GIB))
    assert (raw.processes, raw.seconds) == (4, 1.155)


def test_every_folder_of_public_benchmark_results_is_tested() -> None:
    text = Path(__file__).read_text()
    benchmarks = ("elbencho", "fio", "h5bench", "ior", "iozone", "mdtest")
    folders = [one.name for one in PUBLIC.iterdir() if one.name.startswith(benchmarks)]
    assert len(folders) >= 6
    assert [name for name in folders if f'"{name}"' not in text] == []
