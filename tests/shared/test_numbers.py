"""Tests that numbers are shown as people write them, without exponents."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from iodock.shared.sentences import value_text
from iodock.shared.units import COUNT, NANOSECONDS, number_text
from places import SOURCE

AS_WRITTEN = {
    (0, 3): "0",
    (1600.0, 2): "1,600",
    (1643.2, 3): "1,643",
    (-1643.2, 3): "-1,643",
    (999.6, 3): "1,000",
    (99.96, 3): "100",
    (16.43, 3): "16.4",
    (0.000012, 3): "0.000012",
    (12345.67, 6): "12,345.7",
    (1_048_576, 6): "1,048,576",
    (1e20, 3): "1e+20",
}
ALLOWED = {"program/views/counters/heat.py", "centre/portal/charts.py"}
"""Pictures: nobody reads their coordinates."""


@pytest.mark.parametrize(("value", "digits"), AS_WRITTEN)
def test_numbers_are_written_with_separators_and_few_digits(value: float, digits: int) -> None:
    assert number_text(value, digits) == AS_WRITTEN[value, digits]


def test_infinite_and_unknown_numbers_are_shown() -> None:
    assert number_text(float("inf")) == "inf"
    assert number_text(float("nan")) == "nan"


def test_numbers_in_messages_and_units_are_formatted() -> None:
    assert value_text("count", 1643.0) == "1,643"
    assert COUNT.text(0.00001) == "0.00001"
    assert NANOSECONDS.text(0.00001) == "0.00001 ns"


def _with_exponents(tree: ast.AST) -> Iterator[int]:
    """Yields the lines that format a number in a way that may print an exponent, unless the code reads the
    text as a number again."""
    again = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "float"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node not in again and node.format_spec is not None:
            last = node.format_spec.values[-1] if isinstance(node.format_spec, ast.JoinedStr) else None
            if isinstance(last, ast.Constant) and str(last.value)[-1:] in ("g", "e", "G", "E"):
                yield node.lineno


def test_all_texts_use_the_number_formatting() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        # The test leaves out the simulation and pictures, whose digits no user reads, and `units`, which
        # formats numbers for all.
        if name not in ALLOWED | {"shared/units.py"} and not name.startswith("simulation/"):
            found += [f"{name}:{line}" for line in _with_exponents(ast.parse(path.read_text()))]
    assert found == []
