"""Tests the arithmetic of the labelled set, with made-up findings, and the validity of its labels."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from places import FIXTURES, ROOT

sys.path.insert(0, str(ROOT / "tools"))

import labelled
import labelled_runs
from labelled_score import (
    CostClass,
    CostScore,
    Input,
    Label,
    LabelError,
    Outcome,
    Share,
    by_cost,
    label_from,
    read_labels,
    score,
)

LABELLED = FIXTURES / "labelled"
HELD_OUT = sorted(path for path in (LABELLED / "heldout").iterdir() if path.is_dir())
APART = [[LABELLED / "development" / "earlier"], HELD_OUT]
"""Sets written independently of the rules: one that has since been used for improvement, and the held-out
ones."""


def fault(rule: str, *found: tuple[str, str], error: str = "", skipped: str = "") -> Outcome:
    label = Label(name=rule, kind="fault", program="a.c", faults=frozenset([rule]), top=rule)
    return Outcome(label, found, error=error, skipped=skipped)


def quiet(*found: tuple[str, str], allowed: str = "", kind: str = "clean", error: str = "") -> Outcome:
    label = Label(name=kind, kind=kind, program="a.c", allowed=frozenset([allowed] if allowed else []))
    return Outcome(label, found, error=error)


def test_a_label_found_first_counts_twice() -> None:
    score_ = score([fault("seek-storm", ("seek-storm", "high"), ("small-requests", "low"))])
    assert score_.recall == Share(1, 1)
    assert score_.top_right == Share(1, 1)
    assert score_.false_alarms == Share(0, 0)


def test_a_label_found_but_not_first_counts_as_found() -> None:
    score_ = score([fault("seek-storm", ("small-requests", "high"), ("seek-storm", "low"))])
    assert score_.recall == Share(1, 1)
    assert score_.top_right == Share(0, 1)


def test_a_note_does_not_count_as_a_finding() -> None:
    outcome = fault("seek-storm", ("small-requests", "note"), ("seek-storm", "note"))
    assert outcome.found == [] and outcome.missed == ["seek-storm"] and outcome.top == ""
    assert score([quiet(("seek-storm", "note"))]).false_alarms == Share(0, 1)


def test_notes_before_the_first_finding_do_not_take_its_place() -> None:
    assert fault("seek-storm", ("small-requests", "note"), ("seek-storm", "low")).top == "seek-storm"


def test_a_rule_found_twice_counts_once() -> None:
    outcome = fault("seek-storm", ("seek-storm", "high"), ("seek-storm", "low"))
    assert outcome.found == ["seek-storm"]


def test_false_alarms_count_runs_without_allowed_findings() -> None:
    runs = [
        quiet(("seek-storm", "low"), ("small-requests", "high")),
        quiet(("seek-storm", "low"), allowed="seek-storm"),
        quiet(kind="harmless"),
        fault("seek-storm", ("small-requests", "low")),
    ]
    assert score(runs).false_alarms == Share(1, 3)


def test_recall_counts_every_problem_of_a_mixed_run() -> None:
    rules = frozenset(["seek-storm", "small-requests", "stat-storm"])
    mixed = Label(name="m", kind="mixed", program="a.c", faults=rules)
    runs = [Outcome(mixed, [("stat-storm", "low"), ("seek-storm", "low")]), fault("sync-heavy")]
    assert runs[0].missed == ["small-requests"]
    assert score(runs).recall == Share(2, 4)
    assert score(runs).top_right == Share(0, 1)


def test_failed_runs_count_as_missed_and_skipped_ones_not() -> None:
    runs = [
        fault("seek-storm", error="status 1"),
        fault("stat-storm", skipped="no mpicc"),
        quiet(error="hung"),
    ]
    assert score(runs).recall == Share(0, 1)
    assert score(runs).top_right == Share(0, 1)
    assert score(runs).false_alarms == Share(1, 1)


def test_sets_are_reported_separately_and_together() -> None:
    right, wrong = fault("seek-storm", ("seek-storm", "low")), fault("stat-storm")
    rows = labelled.shares({"development": [right], "heldout": [wrong]})
    assert [row[0] for row in rows[1:]] == ["development", "heldout", "together"]
    assert [row[2] for row in rows[1:]] == ["1/1 = 1.000", "0/1 = 0.000", "1/2 = 0.500"]
    assert len(labelled.shares({"heldout": [wrong]})) == 2


def test_sets_of_one_folder_are_also_reported_together() -> None:
    runs = {name: [fault("seek-storm")] for name in ("development/data", "development/metadata", "heldout")}
    names = ["development/data", "development/metadata", "heldout", "development", "together"]
    assert list(labelled.grouped(runs)) == names
    assert [len(outcomes) for outcomes in labelled.grouped(runs).values()] == [1, 1, 1, 2, 3]


def test_a_folder_of_sets_means_all_its_sets(tmp_path: Path) -> None:
    for name in ("data", "metadata", "empty"):
        (tmp_path / "development" / name).mkdir(parents=True)
    for name in ("data", "metadata"):
        (tmp_path / "development" / name / "labels.toml").touch()
    found = labelled.sets_in([tmp_path / "development"])
    assert list(found) == ["development/data", "development/metadata"]
    assert labelled.main([str(tmp_path / "development" / "empty")]) == 2


def test_a_row_lists_missed_and_false_findings() -> None:
    row = labelled.row(fault("seek-storm", ("stat-storm", "low"), ("sync-heavy", "note")))
    cells = [
        "seek-storm",
        "fault",
        "seek-storm",
        "stat-storm",
        "stat-storm, not it",
        "seek-storm",
        "",
        "stat-storm",
        "not measured",
    ]
    assert row == cells


def test_a_fault_reported_as_a_note_counts_as_missed() -> None:
    noted = fault("seek-storm", ("seek-storm", "note"))
    assert (noted.missed, noted.noted) == (["seek-storm"], ["seek-storm"])
    assert fault("seek-storm", ("stat-storm", "note")).noted == []
    assert fault("seek-storm", ("seek-storm", "low"), ("seek-storm", "note")).noted == []


def test_results_by_cost_include_every_problem() -> None:
    note, found = ("seek-storm", "note"), ("seek-storm", "low")
    runs = [
        replace(fault("seek-storm", found), cost_class=CostClass.WORTH),
        replace(fault("seek-storm", note), cost_class=CostClass.WORTH),
        replace(fault("seek-storm", note), cost_class=CostClass.LITTLE),
        replace(fault("seek-storm"), cost_class=CostClass.LITTLE),
        fault("seek-storm", found),
        fault("seek-storm", skipped="no mpicc"),
        quiet(),
    ]
    figures = by_cost(runs)
    assert list(figures) == [CostClass.WORTH, CostClass.LITTLE, CostClass.UNMEASURED]
    assert figures[CostClass.WORTH] == CostScore(Share(1, 2), Share(1, 2), Share(0, 2), Share(1, 2))
    assert figures[CostClass.LITTLE] == CostScore(Share(0, 2), Share(1, 2), Share(1, 2), Share(0, 2))
    assert sum(one.found.whole for one in figures.values()) == score(runs).recall.whole
    assert sum(one.found.part for one in figures.values()) == score(runs).recall.part


def test_totals_do_not_reveal_results_of_a_single_held_out_set() -> None:
    parts = {name: [fault("seek-storm")] for name in ("heldout/a", "heldout/b", "development/c")}
    shown = labelled.totals(parts, labelled.shares(parts))
    assert [row[0] for row in shown] == ["set", "development/c", "heldout", "together"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"kind": "odd"}, "kind 'odd' is none of"),
        ({"faults": ["seek-strom"], "top": "seek-strom"}, "no such rule: seek-strom"),
        ({"top": "stat-storm"}, "is not among its faults"),
        ({"kind": "clean"}, "a clean run has no faults"),
        ({"kind": "mixed"}, "two faults or more"),
        ({"command": ["true"]}, "either a program or a command"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_an_impossible_label_is_refused(changes: dict[str, object], complaint: str) -> None:
    table = {"name": "a", "kind": "fault", "program": "a.c", "faults": ["seek-storm"], "top": "seek-storm"}
    with pytest.raises(LabelError, match=complaint):
        label_from(table | changes)


@pytest.mark.whole
def test_generated_inputs_are_reproducible(tmp_path: Path) -> None:
    for name in ("a", "b"):
        labelled_runs.write_input(Input("x", size_bytes=5_000_000), tmp_path / name, seed=3)
        labelled_runs.write_input(Input("x", lines=100), tmp_path / f"{name}.txt", seed=3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").stat().st_size == 5_000_000
    assert (tmp_path / "a.txt").read_text() == (tmp_path / "b.txt").read_text()
    assert len((tmp_path / "a.txt").read_text().splitlines()) == 100


@pytest.mark.parametrize("folders", APART, ids=["earlier", "heldout"])
def test_held_out_sets_are_large_and_every_problem_has_a_clean_twin(folders: list[Path]) -> None:
    sets = [read_labels(folder / "labels.toml") for folder in folders]
    labels = [label for labels in sets for label in labels]
    kinds = [label.kind for label in labels]
    faults = [label for label in labels if label.kind == "fault"]
    assert len(labels) >= 40 and kinds.count("mixed") >= 6 and kinds.count("harmless") >= 8
    assert len({label.top for label in faults}) >= 16
    for one in sets:
        named = {label.name: label for label in one}
        assert len(named) == len(one), "a name stands twice"
        assert [x.name for x in one if x.kind == "fault" and named[x.twin].kind != "clean"] == []


@pytest.mark.parametrize("folder", [*APART[0], *HELD_OUT], ids=lambda path: path.name)
def test_every_file_of_a_held_out_set_is_used(folder: Path) -> None:
    texts = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    named = {name for name in texts if any(name in text for other, text in texts.items() if other != name)}
    assert set(texts) - named == {"labels.toml"}
    assert {x.program for x in read_labels(folder / "labels.toml")} - {""} <= set(texts)
