"""Tests that remarks, comparison, tables and graphs work for a result with any cells."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from iodock.file_system.health import measurements_json
from iodock.file_system.health.compare import compare
from iodock.file_system.health.measurements import Cache, Cell, Latency, Limit, Measurements, Protocol, Unit
from iodock.file_system.health.remarks import find
from iodock.file_system.views import health_compare, health_report
from iodock.file_system.views.measurement_curves import figures
from iodock.file_system.views.measurement_lines import specification
from iodock.file_system.views.measurements_text import render
from iodock.shared.language import language_in

ENGLISH = language_in("en")
UNITS = (*[Unit.BYTES_PER_S] * 4, *[Unit.OPERATIONS_PER_S] * 3, Unit.SECONDS, Unit.SCORE)
VARIANTS: tuple[dict[str, str], ...] = ({}, {}, {"api": "POSIX"}, {"block_bytes": "4096"}, {'a"<b>': "{x}"})


def odd_cell(chance: random.Random) -> Cell:
    repeats = chance.choice([None, 1, 2, 3, 5, 1000])
    several = repeats is not None and repeats < 9 and chance.random() < 0.5
    return Cell(
        test=chance.choice(["large-transfer", "metadata", "x{y}"]),
        operation=chance.choice(["write", "read", "file-stat", "weird op"]),
        size_bytes=chance.choice([None, 0, 1, 4096, 1 << 20, 1 << 40]),
        processes=chance.choice([None, 1, 2, 8, 64, 10**9]),
        nodes=chance.choice([None, 1, 2, 8]),
        value=chance.choice([0.0, 1e-9, 5.0, 100.0, 1e6, 1e18, chance.random() * 1e9]),
        unit=chance.choice(UNITS),
        repeats=repeats,
        spread=chance.choice([None, 0.0, 1e-9, 0.01, 0.1, 1.0, 50.0]),
        cache=chance.choice([None, *Cache]),
        latency_ns=chance.choice([None, Latency(1.0, 2.0, 3.0, 4.0)]),
        values=tuple(abs(chance.gauss(100, 10)) for _ in range(repeats or 0)) if several else (),
        variant=chance.choice(VARIANTS),
    )


def odd_result(chance: random.Random) -> Measurements:
    limits = (Limit("a {link}", chance.choice([1.0, 1e9]), chance.choice(["node", "total"])),)
    cells = tuple(odd_cell(chance) for _ in range(chance.choice([0, 1, 3, 10, 40])))
    result = Measurements(Protocol(tool="t", limits=limits), cells)
    return replace(result, remarks=find(result))


@pytest.mark.parametrize("seed", range(60))
def test_unusual_measurements_break_no_view(seed: int) -> None:
    chance = random.Random(seed)
    result, other = odd_result(chance), odd_result(chance)
    again = measurements_json.from_json(measurements_json.to_json(result), "odd.json")
    assert again.cells == result.cells
    assert render(result, language_in("ja"), True, chance.choice([None, 20, 80]))
    for figure in figures(result.cells, result.remarks, ENGLISH):
        assert specification(figure, ENGLISH)["layer"]
    found = compare(result, replace(other, cells=(*other.cells, *result.cells[::2])))
    assert health_compare.render(found, ENGLISH) and health_compare.to_json(found, ENGLISH)
    if seed % 20 == 0:
        assert "</html>" in health_report.render(result, ENGLISH)
