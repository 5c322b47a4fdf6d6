"""Tests comparing two check-ups of one file system: a real slowdown is flagged, and chance is not."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from iodock.file_system.health import measurements_json
from iodock.file_system.health.compare import Comparison, Verdict, compare
from iodock.file_system.health.measurements import Cache, Load, Measurements, Protocol, Unit
from iodock.file_system.views import health_compare
from iodock.shared.language import language_in
from places import ROOT
from synthetic_curves import MIB, PROCESSES, SIZES, Made, cell, made

SCHEMA = ROOT / "docs" / "reference" / "health-comparison.schema.json"


def checkup(seed: int, write: float = 1.0, stat: float = 1.0, noise: float = 0.05) -> Measurements:
    return made(
        [
            Made("write", lambda p, s: write * MIB * min(p, 50), sizes=SIZES[:3]),
            Made("read", lambda p, s: MIB * min(p, 100), sizes=SIZES[:3], cache=Cache.UNKNOWN),
            Made("file-stat", lambda p, s: stat * 1e4 * min(p, 10), sizes=(None,), test="metadata"),
        ],
        noise,
        seed,
    )


def verdicts(comparison: Comparison) -> dict[str, Verdict]:
    return {change.operation: change.verdict for change in comparison.changes}


def test_equal_results_are_not_a_regression() -> None:
    calm = sum(not compare(checkup(seed), checkup(seed + 1000)).regressed for seed in range(100))
    assert calm >= 95


@pytest.mark.parametrize(("operation", "change"), [("write", 0.85), ("file-stat", 0.7)])
def test_a_regression_is_flagged_in_its_measurement(operation: str, change: float) -> None:
    hits = 0
    for seed in range(100):
        slower = {"write" if operation == "write" else "stat": change}
        found = compare(checkup(seed), checkup(seed + 1000, **slower))
        got = verdicts(found)
        hits += got.pop(operation) is Verdict.REGRESSION and Verdict.REGRESSION not in got.values()
    assert hits >= 95


def test_the_confidence_interval_contains_the_true_value() -> None:
    held = 0
    for seed in range(100):
        change = next(
            one
            for one in compare(checkup(seed), checkup(seed + 1000, write=0.8)).changes
            if one.operation == "write"
        )
        held += change.low <= -0.2 <= change.high
    assert held >= 90


def test_a_single_regressed_measurement_is_flagged() -> None:
    base, now = checkup(1, noise=0.02), checkup(2, noise=0.02)
    cells = [
        replace(cell, value=cell.value * 0.5, values=())
        if (cell.operation, cell.processes, cell.size_bytes) == ("write", 10, MIB)
        else cell
        for cell in now.cells
    ]
    found = compare(base, replace(now, cells=tuple(cells)))
    worse = [
        pair.now for change in found.changes for pair in change.pairs if pair.verdict is Verdict.REGRESSION
    ]
    assert [(cell.processes, cell.size_bytes) for cell in worse] == [(10, MIB)]
    assert found.regressed


def test_a_shorter_time_counts_as_an_improvement() -> None:
    seconds = tuple(replace(cell, unit=Unit.SECONDS) for cell in checkup(1).cells)
    slower = tuple(replace(cell, unit=Unit.SECONDS) for cell in checkup(2, write=1.5).cells)
    base = checkup(1)
    found = compare(replace(base, cells=seconds), replace(base, cells=slower))
    assert verdicts(found)["write"] is Verdict.REGRESSION


def test_results_that_cannot_be_compared_are_listed() -> None:
    base, now = checkup(1), checkup(2)
    once = tuple(
        replace(cell, spread=None, repeats=1, values=()) if cell.test == "metadata" else cell
        for cell in base.cells
    )
    cached = tuple(
        replace(cell, cache=Cache.UNCACHED) if cell.operation == "read" else cell
        for cell in now.cells
        if cell.processes != PROCESSES[0]
    )
    protocol = replace(now.protocol, version="2", file_system="nfs4")
    found = compare(
        replace(base, cells=once, protocol=replace(base.protocol, version="1", file_system="lustre")),
        replace(now, cells=cached, protocol=protocol),
    )
    assert verdicts(found)["file-stat"] is Verdict.TOO_FEW
    assert set(verdicts(found)) == {"write", "file-stat"}
    said = health_compare.render(found, language_in("en"))
    for sentence in (
        "the file systems are of different types: lustre and nfs4",
        "measured by different versions: 1 and 2",
        "large transfer, write, cells: 3: measured only in the first result",
        "large transfer, read, cells: 15: read from the cache in only one of the results",
        "too few repeats for a verdict",
    ):
        assert sentence in said


def test_comparison_json_fits_its_schema() -> None:
    found = compare(checkup(1), checkup(2, write=0.6))
    document = json.loads(health_compare.to_json(found, language_in("en")))
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert document["regression"] is True
    assert {one["operation"]: one["verdict"] for one in document["changes"]}["write"] == "regression"


def test_the_exit_status_reports_a_regression(tmp_path: Path) -> None:
    from bench_run import iodock

    for name, result in (("base", checkup(1)), ("now", checkup(2, write=0.6))):
        (tmp_path / f"{name}.json").write_text(measurements_json.text_of(result), encoding="utf-8")
    base, now = tmp_path / "base.json", tmp_path / "now.json"
    done = iodock("health", "compare", base, now)
    assert done.returncode == 0
    assert done.stdout.startswith("Regression: this file system has become slower\n")
    assert iodock("health", "compare", base, now, "--fail-on-regression").returncode == 1
    assert iodock("health", "compare", base, base, "--fail-on-regression").returncode == 0
    japanese = iodock("health", "compare", base, now, "--lang", "ja")
    assert "性能低下" in japanese.stdout
    table = iodock("health", "show", base)
    assert (
        "\nRemarks\n- large transfer, write, 4 KiB, 64 KiB, 1 MiB: levels off at 50 processes" in table.stdout
    )


def one_operation(factors: dict[int, float], noise: float, repeats: int, seed: int) -> Measurements:
    """Returns writes of one process at several sizes, each FACTORS times as fast as 1 GiB/s."""
    chance = random.Random(seed)
    empty = Made("write", lambda p, s: 0.0)
    cells = []
    for size, factor in factors.items():
        values = [1024 * MIB * factor * chance.lognormvariate(0.0, noise) for _ in range(repeats)]
        cells.append(cell(empty, 1, size, values))
    return Measurements(Protocol(tool="iodock"), tuple(cells))


SAME = {4096: 1.0, 65536: 1.0, MIB: 1.0}
LOST = {4096: 0.05, 65536: 0.11, MIB: 0.24}
"""-89 % on average, with a different factor for each size."""


@pytest.mark.parametrize(
    ("now", "noise", "repeats", "verdict"),
    [
        # In these cases the change is large.
        (LOST, 0.03, 3, Verdict.REGRESSION),
        (LOST, 0.03, 2, Verdict.REGRESSION),
        (LOST, 0.15, 3, Verdict.REGRESSION),
        ({MIB: 0.11}, 0.05, 3, Verdict.REGRESSION),
        ({MIB: 9.0}, 0.05, 3, Verdict.IMPROVEMENT),
        # In this case the measurements have no repeats.
        ({MIB: 0.11}, 0.05, 1, Verdict.TOO_FEW),
        # In these cases the change is tiny or zero.
        (dict.fromkeys(SAME, 0.98), 0.003, 5, Verdict.SAME),
        (dict.fromkeys(SAME, 1.0), 0.02, 5, Verdict.SAME),
    ],
)
def test_size_and_spread_of_a_change_decide(
    now: dict[int, float], noise: float, repeats: int, verdict: Verdict
) -> None:
    hits = 0
    for seed in range(40):
        base = one_operation(dict.fromkeys(now, 1.0), noise, repeats, seed)
        change = compare(base, one_operation(now, noise, repeats, seed + 1000)).changes[0]
        hits += change.verdict is verdict
    assert hits >= 34


def test_a_large_change_with_a_large_spread_needs_more_repeats() -> None:
    few = 0
    for seed in range(40):
        base = one_operation({MIB: 1.0}, 0.7, 3, seed)
        change = compare(base, one_operation({MIB: 0.4}, 0.7, 3, seed + 1000)).changes[0]
        assert change.verdict is not Verdict.SAME
        if change.verdict is Verdict.UNSURE:
            assert abs(change.change) < 0.31
        few += change.verdict is Verdict.TOO_FEW
    assert few >= 20


def test_a_confidence_interval_without_zero_is_a_change() -> None:
    """Verdict and confidence interval never contradict each other, whatever the change, spread and number of
    repeats."""
    seen = set()
    for seed in range(300):
        chance = random.Random(seed)
        factor, noise, repeats = (
            chance.choice((0.11, 0.6, 0.9, 1.0, 1.5)),
            chance.uniform(0, 0.8),
            chance.randint(1, 5),
        )
        now = {size: factor * chance.lognormvariate(0, 0.3) for size in SAME}
        found = compare(
            one_operation(SAME, noise, repeats, seed), one_operation(now, noise, repeats, seed + 1000)
        )
        for change in found.changes:
            seen.add(change.verdict)
            if change.low is None or change.high is None:
                assert change.verdict is Verdict.TOO_FEW
                continue
            excludes_zero = change.low > 0 or change.high < 0
            is_change = change.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
            assert is_change == (excludes_zero and abs(math.log1p(change.change)) > math.log1p(0.05)), change
            if change.verdict is Verdict.UNSURE:
                assert abs(math.log1p(change.change)) <= math.log(1.3)
    assert seen >= {Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.TOO_FEW, Verdict.UNSURE}


def test_too_few_repeats_give_no_verdict_unchanged() -> None:
    base, now = one_operation({MIB: 1.0}, 0.05, 1, 1), one_operation({MIB: 0.11}, 0.05, 1, 2)
    found = compare(base, now)
    said = health_compare.render(found, language_in("en"))
    assert not found.regressed and "-88 %" in said and "too few repeats for a verdict" in said
    assert said.startswith("No regression is certain, but 1 of 1 operations")
    document = json.loads(health_compare.to_json(found, language_in("en")))
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert document["changes"][0]["interval"] is None


def test_other_load_is_mentioned_above_the_comparison() -> None:
    busy = Load(others_cpu_share=0.5)
    now = checkup(2)
    cells = tuple(replace(one, load=busy) for one in now.cells[:2]) + now.cells[2:]
    said = health_compare.render(compare(checkup(1), replace(now, cells=cells)), language_in("en"))
    assert "busy with other programs during 2 of 42 cells of the second" in said
