"""Results that were once read wrong, as their programs wrote them: each against what the case says."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.health import readers
from iodock.health.measurements import Cell, MeasurementError, Measurements, Unit

PUBLIC = Path(__file__).parent.parent / "fixtures" / "public"
MIB, GIB = 1 << 20, 1 << 30


def only(measured: Measurements, operation: str, **variant: str) -> Cell:
    found = [
        one
        for one in measured.cells
        if one.operation == operation and variant.items() <= dict(one.variant).items()
    ]
    assert len(found) == 1, measured.cells
    return found[0]


def test_fio_status_interval_is_its_last_document() -> None:
    folder = PUBLIC / "fio-status-interval"
    measured = readers.read(folder / "real-interval.json")
    write = only(measured, "write")
    assert (write.volume_bytes, write.seconds, write.value) == (124_387_328, 6.221, 19_994_748)
    assert any("documents of one run: 4" in note for note in measured.protocol.notes)
    small = readers.read(folder / "mini-interval.json")
    assert only(small, "read").value == 8 * MIB
    assert any("documents of one run: 2" in note for note in small.protocol.notes)


def test_ior_dates_are_no_durations() -> None:
    path = PUBLIC / "ior-epoch-times" / "epoch.txt"
    with pytest.raises(MeasurementError) as raised:
        readers.read(path)
    assert f"1751892628 s, {path}:32" in str(raised.value)
    assert "a date, no duration" in str(raised.value)


def test_iozone_operations_are_no_bytes() -> None:
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
