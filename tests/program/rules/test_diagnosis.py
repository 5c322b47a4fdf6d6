"""Tests how candidates become findings: severity, shares, gains, order, causes before symptoms, and the
command."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from iodock.cli.run import run as run_command
from iodock.program import rules
from iodock.program.findings import Severity
from iodock.program.rules.base import Candidate, Need
from iodock.program.run import Run
from iodock.program.store import Store
from iodock.program.views.diagnosis_json import diagnosis_json
from iodock.program.views.diagnosis_text import diagnosis_text
from iodock.program.views.diagnosis_words import headline
from iodock.program.views.overview import overview_of
from iodock.program.views.verdict import judge
from iodock.shared.errors import RequestError
from iodock.shared.language import LANGUAGES, language_in
from iodock.shared.sentences import say
from iodock.shared.settings import Settings
from made_rules import SECOND, candidate, findings, made_store, only, rule
from places import ROOT


@pytest.mark.parametrize(
    ("seconds", "severity"),
    [(3.0, Severity.HIGH), (1.0, Severity.MEDIUM), (0.2, Severity.LOW), (0.05, Severity.NOTE)],
)
def test_the_severity_follows_from_the_saved_share_of_the_run(
    store: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, severity: Severity
) -> None:
    found = only(findings(store, monkeypatch, rule("a-rule", candidate(time_ns=int(seconds * SECOND)))))
    assert found.severity is severity
    assert found.cost_seconds == pytest.approx(seconds)
    assert found.cost_share == pytest.approx(seconds / 10)


def test_the_gain_is_a_share_of_the_cost(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = only(findings(store, monkeypatch, rule("a-rule", candidate(gain=(0.2, 0.5)))))
    assert found.gain is not None
    assert (found.gain.low_seconds, found.gain.high_seconds) == (pytest.approx(0.6), pytest.approx(1.5))


def test_a_maximum_severity_is_respected(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capped = candidate(at_most=Severity.NOTE, gain=None)
    found = findings(store, monkeypatch, rule("a-rule", capped))
    assert only(found).severity is Severity.NOTE and only(found).gain is None
    assert not found.worth_changing


def test_findings_are_sorted_by_saved_time_with_notes_last(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = findings(
        store,
        monkeypatch,
        rule("note", candidate(time_ns=4 * SECOND, at_most=Severity.NOTE)),
        rule("less", candidate(time_ns=SECOND)),
        rule("most", candidate(time_ns=2 * SECOND)),
    )
    assert [one.rule for one in found.findings] == ["most", "less", "note"]


@pytest.mark.parametrize(
    ("cause", "kept"),
    [
        (candidate(), ["cause"]),
        (candidate(time_ns=SECOND), ["symptom", "cause"]),
        (candidate(files=("/data/b",)), ["cause", "symptom"]),
    ],
    ids=["same files", "too small to explain it", "other files"],
)
def test_a_symptom_is_hidden_by_its_cause(
    store: Path, monkeypatch: pytest.MonkeyPatch, cause: Candidate, kept: list[str]
) -> None:
    symptom = rule("symptom", candidate(), yields_to=("cause",))
    found = findings(store, monkeypatch, symptom, rule("cause", cause))
    assert [one.rule for one in found.findings] == kept


def test_a_rule_without_the_needed_data_is_reported(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = rule("blind", candidate(), needs=(Need.PAGE_FAULTS,))
    found = findings(store, monkeypatch, blind)
    assert not found.findings
    assert [(one.rule, one.why.text) for one in found.silent] == [("blind", Need.PAGE_FAULTS.value)]


def test_advice_is_in_the_languages_of_the_run(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = only(findings(store, monkeypatch, rule("a-rule", candidate())))
    assert [one.language for one in found.advice] == ["any", "C"]


def test_without_durations_severity_follows_from_the_share_of_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made_store(tmp_path, durations=False)
    found = only(findings(store, monkeypatch, rule("a-rule", candidate(time_ns=None, count=50))))
    assert (found.severity, found.cost_seconds, found.gain) == (Severity.MEDIUM, None, None)


@pytest.mark.parametrize(
    ("seconds", "says"), [(0.1, "Your I/O is fine"), (5.0, "is efficient")], ids=["little", "much"]
)
def test_a_run_without_problems_is_called_efficient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, says: str
) -> None:
    found = findings(made_store(tmp_path, seconds), monkeypatch)
    assert says in found.verdict.text.text
    assert found.verdict.io_share == pytest.approx(seconds / 10)


def with_losses(store: Path, losses: dict[str, int], calls: int | None = None) -> Path:
    manifest = store / "manifest.json"
    told = json.loads(manifest.read_text())
    told["losses"] = [{"name": name, "count": count, "cure": "cure"} for name, count in losses.items()]
    if calls is not None:
        told["source"]["calls"] = calls
    manifest.write_text(json.dumps(told))
    return store


HIDING = [
    ("own-system-calls", 1, None, "An unknown number of"),
    ("unreached-programs", 1, None, "An unknown number of"),
    ("stopped-processes", 1, None, "An unknown number of"),
    ("journal-cut", 1, None, "An unknown number of"),
    ("before-load", 100, 500, "An unknown number of"),
    ("too-many-requests", 3000, 1000, "3,000 of about 4,000 calls were not recorded"),
    ("unseen-calls", 3000, 1000, "3,000 of about 4,000 calls were not recorded"),
    ("dropped-records", 100, 900, "100 of about 1,000 calls were not recorded"),
    ("foreign-calls", 100, 900, "100 of about 1,000 calls were not recorded"),
]


@pytest.mark.parametrize(("name", "count", "calls", "says"), HIDING, ids=[one[0] for one in HIDING])
@pytest.mark.parametrize("seconds", [0.1, 1.0])
def test_runs_with_too_many_unseen_calls_are_not_judged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    name: str,
    count: int,
    calls: int | None,
    says: str,
) -> None:
    store = with_losses(made_store(tmp_path, seconds), {name: count}, calls)
    found = findings(store, monkeypatch)
    told = say(found.verdict.text, language_in("en"))
    assert says in told and "can't show whether the I/O is fine" in told
    assert "record the missing calls" in found.next_step.text
    assert found.verdict.judges is False
    assert found.verdict.unseen_calls == (count if calls and name != "before-load" else None)
    with Store.open(store) as opened:
        for code in LANGUAGES:
            checked = judge(overview_of(opened), language_in(code))
            assert checked.level == "unjudged" and "{" not in checked.headline
            assert (checked.headline == told) == (code == "en")
        assert not any("little to gain" in sentence for sentence in checked.sentences)


@pytest.mark.parametrize("losses", [{"too-many-requests": 3}, {"dropped-records": 9}, {"before-load": 3}])
def test_a_small_share_of_unseen_calls_does_not_prevent_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: dict[str, int]
) -> None:
    found = findings(with_losses(made_store(tmp_path, 0.1), losses, 1000), monkeypatch)
    assert "Your I/O is fine" in found.verdict.text.text and found.verdict.judges


def test_the_json_of_a_diagnosis_fits_its_schema(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "findings.schema.json").read_text())
    found = findings(store, monkeypatch, rule("a-rule", candidate()), rule("b-rule", needs=(Need.RANKS,)))
    for code in LANGUAGES:
        jsonschema.validate(json.loads(diagnosis_json(found, language_in(code))), schema)


def test_hostile_names_are_plain_text_in_a_diagnosis(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = candidate(files=("/data/[bold]{count}\x1b[31m\n:smile:",))
    shown = diagnosis_text(findings(store, monkeypatch, rule("a-rule", hostile)), language_in("en"), False)
    assert "[bold]{count}" in shown and ":smile:" in shown and "\x1b" not in shown


def test_an_unknown_rule_in_the_settings_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(source=Path("site.toml"), rules={"no_such_rule": {}})
    with pytest.raises(RequestError, match=r"site\.toml: .*no such rule: no_such_rule"):
        findings(store, monkeypatch, settings=settings)


def test_a_misspelt_rule_gets_a_suggestion() -> None:
    with pytest.raises(RequestError) as caught:
        rules.find("small_requests")
    assert caught.value.hint == "did you mean small-requests"


@pytest.mark.parametrize(("limit", "status"), [("high", 0), ("medium", 0), ("low", 1)])
def test_fail_on_sets_the_exit_status(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, status: int
) -> None:
    monkeypatch.setattr(rules, "every", lambda: (rule("a-rule", candidate(time_ns=SECOND // 4)),))
    target = str(tmp_path / "out.json")
    assert (
        run_command(["diagnose", str(store), "--fail-on", limit, "--format", "json", "-o", target]) == status
    )
    assert json.loads(Path(target).read_text())["findings"][0]["severity"] == "low"


def test_a_traced_run_first_states_its_time_without_the_tracer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made_store(tmp_path)
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["captured"]["how"] = "ptrace"
    (store / "manifest.json").write_text(json.dumps(manifest))
    found = findings(store, monkeypatch, rule("a-rule", candidate(count=10)))
    # Calls take 50 ms and begin every 100 ms, so tracing may be all of their cost.
    (told,) = found.verdict.before
    assert told.values == {"alone_s": pytest.approx(0.2), "wall_s": 10.0}
    assert headline(found.verdict, language_in("en"))[0].startswith("Without the tracer this run takes about")
    gain = only(found).gain
    assert gain is not None and gain.of_seconds == pytest.approx(0.2) and gain.high_seconds <= 0.2
    # The cost is given as recorded, because it is evidence.
    assert only(found).cost_seconds == pytest.approx(3 + 10 * 0.05)


def test_costs_caused_only_by_tracing_give_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made_store(tmp_path)
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["captured"]["how"] = "ptrace"
    (store / "manifest.json").write_text(json.dumps(manifest))
    # Tracing adds 5 of the 10 s. The 20 calls take 0.04 s, and 1.04 s with their share of the tracing.
    found = findings(store, monkeypatch, rule("a-rule", candidate(time_ns=SECOND // 25, count=20)))
    assert only(found).cost_seconds == pytest.approx(1.04)
    assert only(found).severity is Severity.NOTE


def test_a_log_without_tracing_overhead_does_not_mention_it(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not findings(store, monkeypatch, rule("a-rule", candidate())).verdict.before


def test_a_diagnosis_is_available_from_python(store: Path) -> None:
    assert Run(Store.open(store)).diagnose().verdict.wall_seconds == 10.0
