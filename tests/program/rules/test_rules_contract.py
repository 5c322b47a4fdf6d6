"""Tests requirements for every rule: it explains itself, its thresholds are documented, it works on any
store, and tests show that it finds its pattern and ignores others."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iodock.program import capture, rules
from iodock.program.diagnosis import facts_of
from iodock.program.reference import thresholds
from iodock.program.relations.derived import DERIVED
from iodock.program.rules.base import LANGUAGES, Facts, Rule
from iodock.program.store import Store
from iodock.shared.errors import IodockError
from iodock.shared.message import Message
from iodock.shared.settings import Settings
from places import FIXTURES

DEVELOPMENT = FIXTURES / "labelled" / "development"
RULES = rules.every()
IDS = [rule.name for rule in RULES]
NEVER_FOUND = {
    **dict.fromkeys(
        (
            "low-level-interface",
            "many-processes-without-parallel-io",
            "uneven-servers",
        ),
        "is asked of counters, and labelled runs are recordings of calls: test_counters.py",
    ),
    "chunks-against-access": "needs a library of HDF5, and labelled programs need none",
    **dict.fromkeys(
        ("collective-buffering-off", "collective-overhead", "independent-io-where-collective-would-do"),
        "needs a library of MPI, and labelled programs need none",
    ),
    "cache-speed": "is at most a note, and a label counts what is more",
    "two-phase": "is at most a note, and a label counts what is more",
    "slow-close": "closes wait on network file systems, and runs are recorded on a local one",
}
"""Rules that no labelled run can show, with the reason."""
each_rule = pytest.mark.parametrize("rule", RULES, ids=IDS)


def test_rule_names_are_unique_and_uniform() -> None:
    assert len(set(IDS)) == len(IDS)
    assert [name for name in IDS if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name)] == []


@each_rule
def test_the_texts_of_a_rule_are_complete_sentences(rule: Rule) -> None:
    assert rule.title and not rule.title.endswith(".")
    for text in (rule.looks_for, rule.why, rule.fine_when, *(one.message.text for one in rule.advice)):
        assert len(text.split()) >= 4, text
        assert text.endswith("."), text
        assert "  " not in text, text


@each_rule
def test_the_advice_of_a_rule_covers_each_language_once(rule: Rule) -> None:
    languages = [one.language for one in rule.advice]
    assert "any" in languages
    assert len({one.heading for one in rule.advice}) == len(languages)
    assert set(languages) <= set(LANGUAGES.values())


@each_rule
def test_the_thresholds_of_a_rule_are_documented_and_frozen(rule: Rule) -> None:
    assert dataclasses.is_dataclass(rule.settings)
    settings = rule.settings()
    assert all(one.doc.strip() for one in thresholds(rule))
    assert len(thresholds(rule)) == len(dataclasses.fields(settings))
    for field in dataclasses.fields(settings):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(settings, field.name, 1)


@each_rule
def test_views_and_rules_named_by_a_rule_exist(rule: Rule) -> None:
    assert set(rule.views) <= set(DERIVED)
    assert set(rule.yields_to) <= set(IDS) - {rule.name}


def test_no_two_rules_hide_each_other() -> None:
    causes = {rule.name: set(rule.yields_to) for rule in RULES}
    assert [(one, two) for one in causes for two in causes[one] if one in causes[two]] == []


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facts]:
    """Imports a run that ends when it begins."""
    folder = tmp_path_factory.mktemp("empty")
    log = folder / "empty.log"
    log.write_text("7 1700000000.000000 exit_group(0) = ?\n7 1700000000.000100 +++ exited with 0 +++\n")
    yield from _facts(log, folder / "empty.iodock")


@each_rule
def test_no_rule_finds_anything_in_a_run_without_io(rule: Rule, empty: Facts) -> None:
    empty.profile.need(rule.views)
    assert list(rule.find(empty, rule.settings())) == []


def _logs() -> list[Any]:
    patterns = ("strace/*/log*", "truss/*.truss*", "damaged/*.log*")
    cases = FIXTURES / "cases"
    return [
        pytest.param(path, id=str(path.relative_to(cases)))
        for pattern in patterns
        for path in sorted(cases.glob(pattern))
    ]


def _facts(log: Path, store: Path) -> Iterator[Facts]:
    capture.import_logs([str(log)], store)
    with Store.open(store) as opened:
        yield facts_of(opened, Settings())


@pytest.fixture(scope="module", params=_logs())
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facts]:
    """Imports each of the project's cases: strace, truss with and without times, and damaged logs."""
    store = tmp_path_factory.mktemp("case") / "case.iodock"
    try:
        yield from _facts(request.param, store)
    except IodockError as refused:
        pytest.skip(f"can't be imported: {refused}")


@pytest.mark.whole
def test_every_rule_handles_every_case_without_error(case: Facts) -> None:
    """The rule runs whatever the store lacks. Its text contains all its numbers, and its query runs."""
    for rule in RULES:
        case.profile.need(rule.views)
        for found in rule.find(case, rule.settings()):
            assert _placeholders(found.message) <= set(found.message.values), rule.name
            assert found.count >= 0 and (found.time_ns is None or found.time_ns >= 0), rule.name
            assert case.store.engine.user_query(found.query) is not None, rule.name
            low, high = found.gain or (1.0, 1.0)
            assert low <= high and (low <= 0 or high <= 3.0001 * low), rule.name


def _placeholders(message: Message) -> set[str]:
    return set(re.findall(r"{(\w+)}", message.text))


def _runs() -> list[dict[str, Any]]:
    return [
        run
        for path in sorted(DEVELOPMENT.glob("*/labels.toml"))
        for run in tomllib.loads(path.read_text(encoding="utf-8"))["run"]
    ]


@each_rule
def test_each_rule_finds_its_labelled_run_and_not_the_clean_twin(rule: Rule) -> None:
    runs = _runs()
    kinds = {run["name"]: run["kind"] for run in runs}
    shown = [run for run in runs if rule.name in run.get("faults", ())]
    if rule.name in NEVER_FOUND:
        assert not shown, "it was found after all: take it off the list"
        return
    twins = [kinds[run["twin"]] for run in shown if run.get("twin")]
    assert "clean" in twins, f"no labelled run of {rule.name} has a clean twin"


def test_labelled_programs_exist() -> None:
    for path in sorted(DEVELOPMENT.glob("*/labels.toml")):
        for run in tomllib.loads(path.read_text(encoding="utf-8"))["run"]:
            assert not run.get("program") or (path.parent / run["program"]).is_file(), run["name"]
