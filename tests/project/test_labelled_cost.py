"""Tests the cost of a labelled fault: the arithmetic with made-up times, and one pair that really runs."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import labelled_cost
from labelled_cost import Cost, Times, class_of, cost_from
from labelled_runs import Places
from labelled_score import CostClass, Label

STEADY = (1.0, 1.0, 1.0, 1.0, 1.0)
SAME = Times(STEADY, STEADY)


def moved(by: float) -> Times:
    return Times(tuple(one + by for one in STEADY), STEADY)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (Cost(moved(0.05), SAME), CostClass.WORTH),
        (Cost(SAME, moved(0.05)), CostClass.WORTH),
        (Cost(moved(0.005), SAME), CostClass.LITTLE),
        (Cost(SAME, SAME), CostClass.LITTLE),
        (Cost(moved(-0.05), moved(-0.05)), CostClass.UNMEASURED),
        (None, CostClass.UNMEASURED),
    ],
    ids=["wall", "cpu", "below 1 %", "nothing", "other work", "none"],
)
def test_costs_are_classified(cost: Cost | None, expected: CostClass) -> None:
    assert class_of(cost) is expected


def test_a_gain_within_the_noise_does_not_count() -> None:
    noisy = Times((1.0, 1.5, 1.1, 1.6, 1.2), (1.0, 1.4, 1.1, 1.5, 1.1))
    assert noisy.gain == pytest.approx(0.1)
    quartiles_apart = (0.4, 0.3)
    assert noisy.noise == pytest.approx(2 * 1.253 / 1.349 * math.hypot(*quartiles_apart) / math.sqrt(5))
    assert class_of(Cost(noisy, SAME)) is CostClass.LITTLE


def test_a_single_disturbed_repeat_does_not_raise_the_noise() -> None:
    disturbed = Times((1.1, 1.1, 9.0, 1.1, 1.1), STEADY)
    assert (disturbed.noise, disturbed.gain) == (0.0, pytest.approx(0.1))


def test_more_repeats_are_needed_only_near_the_limit() -> None:
    assert Cost(moved(0.5), SAME).is_clear and Cost(SAME, SAME).is_clear
    assert not Cost(moved(0.011), SAME).is_clear and not Cost(moved(0.008), SAME).is_clear


def test_stored_measurements_are_reused(tmp_path: Path) -> None:
    labels = [
        Label(
            "faulty",
            "fault",
            program="none.c",
            faults=frozenset(["stat-storm"]),
            top="stat-storm",
            twin="clean",
        ),
        Label("clean", "clean", program="none.c"),
    ]
    kept = tmp_path / "set.json"
    kept.write_text(json.dumps({"faulty": asdict(Cost(moved(0.5), SAME))}))
    places = Places(tmp_path, tmp_path, None)
    costs = labelled_cost.costs_of(labels, {"faulty", "clean"}, places, kept, is_quiet=True)
    assert costs == {"faulty": Cost(moved(0.5), SAME)}


def test_the_programs_of_a_pair_run_alternately(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spin.py").write_text("import sys\nsum(range(int(sys.argv[1])))\n")
    labels = [
        Label(
            *("faulty", "fault"), program="spin.py", args=("40000000",), twin="clean",
            faults=frozenset(["stat-storm"]), top="stat-storm",
        ),
        Label("clean", "clean", program="spin.py", args=("1",)),
        Label(
            *("broken", "fault"), program="gone.py", twin="clean",
            faults=frozenset(["stat-storm"]), top="stat-storm",
        ),
    ]  # fmt: skip
    kept = tmp_path / "kept" / "set.json"
    wanted = {label.name for label in labels}
    costs = labelled_cost.costs_of(labels, wanted, Places(tmp_path, tmp_path, None), kept, is_quiet=False)
    assert class_of(costs["faulty"]) is CostClass.WORTH
    assert 3 <= len(costs["faulty"].wall.faulty) <= labelled_cost.MOST_TURNS
    assert cost_from(json.loads(kept.read_text())["faulty"]) == costs["faulty"]
    told = capsys.readouterr().err
    assert "faulty: wall" in told and "broken: cost not measured: run: status" in told
