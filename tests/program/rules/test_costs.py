"""Tests the cost of a call or a byte, which several rules use."""

from __future__ import annotations

import pytest

from iodock.program.rules import costs
from iodock.program.rules.facts import Facts
from iodock.program.rules.places import Faults


class Computed(Facts):
    """Facts that contain only the CPU time of the processes."""

    def __init__(self, cpu_ns: int | None) -> None:
        object.__setattr__(self, "cpu_ns", cpu_ns)
        object.__setattr__(self, "tracing_ns", 0)

    def rows(self, sql: str) -> list[dict[str, int | None]]:
        return [{"ns": self.cpu_ns}]


@pytest.mark.parametrize(
    ("name", "moved", "cpu_ns", "expected"),
    [
        ("/data/state.json", 1_100_000, 10**9, 5_000_000),
        ("/data/state.json", 1_100_000, 1000, 1000),
        ("/data/state.json", 1_100_000, None, 0),
        ("/data/state.json", 2_000_000, 10**9, 0),
        ("/data/state.bin", 1_100_000, 10**9, 0),
    ],
)
def test_formatting_and_parsing_text_is_part_of_the_cost(
    name: str, moved: int, cpu_ns: int | None, expected: int
) -> None:
    faults = Faults([{"place": 1, "name": name, "again": 1_000_000, "bytes": moved}])
    assert costs.text_ns(Computed(cpu_ns), faults, 1) == expected
